"""Checks that packages bring: loaded for real, held to what they declare, and harmless where they break."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from assembly_law import grading
from pydantic import SecretStr
from run_builders import a_call, a_failure, a_model_step, a_run, a_wish

from pipeline.errors import ConfigurationError
from pipeline.model.evidence import Evidence, Found, answered
from pipeline.model.result import Outcome
from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.model.step import Message, ToolCall, ToolDefinition, Usage
from pipeline.scorers import checks
from pipeline.scorers.check import Finding, Missing, measured, ruled, unknown
from pipeline.scorers.installed import source_hash, validated
from pipeline.scorers.laws import broken_laws
from pipeline.scorers.plug_in import Needs, NoSettings, Observed, PlugIn, PlugInKind
from pipeline.scorers.plug_ins import SCORERS, PythonSettings, found_by, python_check
from pipeline.scorers.reading import Source
from pipeline.scorers.registry import ChecksSettings
from pipeline.stages.grade import grade

PAGE = Path(__file__).parents[3] / "docs" / "checks.md"
BLOCKS = dict(re.findall(r"^`([\w.]+)`\n```\w+\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
MODULE = """
from pipeline.scorers.check import ruled
from pipeline.scorers.plug_in import PlugIn

def measure(seen, settings):
    {body}

CHECK = PlugIn(name={name!r}, about="Ours.", measure=measure)
"""


def a_package(folder: Path, module: str, text: str, entry: str = "ours", version: str = "1.0") -> None:
    """A module, and what an installer writes beside it."""
    (folder / f"{module}.py").write_text(text)
    installed = folder / f"{module}-{version}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: {version}\n")
    (installed / "entry_points.txt").write_text(f"[{SCORERS.name}]\n{entry} = {module}:CHECK\n")


def plug_in(measure: Callable[[Observed, Any], Any], **fields: Any) -> PlugIn:
    return PlugIn(name="ours", about="Ours.", measure=measure, **fields)


def found(check: PlugIn, run: Run) -> Finding | None:
    return found_by(check, run, NoSettings())


def test_an_installed_check_is_used_by_its_name_under_a_name_of_its_own(folder: Path) -> None:
    a_package(folder, "installed_check", MODULE.format(name="ours", body="return ruled(len(seen.run.tool_calls) == 1, 'why')"))
    settings = ChecksSettings.model_validate({"python": [{"name": "one_call", "use": "ours"}]})
    check = next(one for one in checks(settings) if one.name == "one_call")
    assert check.gates
    assert check.terms is not None
    assert check.terms.check_definition == {
        "rule": "python",
        "version": 1,
        "plug_in": "ours",
        "package": "installed-check 1.0",
        "source": source_hash("installed_check"),
        "kind": "rule",
        "requires": [],
        "settings": {},
    }
    results = [check.score(a_run(*calls)) for calls in ((a_call("a"),), ())]
    assert [(one.outcome, one.value, one.reason) for one in results if one] == [
        (Outcome.PASS, 1.0, "why"),
        (Outcome.FAIL, 0.0, "why"),
    ]


def test_another_source_another_version_and_other_settings_are_another_contract(folder: Path) -> None:
    body = MODULE.format(name="ours", body="return ruled(True)")
    contracts = []
    for number, (module, version, text) in enumerate(
        [("a_check", "1.0", body), ("a_check", "1.1", body), ("a_check", "1.0", body + "# changed\n")]
    ):
        place = folder / str(number)
        place.mkdir()
        sys.path.insert(0, str(place))
        try:
            a_package(place, module, text, version=version)
            contracts.append(python_check(PythonSettings(name="ours")).contract)
        finally:
            sys.path.remove(str(place))
            del sys.modules[module]
    assert len(set(contracts)) == 3


def test_the_source_of_a_package_is_all_of_its_modules(folder: Path) -> None:
    package = folder / "of_many_modules"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "rules.py").write_text("from of_many_modules.inner.limit import LIMIT\n")
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "limit.py").write_text("LIMIT = 1\n")
    import_module("of_many_modules.rules")
    before = source_hash("of_many_modules.rules")
    (package / "inner" / "limit.py").write_text("LIMIT = 2\n")
    assert source_hash("of_many_modules.rules") != before


def test_a_namespace_that_packages_share_is_nobodys_source_and_what_was_not_loaded_has_none(folder: Path) -> None:
    package = folder / "shared_by_many" / "of_ours"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "rules.py").write_text("LIMIT = 1\n")
    import_module("shared_by_many.of_ours.rules")
    before = source_hash("shared_by_many.of_ours.rules")
    assert re.fullmatch("[0-9a-f]{16}", before)
    (folder / "shared_by_many" / "of_others.py").write_text("LIMIT = 1\n")
    assert source_hash("shared_by_many.of_ours.rules") == before
    (package / "rules.py").write_text("LIMIT = 2\n")
    assert source_hash("shared_by_many.of_ours.rules") != before
    assert source_hash("of.nobody") == source_hash("nowhere") != before


def test_an_entry_point_of_no_package_is_of_none(folder: Path) -> None:
    (folder / "bare_check.py").write_text(MODULE.format(name="ours", body="pass"))
    check = python_check(PythonSettings(name="ours"), found=[EntryPoint("ours", "bare_check:CHECK", SCORERS.name)])
    assert check.terms is not None
    assert check.terms.check_definition["package"] == ""


def test_a_package_that_breaks_is_named(folder: Path) -> None:
    a_package(folder, "named_check", "CHECK = 'ours'")
    with pytest.raises(ConfigurationError, match="the check ours = named_check:CHECK of named-check is a str and no PlugIn"):
        python_check(PythonSettings(name="ours"))


class Window(Settings):
    """What a check can be set to, in part secret."""

    hours: tuple[int, ...] = ()
    key: SecretStr = SecretStr("")


@pytest.mark.parametrize(
    ("settings", "written", "sentence"),
    [
        (
            Window,
            {"hours": [1, "x"]},
            r"mine: settings\.hours\.1: Input should be a valid integer.*; ours can be set by: hours, key$",
        ),
        (Window, {"hours": 3, "key": 4}, r"mine: settings\.hours: "),
        (Window, {"key": 4711}, r"mine: settings\.key: Input should be a valid string; ours can be set by: hours, key$"),
        (NoSettings, {"hour": 1}, r"mine: settings\.hour: Extra inputs are not permitted; ours can be set by: nothing$"),
    ],
)
def test_settings_that_a_check_does_not_take_are_a_sentence_without_what_was_written(
    settings: type[Settings], written: dict[str, Any], sentence: str
) -> None:
    check = plug_in(lambda *_: None, settings=settings)
    with pytest.raises(ConfigurationError, match=sentence) as refused:
        validated(check, written, "mine")
    assert "4711" not in str(refused.value)


def test_settings_that_it_takes_are_given_to_it() -> None:
    assert validated(plug_in(lambda *_: None, settings=Window), {"hours": [8, 17]}, "mine") == Window(hours=(8, 17))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("absent", None, r"the check ours = absent:CHECK cannot be loaded \(ModuleNotFoundError: .*\); mend the package"),
        ("breaks", "raise RuntimeError('no')", r"cannot be loaded \(RuntimeError: no\)"),
        ("leaves", "raise SystemExit(3)", r"cannot be loaded \(SystemExit: 3\)"),
        ("wrong", "CHECK = 'ours'", r"ours = wrong:CHECK is a str and no PlugIn; name the module's PlugIn"),
        ("other", MODULE.format(name="theirs", body="pass"), r"calls itself 'theirs'; give the entry point the same name"),
        (
            "idle",
            MODULE.format(name="ours", body="pass").replace("=measure", "=1"),
            r"has no function measure; write def measure",
        ),
        (
            "unset",
            MODULE.format(name="ours", body="pass").replace('about="Ours.",', 'about="Ours.", settings=dict,'),
            r"has settings that are no class of pipeline.model.settings.Settings; derive one",
        ),
    ],
)
def test_what_cannot_be_loaded_is_a_sentence(name: str, text: str | None, sentence: str, folder: Path) -> None:
    if text is not None:
        (folder / f"{name}.py").write_text(text)
    with pytest.raises(ConfigurationError, match=sentence):
        python_check(PythonSettings(name="ours"), found=[EntryPoint("ours", f"{name}:CHECK", SCORERS.name)])


def test_what_is_not_installed_or_installed_twice_is_a_sentence() -> None:
    entries = [
        EntryPoint("a", "one:CHECK", SCORERS.name),
        EntryPoint("b", "two:CHECK", SCORERS.name),
        EntryPoint("b", "three:CHECK", SCORERS.name),
    ]
    with pytest.raises(ConfigurationError, match=r"no installed package brings a check 'c'; those that are installed: a, b$"):
        python_check(PythonSettings(name="mine", use="c"), found=entries)
    with pytest.raises(ConfigurationError, match=r"no installed package brings a check 'c'; those that are installed: none$"):
        python_check(PythonSettings(name="c"), found=[])
    with pytest.raises(ConfigurationError, match=r"the check b = three:CHECK and the check b = two:CHECK have one name"):
        python_check(PythonSettings(name="b"), found=entries)


def test_nothing_is_loaded_that_is_not_used(folder: Path) -> None:
    a_package(folder, "breaks_when_loaded", "raise RuntimeError('no')")
    assert checks(ChecksSettings())


def claimed(words: str) -> Run:
    message = Message("assistant", words, (a_call("refund", {"id": 1}),))
    step = msgspec.structs.replace(a_model_step(), input=(Message("user", "Hello"), message), output=(message,))
    return a_run(a_call("refund", {"id": 1}), steps=(step,), messages=(message,), answer=words, request="Hello")


def test_a_check_sees_what_was_observed_and_not_what_the_agent_says() -> None:
    def texts(seen: Observed, _: Any) -> Finding:
        return ruled("REFUNDED" not in repr(seen), repr(seen))

    run = claimed("REFUNDED")
    assert found(plug_in(texts), run) == found(plug_in(texts), claimed("nothing"))
    silent = found(plug_in(texts), run)
    assert silent is not None
    assert silent.outcome is Outcome.PASS
    seeing = found(plug_in(texts, requires=(Needs.ANSWER,)), run)
    assert seeing is not None
    assert seeing.outcome is Outcome.FAIL


def test_what_the_user_asked_and_what_tools_returned_is_there() -> None:
    def all_of_it(seen: Observed, _: Any) -> Finding:
        (call,) = seen.run.tool_calls
        asked = [one.text for step in seen.run.steps for one in step.input]
        return ruled(asked == ["Hello", ""] and seen.run.request == "Hello" and call.result == "ok")

    result = found(plug_in(all_of_it), claimed("REFUNDED"))
    assert result is not None
    assert result.outcome is Outcome.PASS


MODEL = a_model_step("no_content")
CALL = a_call("refund", {"id": 1})


@pytest.mark.parametrize(
    ("need", "run", "reason"),
    [
        (Needs.ANSWER, a_run(answer=None, steps=(MODEL,)), "answer_not_captured: the answer was not captured"),
        (Needs.CALLS, a_run(steps=(MODEL,)), "calls_not_captured: the models' content was not captured"),
        (Needs.CALLS, a_run(a_wish("refund")), "execution_not_captured: call of refund"),
        (Needs.ARGUMENTS, a_run(CALL, ToolCall("cancel", raw_arguments='{"i')), "arguments_not_captured: call of cancel"),
        (Needs.RESULTS, a_run(CALL, a_call("cancel", {}, result=None)), "results_not_captured: call of cancel"),
        (Needs.TOOLS, a_run(CALL), "tools_not_captured: the offered tools were not captured"),
        (Needs.USAGE, a_run(usage=Usage(input=3)), "usage_not_captured: the tokens were not captured"),
        (Needs.TIMES, a_run(end_ns=1), "times_not_captured: the run has no start, or ends before it"),
        (Needs.TIMES, a_run(start_ns=0), "times_not_captured: the run has no start, or ends before it"),
    ],
)
def test_without_the_evidence_that_it_requires_a_check_is_not_asked(need: Needs, run: Run, reason: str) -> None:
    def never(*_: object) -> Finding:
        raise AssertionError("it was asked")

    for lower, upper in ((0.0, 1.0), (-1.0, None)):
        result = found(plug_in(never, requires=(need,), lower=lower, upper=upper), run)
        assert result == Finding(Outcome.INSUFFICIENT_EVIDENCE, None, lower, upper, reason)


@pytest.mark.parametrize(
    ("need", "run"),
    [
        (Needs.CALLS, a_run()),
        (Needs.CALLS, a_run(a_call("refund", result=None))),
        (Needs.ARGUMENTS, a_run(CALL, a_wish("refund"))),
        (Needs.RESULTS, a_run(CALL, a_failure("refund"))),
        (Needs.TOOLS, a_run(CALL, tools=(ToolDefinition("refund"),))),
        (Needs.TOOLS, a_run()),
        (Needs.USAGE, a_run(usage=Usage(input=3, output=0))),
        (Needs.TIMES, a_run()),
        (Needs.TIMES, a_run(start_ns=1, end_ns=1)),
    ],
)
def test_with_it_the_check_is_asked(need: Needs, run: Run) -> None:
    assert found(plug_in(lambda *_: ruled(True), requires=(need,)), run) == ruled(True)


def test_a_check_of_the_answer_does_not_concern_a_run_that_is_known_to_have_none() -> None:
    assert found(plug_in(lambda *_: ruled(True), requires=(Needs.ANSWER,)), a_run(answer=" ")) is None


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (True, "returned a bool; return ruled"),
        (Finding(Outcome.PASS, None, None, None), "the value None, which is no number"),
        (Finding(Outcome.PASS, float("nan"), 0.0, 1.0), "which is no number"),
        (Finding(Outcome.PASS, True, True, True), "the value True, which is no number"),
        (Finding("pass", 1.0, 1.0, 1.0), "returned a Finding; return ruled"),  # type: ignore[arg-type]
        (measured(0.5, holds=True), "is a rule and returned 0.5; return ruled"),
        (Finding(Outcome.INSUFFICIENT_EVIDENCE, None, 0.0, 1.0, "dunno"), r"could not tell, and not why; return unknown"),
        (Finding(Outcome.INSUFFICIENT_EVIDENCE, 0.5, 0.0, 1.0, "usage_not_captured: x"), "could not tell, and not why"),
    ],
)
def test_what_is_no_finding_is_refused(returned: Any, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        found(plug_in(lambda *_: returned), a_run())


def test_what_it_says_is_kept_as_far_as_there_is_room() -> None:
    said = found(plug_in(lambda *_: ruled(True, "r" * 601, "e" * 601)), a_run())
    assert said == ruled(True, "r" * 600, "e" * 600)
    unsure = unknown(Missing.USAGE_NOT_CAPTURED, "a call: it does not say")
    assert found(plug_in(lambda *_: unsure), a_run()) == unsure


def test_a_check_that_would_end_the_process_ends_nothing() -> None:
    def leaves(*_: object) -> Finding:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match=r"it wanted to end the process \(3\)"):
        found(plug_in(leaves), a_run())


def test_what_a_check_does_to_what_it_is_given_reaches_nobody_else() -> None:
    run = a_run(a_call("refund", {"id": [1]}))

    def clears(seen: Observed, _: Any) -> Finding:
        seen.run.tool_calls[0].arguments["id"].clear()
        return ruled(True)

    for requires in ((), (Needs.ANSWER,)):
        assert found(plug_in(clears, requires=requires), run) == ruled(True)
    assert run == a_run(a_call("refund", {"id": [1]}))


def test_a_measurement_may_be_any_number() -> None:
    check = plug_in(lambda *_: measured(7.5, holds=True), kind=PlugInKind.MEASUREMENT)
    assert found(check, a_run()) == measured(7.5, holds=True)


@pytest.mark.parametrize(
    "body",
    [
        "raise KeyError('x')",
        "raise SystemExit(1)",
        "return 'yes'",
        "return measure(seen, settings)",
        "seen.run.tool_calls[0].arguments.clear() or [][0]",
    ],
)
def test_a_check_that_breaks_is_a_grader_error_and_costs_nobody_else_a_score(body: str, folder: Path) -> None:
    a_package(folder, "breaking_check", MODULE.format(name="ours", body=body))
    policy = {"name": "refund_once", "at_most": {"tool": "refund", "times": 1, "per": "id"}}
    run = a_run(a_call("refund", {"id": 1}), a_call("refund", {"id": 1}))
    without = grade(run, 1, [], [], None, grading(checks={"policies": [policy]}, rubric=None), 0, 0).version.results
    broken = grading(checks={"policies": [policy], "python": [{"name": "ours"}]}, rubric=None)
    results = {one.dimension: one for one in grade(run, 1, [], [], None, broken, 0, 0).version.results}
    ours = results.pop("ours")
    assert (ours.outcome, ours.value) == (Outcome.GRADER_ERROR, None)
    assert ours.reason.startswith("grader_error: ")
    told = {one.dimension: (one.outcome, one.value, one.reason) for one in without if one.dimension != "verdict"}
    assert told == {name: (one.outcome, one.value, one.reason) for name, one in results.items() if name != "verdict"}


SET = """
from decimal import Decimal
from pydantic import Field
from pipeline.model.settings import Settings
from pipeline.scorers.check import measured
from pipeline.scorers.plug_in import PlugIn, PlugInKind

