"""The documentation names every key with its default, and nothing that is no key."""

import re
from collections import defaultdict
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pipeline.config.fault import example_of
from pipeline.config.keys import Key, keys, tags
from pipeline.config.load import load
from pipeline.config.mistake import spoken
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.settings import Settings

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "deploy" / "tracegrade.example.yaml"
ALL = tuple(keys(TracegradeSettings))


def sections() -> dict[tuple[str, str], dict[str, str]]:
    """Return what the documentation says: by (path, kind), the default of each key."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    at: list[tuple[str, str]] = []
    for line in (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("At "):
            kind = re.search(r"with `kind: (\w+)`", line)
            paths = re.findall(r"`([^` ]+)`", line)
            at = [(path, kind[1] if kind else "") for path in paths] if paths else [("", "")]
        elif row := re.match(r"\| `([^`]+)` \| (.+?) \| (.+) \|$", line):
            for place in at:
                found[place][row[1]] = row[2]
    return found


def place_of(key: Key) -> tuple[str, str]:
    return spoken(key.location[:-1]), tags(key.owner).get("kind", "")


def in_words(field: FieldInfo) -> str | None:
    """Return a default as the documentation writes it; None where it is told at length."""
    default: Any = field.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "none"
    if isinstance(default, Settings) or (isinstance(default, tuple) and any(isinstance(one, Settings) for one in default)):
        return None
    if isinstance(default, tuple):
        return f"`[{', '.join(one.value if isinstance(one, StrEnum) else str(one) for one in default)}]`"
    if isinstance(default, dict):
        return "`{}`"
    return f"`{example_of(field)}`" if default != "" else '`""`'


@pytest.mark.parametrize("key", ALL, ids=lambda key: spoken(key.location))
def test_every_key_is_documented_with_its_default(key: Key) -> None:
    documented = sections()[place_of(key)]
    assert key.location[-1] in documented, f"docs/configuration.md says nothing of {spoken(key.location)}"
    words = in_words(key.field)
    if words is not None:
        assert documented[str(key.location[-1])] == words


def test_nothing_is_documented_that_is_no_key() -> None:
    known = {(*place_of(key), str(key.location[-1])) for key in ALL}
    documented = {(*place, name) for place, rows in sections().items() for name in rows}
    assert documented - known == set()


def test_the_example_loads() -> None:
    settings = load(EXAMPLE, {})
    assert {"default", "refund-agent"} == set(settings.agents)
    assert settings.store.path == EXAMPLE.parent / "tracegrade-data"


@pytest.mark.parametrize("name", sorted({str(key.location[-1]) for key in ALL}))
def test_the_example_mentions_every_key(name: str) -> None:
    assert re.search(rf"\b{name}:", EXAMPLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", list(TracegradeSettings.model_fields))
def test_the_example_writes_every_part_of_the_top(name: str) -> None:
    assert re.search(rf"^{name}:", EXAMPLE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_settings_class_refuses_unknown_keys() -> None:
    owners = {key.owner for key in ALL} | {TracegradeSettings}
    assert {owner.__name__ for owner in owners if owner.model_config.get("extra") != "forbid"} == set()
