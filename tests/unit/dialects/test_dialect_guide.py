"""The guide's example is a dialect: its module, its entry point, its trace and its test are taken from the page as they stand there."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from dialect_table import PAGE, TABLE, table
from recordings import runs_of

from collectors.dialects.dialect import Dialect
from collectors.dialects.plug_ins import GROUP, plugged_in
from collectors.dialects.reader import Reader
from collectors.replay.arrived import arrived
from pipeline.apps.explain.explanation import explained
from pipeline.model.run import Ended
from pipeline.model.step import ToolCall, Usage

BLOCKS = dict(re.findall(r"^`([\w.]+)`\n```\w+\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the files of the page, from which modules can be imported."""
    made = tmp_path_factory.mktemp("guide")
    for name, text in BLOCKS.items():
        (made / name).write_text(text)
    sys.path.insert(0, str(made))
    yield made
    sys.path.remove(str(made))
    for name in ("tidepool_dialect", "test_tidepool_dialect"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def dialect(folder: Path) -> Dialect:
    """The dialect, as its entry point names it."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    ((name, value),) = project["project"]["entry-points"][GROUP].items()
    (loaded,) = plugged_in([EntryPoint(name, value, GROUP)])
    return loaded


def test_the_page_has_all_files_of_the_example() -> None:
    assert BLOCKS.keys() == {"tidepool_dialect.py", "pyproject.toml", "test_tidepool_dialect.py", "trace.json"}


def test_the_table_says_what_the_dialects_say_of_themselves() -> None:
    (written,) = TABLE.findall(PAGE.read_text())
    assert written == table(), "write it anew: python tests/dialect_table.py --write"


@pytest.mark.usefixtures("dialect")
def test_the_examples_own_test_passes(folder: Path) -> None:
    assert (folder / "test_tidepool_dialect.py").exists()
    import_module("test_tidepool_dialect").test_the_dialect_keeps_the_laws()


def test_the_examples_trace_is_the_run_that_it_is_of(dialect: Dialect, folder: Path) -> None:
    spans, logs = arrived([folder / "trace.json"])
    explanation = explained(spans, logs, Reader((dialect,)))
    assert [(note.name, note.depth, note.rule, note.what) for note in explanation.spans] == [
        ("support", 0, "scope.name is tidepool", "agent support"),
        ("think", 1, "scope.name is tidepool", "model call gpt-x"),
        ("call", 1, "scope.name is tidepool", "tool call lookup"),
    ]
    (run,) = (note.run for note in explanation.runs)
    assert (run.place.cohort.agent, run.conversation_id) == ("support", "thread-1")
    assert (run.request, run.answer, run.ended, run.usage) == ("Where is A-1?", "At home.", Ended.ANSWER, Usage(120, 30))
    assert run.tool_calls == (ToolCall("lookup", "c1", {"id": "A-1"}, result="home"),)
    assert explanation.unused == ()


def test_without_the_dialect_nobody_knows_these_spans(folder: Path) -> None:
    spans, _ = arrived([folder / "trace.json"])
    assert runs_of(spans) == []
    assert json.loads(BLOCKS["trace.json"])