class Window(Settings):
    begin: Decimal = Field(alias="from", default=Decimal(0))
    hours: tuple[int, ...] = ()

def measure(seen, settings):
    return measured(float(settings.begin) + len(settings.hours), holds=True)

CHECK = PlugIn(name="ours", about="Ours.", measure=measure, kind=PlugInKind.MEASUREMENT, settings=Window)
"""


def test_what_is_set_is_in_the_contract_as_it_is_written_and_the_check_is_given_it(folder: Path) -> None:
    a_package(folder, "set_check", SET)
    written = {"from": "0.5", "hours": [8, 17]}
    check = python_check(PythonSettings(name="ours", settings=written))
    assert check.terms is not None
    assert check.terms.check_definition["settings"] == written
    assert check.measure(a_run()) == measured(2.5, holds=True)


@pytest.mark.parametrize(("gate", "rule", "measurement"), [(None, True, False), (True, True, True), (False, False, False)])
def test_a_rule_gates_and_a_measurement_does_not_unless_it_is_written(
    gate: bool | None, rule: bool, measurement: bool, folder: Path
) -> None:
    a_package(folder, "ruling_check", MODULE.format(name="theirs", body="pass"), "theirs")
    a_package(folder, "set_check", SET)
    assert python_check(PythonSettings(name="theirs", gate=gate)).gates is rule
    assert python_check(PythonSettings(name="ours", gate=gate)).gates is measurement


def test_only_what_is_written_to_be_safety_is(folder: Path) -> None:
    a_package(folder, "set_check", SET)
    assert [python_check(PythonSettings(name="ours", safety=safety)).is_safety for safety in (False, True)] == [False, True]


TURNS = count()
READS = {"source": "payments", "each": "refund", "key": {"order": "arguments.id"}}
SOURCES = {"payments": Source("payments", {"kind": "http"}, frozenset({"order"}))}
READING = """
from pipeline.scorers.check import ruled
from pipeline.scorers.plug_in import PlugIn

