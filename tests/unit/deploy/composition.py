"""docker-compose.yml as Docker Compose reads it: anchors merged, and the variables of an environment put in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

ROOT: Final = Path(__file__).parents[3]
FILE: Final = ROOT / "docker-compose.yml"
EXAMPLE: Final = ROOT / ".env.example"
REFERENCE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::([-?])([^}]*))?\}")
OUR_IMAGE: Final = "tracegrade"


class MissingVariableError(Exception):
    """What Docker Compose says and does nothing after."""


class Reference(NamedTuple):
    """A variable that the file uses; ``operator`` is ``-`` before a default, ``?`` before what is said where it is missing."""

    name: str
    operator: str
    text: str


def references() -> list[Reference]:
    """Return every use of a variable."""
    written = "\n".join(line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#"))
    return [Reference(*found) for found in REFERENCE.findall(written)]


def example() -> dict[str, str]:
    """Return the variables of .env.example with their values."""
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def filled_in() -> dict[str, str]:
    """Return what a user's .env holds: the example, with something in what was left empty."""
    return {name: value or f"of-{name.lower()}" for name, value in example().items()}


def composition(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the file's content.

    Raises:
        MissingVariableError: the environment lacks a variable that must be set.
    """
    read: dict[str, Any] = _resolved(YAML(typ="safe", pure=True).load(FILE.read_text(encoding="utf-8")), environment)
    return read


def services(environment: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the services by name, in the order of the file."""
    found: dict[str, dict[str, Any]] = composition(filled_in() if environment is None else environment)["services"]
    return found


def ours() -> dict[str, dict[str, Any]]:
    """Return the services that run our image."""
    return {name: one for name, one in services().items() if one["image"].split(":")[0] == OUR_IMAGE}


def _resolved(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(one, environment) for key, one in value.items()}
    if isinstance(value, list):
        return [_resolved(one, environment) for one in value]
    return (
        REFERENCE.sub(lambda found: _value(Reference(*found.groups("")), environment), value) if isinstance(value, str) else value
    )


def _value(reference: Reference, environment: Mapping[str, str]) -> str:
    value = environment.get(reference.name, "")
    if not value and reference.operator == "?":
        raise MissingVariableError(f"required variable {reference.name} is missing a value: {reference.text}")
    return value or (reference.text if reference.operator == "-" else "")
