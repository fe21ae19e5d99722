"""A verdict and a comparison in a terminal: what is known is said, what is not is no number, and text from runs is only text."""

import msgspec
import pytest
from grades_builders import a_check, stored
from msgspec.structs import replace
from rich.console import RenderableType

from pipeline.apps import show
from pipeline.apps.show_verdict import comparison, verdict
from pipeline.config.rubrics import load
from pipeline.model.result import Outcome
from pipeline.stages.compare import compare
from pipeline.stages.stored_grades import StoredGrades
from pipeline.stages.verdict import structured_verdict

UNKNOWN = Outcome.INSUFFICIENT_EVIDENCE
SUPPORT, AGENT_OUTPUT, CRITERIA = load("support"), load("agent-output"), load("criteria")


def printed(shown: RenderableType, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    console = show.console()
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def told(grades: StoredGrades, monkeypatch: pytest.MonkeyPatch) -> str:
    return printed(verdict(msgspec.to_builtins(structured_verdict(grades), str_keys=True)), monkeypatch)


def test_a_tier_its_action_and_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    text = told(stored(AGENT_OUTPUT, 4, 4, UNKNOWN, 4, 4), monkeypatch)
    assert "verdict       pass (ADEQUATE to GOOD): make targeted improvements" in text
    assert "composite     3.4 to 4.2, bar 2.5" in text
    assert "coverage      80% decided; passed 80% to 100%, with the undecided as fails and as passes" in text
    assert "gpt-5 (openai); rubric agent-output 1; contract " in text
    assert ", code c0ffee\n" in text
    assert "Required actions\n1. Capture what completeness needs" in text


def test_weights_gates_hard_criteria_and_gating_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = (a_check("once", Outcome.PASS), a_check("loops", Outcome.PASS))
    lines = told(stored(SUPPORT, 5, 5, 5, 5, 5, checks=checks, gating=frozenset({"once"})), monkeypatch).splitlines()
    rows = {line.split()[0]: " ".join(line.split()) for line in lines if line.strip()}
    assert rows["correctness"] == "correctness pass, alone 5 0.35, gate 3 what decided correctness"
    assert rows["tone"] == "tone pass, alone 5 0.10 what decided tone"
    assert (rows["once"], rows["loops"]) == ("once pass – gates", "loops pass –")
    assert "safe_refusal pass, alone 1 hard what decided" in " ".join(told(stored(CRITERIA, 1, 1, 1, 1), monkeypatch).split())


def test_what_only_shows_and_what_waits_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "pass, uncalibrated, shown only" in told(stored(SUPPORT, 5, 5, 5, 5, 5, authority="uncalibrated"), monkeypatch)
    assert "for a person  policy_and_safety" in told(stored(SUPPORT, 5, 5, UNKNOWN, 5, 5), monkeypatch)
    assert "verdict       pending: decide nothing on it yet" in told(stored(SUPPORT, 5, 5, None, 5, 5), monkeypatch)


def test_text_of_a_run_acts_on_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    grades = stored(SUPPORT, 5, 5, 2, 5, 5)
    hostile = tuple(replace(one, reason="\x1b[31mred\u202e", evidence="\x07[bold]") for one in grades.results)
    text = told(replace(grades, results=hostile), monkeypatch)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[bold]" in text


def test_a_comparison_says_which_way_and_by_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compare(stored(SUPPORT, 4, 5, 2, 5, 5), stored(SUPPORT, 5, 5, 5, UNKNOWN, 5))
    text = printed(comparison(msgspec.to_builtins(found, str_keys=True)), monkeypatch)
    assert "The second is better: +5 to +20\nthe first failed, whatever the composite" in text
    rows = {" ".join(line.split()) for line in text.splitlines()}
    assert {
        "composite better +5 to +20",
        "completeness equal 0",
        "policy_and_safety better +3",
        "format not decided -4 to 0",
    } <= rows
