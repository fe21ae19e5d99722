"""What ``tracegrade check`` has to say."""

from pathlib import Path

import msgspec
import pytest

from pipeline.config.check import check, summary
from pipeline.config.grading import grading_of
from pipeline.config.load import load
from pipeline.config.tracegrade import TracegradeSettings

TEXT = """
agents:
  refunds:
    sampling: {rate: 0.25}
    checks:
      limits: {steps: {max: 60, gate: true}}
      policies: [{name: once, at_most: {tool: refund, times: 1}}]
  batch: {rubric: null}
judge: {base_url: "http://127.0.0.1:1/v1", model: judge-1}
gates:
  - {name: quality, kind: floor, agent: refunds, dimension: tone, measure: mean, raise_below: 3, clear_above: 4, window: 1h}
  - {name: rules, kind: hard, notify: [b]}
alerts:
  - {name: a, webhook: "https://alerts.example.com/a"}
  - {name: b, webhook: "https://alerts.example.com/b"}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "tracegrade.yaml").write_text(TEXT.lstrip("\n"), encoding="utf-8")
    return tmp_path / "tracegrade.yaml"


def test_a_right_file_has_a_summary_and_no_errors(path: Path) -> None:
    report = check(path, {})
    assert report.ok
    assert report.errors == ()
    assert report.summary is not None
    assert [agent.agent for agent in report.summary.agents] == ["default", "refunds", "batch"]


def test_a_wrong_file_has_errors_and_no_summary(path: Path) -> None:
    path.write_text("stor: 1\n", encoding="utf-8")
    report = check(path, {})
    assert not report.ok
    assert report.errors[0].startswith(f"{path}:1: stor: unknown key")
    assert (report.warnings, report.summary) == ((), None)


def test_no_file_is_checked_as_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = check(None, {})
    assert report.ok
    assert report.summary == summary(TracegradeSettings())


def test_it_names_the_contracts_that_results_will_carry(path: Path) -> None:
    report = check(path, {})
    assert report.summary is not None
    grading = grading_of(load(path, {}))("default", "refunds")
    expected = {one.name: one.contract for one in grading.checks} | {one.name: one.contract for one in grading.judged}
    expected["verdict"] = grading.contract
    refunds = report.summary.agents[1]
    assert {one.dimension: one.contract for one in refunds.dimensions} == expected
    assert {one.dimension for one in refunds.dimensions if one.gates} == {
        "answer_present",
        "steps",
        "once",
        "correctness",
        "policy_and_safety",
    }
    text = "\n".join(report.summary.lines())
    assert all(contract in text for contract in expected.values())


def test_it_says_what_each_gate_watches_whom_it_tells_and_why_it_holds(path: Path) -> None:
    report = check(path, {})
    assert report.summary is not None
    quality, rules = report.summary.gates
    assert quality.dimensions == {"refunds": ("tone",)}
    assert quality.rule.startswith("mean over 1h: trips below 3, clears after 3 windows at 4 or more; needs 10 decided runs")
    assert quality.notifies == ("a", "b")
    assert "the judge is uncalibrated for tone" in quality.holds["refunds"]
    assert rules.dimensions == {
        "default": ("answer_present",),
        "refunds": ("answer_present", "once", "steps"),
        "batch": ("answer_present",),
    }
    assert rules.notifies == ("b",)
    assert rules.holds == {}


def test_the_summary_reads_in_a_terminal_and_as_json(path: Path) -> None:
    report = check(path, {})
    assert report.summary is not None
    lines = list(report.summary.lines())
    assert lines[0] == "project default, store tracegrade-data, judge judge-1 at http://127.0.0.1:1/v1"
    assert "agent refunds: rubric support 1, judged: 25% of runs and all with error, all with thumbs down" in lines
    assert "agent batch: no rubric, judged: nothing" in lines
    assert "  watches tone of refunds" in lines
    assert msgspec.json.decode(msgspec.json.encode(report))["summary"]["gates"][1]["gate"] == "rules"


def test_no_secret_is_in_it(path: Path) -> None:
    report = check(path, {"X": "y"})
    assert "alerts.example.com" not in msgspec.json.encode(report).decode()
