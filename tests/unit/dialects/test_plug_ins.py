"""A dialect of one's own: a module and an entry point, there at the next start; what cannot be loaded is a sentence."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from builders import a_span

from collectors.dialects import DIALECTS, plug_ins
from collectors.dialects.plug_ins import GROUP, plugged_in
from pipeline.errors import ConfigurationError

MODULE = """
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.steps import step_of
from pipeline.model.step import StepKind

def read(span):
    return step_of(span, "{name}", StepKind.AGENT, agent="plugged")

DIALECT = Dialect("{name}", About("Ours", "everything"), Marks(scopes=({scopes})), read)
"""


def a_package(folder: Path, module: str, text: str) -> None:
    """A module, and what an installer writes beside it."""
    (folder / f"{module}.py").write_text(text)
    installed = folder / f"{module}-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{GROUP}]\nours = {module}:DIALECT\n")


def test_an_installed_dialect_reads_its_spans_before_those_that_are_built_in(folder: Path) -> None:
    a_package(folder, "plugged_agents", MODULE.format(name="ours", scopes="'pydantic-ai', 'ours'"))
    reader = plug_ins.installed()
    assert [dialect.name for dialect in reader.dialects] == ["ours", *(dialect.name for dialect in DIALECTS)]
    for scope in ("ours", "pydantic-ai"):
        step = reader.read(a_span(scope_name=scope))
        assert (step.dialect, step.agent) == ("ours", "plugged")
    assert reader.read(a_span(scope_name="ai")).dialect == "vercel"


def test_without_plug_ins_there_is_what_is_built_in() -> None:
    assert plug_ins.installed().dialects == DIALECTS


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("absent", None, r"the dialect ours = absent:DIALECT cannot be loaded \(ModuleNotFoundError: .*\); mend or remove it"),
        ("breaks", "raise RuntimeError('no')", r"cannot be loaded \(RuntimeError: no\); mend or remove it"),
        ("nameless", "dialect = 1", r"cannot be loaded \(AttributeError: .*\)"),
        ("wrong", "DIALECT = 'ours'", r"ours = wrong:DIALECT is a str and no Dialect; name the module's DIALECT"),
        ("taken", MODULE.format(name="genai", scopes="'x',"), r"is called 'genai', as is one of tracegrade itself; rename one"),
        ("markless", MODULE.format(name="ours", scopes=""), r"has no marks, so no span is ever in it"),
    ],
)
def test_what_cannot_be_loaded_is_a_sentence(name: str, text: str | None, sentence: str, folder: Path) -> None:
    if text is not None:
        (folder / f"{name}.py").write_text(text)
    with pytest.raises(ConfigurationError, match=sentence):
        plugged_in([EntryPoint("ours", f"{name}:DIALECT", GROUP)])


def test_two_plug_ins_of_one_name_are_told_apart_by_where_they_come_from(folder: Path) -> None:
    for module in ("one_of_two", "two_of_two"):
        (folder / f"{module}.py").write_text(MODULE.format(name="ours", scopes="'x',"))
    entries = [EntryPoint("a", "one_of_two:DIALECT", GROUP), EntryPoint("b", "two_of_two:DIALECT", GROUP)]
    with pytest.raises(
        ConfigurationError, match="b = two_of_two:DIALECT is called 'ours', as is one of the dialect a = one_of_two"
    ):
        plugged_in(entries)


def start(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line as one finds it after installing a package into ``folder``."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(Path.cwd())])}
    return subprocess.run(
        [sys.executable, "-m", "pipeline.apps", *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_the_command_line_knows_an_installed_dialect_and_says_what_is_wrong_with_a_broken_one(tmp_path: Path) -> None:
    span = {
        "traceId": "ab" * 16,
        "spanId": "a1" * 8,
        "name": "go",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000001000000000",
    }
    request = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "ours"}, "spans": [span]}]}]}
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps(request))
    a_package(tmp_path, "installed_here", MODULE.format(name="ours", scopes="'ours',"))
    shown = json.loads(start(tmp_path, "explain", str(trace), "--json").stdout)
    (read,) = shown["spans"]
    assert (read["dialect"], read["rule"], read["what"]) == ("ours", "scope.name is ours", "agent plugged")
    assert [run["place"]["cohort"]["agent"] for run in shown["runs"]] == ["plugged"]
    (tmp_path / "installed_here.py").write_text("import nothing_of_this_name")
    broken = start(tmp_path, "explain", str(trace))
    assert broken.returncode == 2
    assert "tracegrade: the dialect ours = installed_here:DIALECT of installed-here cannot be loaded" in broken.stderr
    assert "Traceback" not in broken.stderr
