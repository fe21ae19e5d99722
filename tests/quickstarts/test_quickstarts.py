"""Each quick-start: the real framework with its real instrumentation, started as its page says. The run is what the script made happen."""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from quickstarts.conftest import Outcome
from quickstarts.pages import NAMES, page
from quickstarts.playing import Call, calls
from quickstarts.scenarios import HANDING_OVER, NO_CONTENT, PARALLEL, SCENARIOS, TOLD, TRAITS, Traits
from quickstarts.scripted_model import Served

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]


WITHOUT_CONTENT = [key for key in SCENARIOS if key.endswith(NO_CONTENT)]
WITH_CONTENT = [key for key in SCENARIOS if key not in WITHOUT_CONTENT]


@pytest.mark.parametrize("key", WITH_CONTENT, indirect=True)
def test_the_run_is_what_happened(key: str, outcome: Outcome) -> None:
    traits = TRAITS[key.partition(".")[0]]
    played, served, runs, _ = outcome
    assert len(served) == len(played.scenario.turns), f"the script was not played to its end: {played.err}"
    assert len(runs) == 1
    run = runs[0]
    line = run["line"]
    assert {
        "agent": line["cohort"]["agent"],
        "environment": line["cohort"]["environment"],
        "sub-agents": run["agents"],
        "request": run["request"],
        "answer": run["answer"],
        "ended": run["ended"],
        "model calls": run["model_calls"],
        "tokens": (run["input_tokens"], run["output_tokens"]),
    } == {
        "agent": traits.agent,
        "environment": key,
        "sub-agents": [traits.desk] if played.scenario.part == HANDING_OVER else [],
        "request": played.scenario.question,
        "answer": None if played.code else played.answer,
        "ended": "error" if played.code else "answer",
        "model calls": len(served),
        "tokens": _tokens(served, traits),
    }
    shown, true = run["tool_calls"], calls(played, served, traits)
    if played.scenario.question == PARALLEL.question:  # which of two calls of one turn begins first is chance
        shown = sorted(shown, key=lambda call: str(call["arguments"]))
    assert [_named(call) for call in shown] == [(call.tool, call.arguments, call.entered and call.error is None) for call in true]
    for one, call in zip(shown, true, strict=True):
        assert _told(one, call) or not (traits.error_text or played.scenario.part == TOLD)


def _tokens(served: Sequence[Served], traits: Traits) -> tuple[int, int]:
    """What the model counted, in and out; in a trace that counts reasoning twice, with it."""
    given = sum(one.usage.input for one in served)
    return given, sum(one.usage.output + traits.reasoning_twice * one.usage.reasoning for one in served)


def _named(call: Mapping[str, Any]) -> tuple[str, Any, bool]:
    return call["name"], call["arguments"], call["error"] is None


def _told(shown: Mapping[str, Any], call: Call) -> bool:
    """Whether what came of a call is shown: its result, as a value or as text, or the text of its error."""
    if call.error is not None:
        return call.error in shown["error"]
    if not call.entered:
        return True
    text = shown["result"]
    return bool(text == call.result or ast.literal_eval(text) == call.result)


@pytest.mark.parametrize("key", WITHOUT_CONTENT, indirect=True)
def test_without_content_a_run_has_what_is_none(key: str, outcome: Outcome) -> None:
    traits = TRAITS[key.partition(".")[0]]
    played, served, runs, _ = outcome
    assert (played.code, len(served), len(runs)) == (0, 3, 1), played.err
    run = runs[0]
    assert run["line"]["cohort"]["agent"] == traits.agent
    assert [call["name"] for call in run["tool_calls"]] == ["lookup_order", "issue_refund"]
    assert (run["input_tokens"], run["output_tokens"]) == _tokens(served, traits)
    assert (run["request"], run["answer"]) == ("", None)
    assert "no_content" in run["flags"]


@pytest.mark.parametrize("key", [f"{name}.success" for name in NAMES], indirect=True)
def test_what_will_be_seen_is_seen(key: str, outcome: Outcome) -> None:
    printed = {" ".join(line.split()) for line in outcome.printed.replace(key, "unknown").splitlines()}
    missing = [line for line in page(key.partition(".")[0]).seen if " ".join(line.split()) not in printed]
    assert missing == [], outcome.printed
