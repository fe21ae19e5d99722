"""What the README tells a newcomer to type exists, and every YAML block in the documentation is a configuration that passes ``check``."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from pipeline.apps.cli import app
from pipeline.config.check import check
from pipeline.config.rubrics import load

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(text: str) -> Iterator[list[str]]:
    """Yield what is typed after each ``$`` of the console blocks, without comments; and what stands in backticks as a command."""
    for block in re.findall(r"```console\n(.+?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                yield shlex.split(line[2:], comments=True)
    for inline in re.findall(r"`((?:\.venv/bin/)?tracegrade [^`]+|make [a-z]+)`", text):
        yield shlex.split(inline)


TYPED = sorted({tuple(words) for path in DOCUMENTS for words in commands(path.read_text(encoding="utf-8"))})


def test_the_readme_shows_commands() -> None:
    assert {("make", "demo"), ("make", "up"), ("make", "test")} <= set(TYPED)
    assert sum(words[0].endswith("tracegrade") for words in TYPED) >= 5


@pytest.mark.parametrize("words", [words for words in TYPED if words[0] == "make"], ids=" ".join)
def test_every_make_target_exists(words: tuple[str, ...]) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(words[1:]) <= targets


@pytest.mark.parametrize("words", [words for words in TYPED if words[0].endswith("tracegrade")], ids=" ".join)
def test_every_command_can_be_given(words: tuple[str, ...]) -> None:
    command: Any = typer.main.get_command(app)
    rest = list(words[1:])
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    context = command.make_context(command.name, [{"FILE…": "FILE"}.get(word, word) for word in rest])
    assert context.command is command


def test_nothing_else_is_asked_of_a_newcomer() -> None:
    others = {words[0] for words in TYPED if not words[0].endswith("tracegrade")}
    assert others == {"make", "export"}


def blocks() -> Iterator[tuple[str, str]]:
    for path in DOCUMENTS:
        for number, block in enumerate(re.findall(r"```yaml\n(.+?)```", path.read_text(encoding="utf-8"), re.DOTALL), start=1):
            yield f"{path.name} {number}", block


RUBRICS = [(name, block) for name, block in blocks() if block.startswith("name: ")]
CONFIGURATIONS = [one for one in blocks() if one not in RUBRICS]


def rubric_of(block: str, folder: Path) -> Path:
    """Write a rubric that the documentation shows to the file that it is named after."""
    path = folder / f"{block.split()[1]}.yaml"
    path.write_text(block, encoding="utf-8")
    return path


@pytest.mark.parametrize("block", [block for _, block in RUBRICS], ids=[name for name, _ in RUBRICS])
def test_every_rubric_that_is_shown_is_one(block: str, tmp_path: Path) -> None:
    assert load(rubric_of(block, tmp_path)).dimensions


@pytest.mark.parametrize("block", [block for _, block in CONFIGURATIONS], ids=[name for name, _ in CONFIGURATIONS])
def test_every_yaml_block_passes_check(block: str, tmp_path: Path) -> None:
    for _, rubric in RUBRICS:
        rubric_of(rubric, tmp_path)
    if block.startswith("- {contract:"):  # the one file that is not a configuration
        (tmp_path / "calibration.yaml").write_text(block)
        block = "judge: {base_url: https://judge.example/v1, model: m, calibration: calibration.yaml}\n"
    if "python:" in block:  # the tests of checks in Python have its package
        pytest.skip("needs a package that the page brings")
    (tmp_path / "tracegrade.yaml").write_text(block)
    report = check(
        tmp_path / "tracegrade.yaml",
        {"ALERT_WEBHOOK": "https://alerts.example/hook", "OPENAI_API_KEY": "k", "LEDGER_URL": "sqlite://"},
    )
    assert report.errors == ()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_what_the_documents_point_at_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    linked = [target for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if "://" not in target]
    named = re.findall(r"`((?:pipeline|collectors|sinks|tests|deploy|docs)/[\w./-]+)`", text)
    missing = [target for target in linked if not (path.parent / target).exists()] + [
        name for name in named if not (ROOT / name).exists()
    ]
    assert missing == []
