"""docs/deployment.md: what it tells to type names services, commands, topics and variables that there are."""

import re
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from unit.deploy.composition import EXAMPLE, ROOT, composition, example, filled_in, services

from pipeline.apps.cli import app
from pipeline.model.topology import ASSEMBLE, TOPICS

GUIDE = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
TAKE_SERVICES = {"build", "up", "stop", "logs"}


def typed() -> Iterator[list[str]]:
    """Yield what is typed: lines of shell blocks, and commands within sentences."""
    for block in re.findall(r"^ *```sh\n(.+?)```", GUIDE, re.DOTALL | re.MULTILINE):
        yield from (shlex.split(line, comments=True) for line in block.splitlines())
    yield from (shlex.split(inline) for inline in re.findall(r"`(docker compose [^`]+)`", GUIDE))


COMPOSE = sorted({tuple(words[2:]) for words in typed() if words[:2] == ["docker", "compose"]})


def test_the_guide_starts_watches_and_stops_it() -> None:
    assert {words[0] for words in COMPOSE} == {"build", "up", "ps", "exec", "logs", "stop", "down"}


@pytest.mark.parametrize("words", COMPOSE, ids=" ".join)
def test_services_and_commands_exist(words: tuple[str, ...]) -> None:
    verb, *rest = words
    named = [word for word in rest if not word.startswith("-")]
    if verb == "exec":
        assert named[0] in services()
        if named[1] == "tracegrade":
            parsed(rest[2:])
    elif verb in TAKE_SERVICES:
        scaled = [word.partition("=")[0] for word in named if "=" in word]
        assert set(scaled or named) <= set(services())


def parsed(words: list[str]) -> None:
    """Hold that the product takes these words."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    assert command.make_context(command.name, words).command is command


def test_the_image_is_built_for_the_service_that_the_guide_builds() -> None:
    assert [name for name, service in services().items() if "build" in service] == ["topics"]


def test_the_passwords_that_it_makes_are_all_that_is_missing(tmp_path: Path) -> None:
    """The guide's own lines, run as they stand there."""
    lines = re.search(r"```sh\n(   umask.+?)```", GUIDE, re.DOTALL)
    assert lines is not None
    (tmp_path / ".env.example").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run(["sh", "-eu", "-c", lines[1]], cwd=tmp_path, check=True)
    made = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines() if re.match("[A-Z]", line))
    assert {name: value for name, value in made.items() if example()[name]} == {
        name: value for name, value in example().items() if value
    }
    passwords = [value for name, value in made.items() if not example()[name]]
    assert all(re.fullmatch("[0-9a-f]{48}", password) for password in passwords)
    assert len(set(passwords)) == len(passwords) == 4
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR
    assert composition(made)["services"]["collector-1"]["environment"]["TRACEGRADE_KEY"] == made["TRACEGRADE_KEY"]


def test_the_topics_that_grow_are_those_that_stages_share_and_the_group_is_that_of_the_traces() -> None:
    grown = re.search(r"for topic in ([a-z -]+); do", GUIDE)
    assert grown is not None
    names = {f"tracegrade.{name}" for name in grown[1].split()}
    assert names == {topic.name for topic in TOPICS} - {"tracegrade.trips", "tracegrade.dead-letters"}
    assert f"--group tracegrade.{ASSEMBLE.name} --topic {ASSEMBLE.reads.name} " in GUIDE


def test_the_volume_that_is_copied_is_the_store_s() -> None:
    whole = composition(filled_in())
    assert f"-v {whole['name']}_clickhouse-data:/data:ro" in GUIDE
    assert "clickhouse-data:/var/lib/clickhouse" in whole["services"]["clickhouse"]["volumes"]