def measure(seen, settings):
    return ruled(all(one.found == "record" for one in seen.records), f"{len(seen.records)} read", seen.records[0].body)

CHECK = PlugIn(name="ours", about="Ours.", measure=measure)
"""


def test_a_check_can_be_given_what_was_read_of_a_source_all_of_it_or_nothing(folder: Path) -> None:
    a_package(folder, "reading_check", READING)
    settings = ChecksSettings.model_validate({"python": [{"name": "ours", "reads": READS}]})
    check = next(one for one in checks(settings, sources=SOURCES) if one.name == "ours")
    run = a_run(a_call("refund", {"id": 1}), a_call("refund", {"id": 2}))
    first, second = check.questions(run)
    body = answered(first, Found.RECORD, 0, body='{"state":"done"}')

    def outcome(other: Evidence | None) -> tuple[Outcome | None, str]:
        result = check.score(run, {one.id: one for one in (body, other) if one is not None})
        assert result is not None
        return result.outcome, result.reason

    assert outcome(answered(second, Found.RECORD, 0, body="{}")) == (Outcome.PASS, "2 read")
    assert outcome(answered(second, Found.ABSENT, 0)) == (Outcome.FAIL, "2 read")
    failed = answered(second, Found.FAILED, 0, error="status 503")
    assert outcome(failed) == (Outcome.INSUFFICIENT_EVIDENCE, "record_not_read: payments order=2: status 503")
    assert outcome(None) == (Outcome.INSUFFICIENT_EVIDENCE, "record_not_read: payments order=2 was not read")
    for doubtful, reason in (
        (a_wish("refund", {"id": 1}), "execution_not_captured: call of refund"),
        (a_call("refund", {}), "arguments_not_comparable: call of refund"),
    ):
        unsure = check.score(a_run(doubtful))
        assert unsure is not None
        assert (unsure.outcome, unsure.reason) == (Outcome.INSUFFICIENT_EVIDENCE, reason)
    assert check.terms is not None
    assert check.terms.check_definition["reads"] == READS | {"source": {"name": "payments", "kind": "http"}}


BROKEN: dict[str, tuple[Callable[[Observed, Any], Any], str]] = {
    "raises": (lambda seen, _: ruled(seen.run.tool_calls[0].arguments["id"] == 1), "without calls: IndexError"),
    "returns anything": (lambda *_: 1, "the run as it is: TypeError"),
    "is of two minds": (lambda *_: ruled(next(TURNS) % 2 == 0, "x"), "asked twice, it finds two"),
    "changes": (lambda seen, _: ruled(seen.run.tool_calls[0].arguments.pop("id") == 1), "it changes what it was given"),
    "never applies": (lambda *_: None, "it applies to none of these runs"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_law_is_seen_to_be_broken(name: str) -> None:
    measure, sentence = BROKEN[name]
    broken = broken_laws(plug_in(measure), a_run(a_call("refund", {"id": 1})))
    assert any(one.startswith(sentence) for one in broken), broken


def test_a_sound_check_breaks_no_law() -> None:
    def at_most_two(seen: Observed, _: Any) -> Finding | None:
        if any(call.result is None for call in seen.run.tool_calls):
            return unknown(Missing.RESULTS_NOT_CAPTURED, "of a call")
        return ruled(len(seen.run.tool_calls) <= 2, f"{len(seen.run.tool_calls)} calls")

    assert broken_laws(plug_in(at_most_two), a_run(a_call("a")), a_run(*[a_call("a")] * 3)) == []
    assert broken_laws(plug_in(at_most_two)) == ["it was tried on no run; give it one that it passes and one that it fails"]


@pytest.fixture
def example(folder: Path) -> Path:
    """The package of the page, installed."""
    project = tomllib.loads(BLOCKS["pyproject.toml"])["project"]
    for name, text in BLOCKS.items():
        (folder / name).write_text(text)
    installed = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = "".join(f"{name} = {value}\n" for name, value in project["entry-points"][SCORERS.name].items())
    (installed / "entry_points.txt").write_text(f"[{SCORERS.name}]\n{points}")
    return folder


def check_command(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """``tracegrade check`` as one finds it after installing packages into the folder."""
    (folder / "tracegrade.yaml").write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(Path.cwd())])}
    command = [sys.executable, "-m", "pipeline.apps", "check", str(folder / "tracegrade.yaml")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_page_has_all_files_of_the_example() -> None:
    assert BLOCKS.keys() == {"refund_checks.py", "pyproject.toml", "test_refund_checks.py"}


@pytest.mark.usefixtures("example")
def test_the_examples_own_tests_pass() -> None:
    tests = import_module("test_refund_checks")
    tests.test_the_check_keeps_the_laws()
    tests.test_a_cent_too_much_is_a_fail()


def test_the_command_line_knows_the_example_and_says_what_is_wrong_with_its_settings(example: Path) -> None:
    written = next(text for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if "python:" in text)
    right = check_command(example, written)
    assert right.returncode == 0, right.stderr
    assert re.search(r"refund_within_order +code +[0-9a-f]{16} +gates", right.stdout)
    wrong = check_command(example, written.replace("tolerance:", "slack:"))
    assert wrong.returncode != 0
    said = wrong.stdout + wrong.stderr
    assert "tracegrade.yaml:5: agents.default.checks.python[0]: refund_within_order: settings.slack:" in said, said
    assert "refund_within_order can be set by: tolerance" in said
    assert "Traceback" not in said
