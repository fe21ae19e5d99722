"""Recordings of real frameworks against what really happened, as their tools and their model server wrote it down.

Where a trace does not hold a fact, a table says so, with the reason, and the test holds what is then said instead.
"""

import json
from typing import Any

import pytest
from recordings import CORPORA, otlp_spans, runs_of

from pipeline.model.run import Ended, Run
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import NOT_EXECUTED

LIVE = CORPORA / "live"
FRAMEWORKS = ("langgraph", "openai-agents", "smolagents", "langchain-openllmetry")
BARE_LOOPS = ("openai-v2", "openai-openllmetry")
Truth = dict[str, Any]


def truths(*folders: str) -> list[tuple[str, Truth]]:
    return [(folder, json.loads(line)) for folder in folders for line in (LIVE / folder / "truth.jsonl").read_text().splitlines()]


def cases(some: list[tuple[str, Truth]]) -> list[Any]:
    return [pytest.param(folder, truth, id=f"{folder}/{truth['scenario']}") for folder, truth in some]


def is_bare(folder: str, truth: Truth) -> bool:
    """With spans of the user's own around it (``_rootspan``) a loop is a trace, and no longer bare."""
    return folder in BARE_LOOPS and not truth["scenario"].endswith("_rootspan")


def recorded(folder: str, truth: Truth) -> list[Run]:
    return runs_of(otlp_spans(LIVE / folder / f"{truth['scenario']}.jsonl"))


EVERYTHING = truths(*FRAMEWORKS, *BARE_LOOPS)
IN_TRACES = [case for case in EVERYTHING if not is_bare(*case)]
BARE = [case for case in EVERYTHING if is_bare(*case)]
HANDED_OVER = [case for case in IN_TRACES if case[1]["handoff"]]
WITHOUT_CONTENT = {
    "refund_ok_nocontent": "the sender hides inputs and outputs",
    "refund_ok_nosensitive": "the sender leaves sensitive data out",
    "refund_ok_eventonly": "messages are in log records, which are another signal",
}
ERROR_TEXT_ABSENT = {
    "openai-agents": "the SDK redacts the text of a tool's exception, towards the model too",
}
SPAN_WITHOUT_EXECUTION = {
    ("langgraph", "bad_arguments"): "a failed TOOL span exists, though the function was never entered",
    ("openai-agents", "bad_arguments"): "a failed TOOL span exists, though the function was never entered",
    ("langchain-openllmetry", "bad_arguments"): "a failed TOOL span exists, though the function was never entered",
    ("langchain-openllmetry", "bad_arguments_handled"): "a failed TOOL span exists, though the function was never entered",
}
DELEGATION = {
    ("langgraph", "agent_as_tool"): "control returns to the caller: a call like any other",
    ("openai-agents", "agent_as_tool"): "control returns to the caller: a call like any other",
    ("smolagents", "handoff"): "a managed agent: control returns to the caller",
    ("langchain-openllmetry", "handoff"): "an agent in a tool: control returns to the caller",
}
"""Where truth's ``handoff`` is a call that returns, it is a tool call; where control goes over for good, it is none."""


def own_calls(run_or_runs: list[Run], truth: Truth) -> list[ToolCall]:
    others = {one["tool"] for one in truth["handoff"]}
    return [call for run in run_or_runs for call in run.tool_calls if call.name not in others]


def answers(truth: Truth) -> list[str | None]:
    told = truth.get("answers", truth["answer"])
    return told if isinstance(told, list) else [told]


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_the_run_is_that_agents(folder: str, truth: Truth) -> None:
    runs = recorded(folder, truth)
    assert [run.place.cohort.agent for run in runs] == [truth["agent"]] * len(answers(truth))


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_the_same_tools_were_called_in_the_same_order(folder: str, truth: Truth) -> None:
    calls = own_calls(recorded(folder, truth), truth)
    assert [call.name for call in calls] == [call["tool"] for call in truth["calls"]]


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_with_the_same_arguments(folder: str, truth: Truth) -> None:
    calls = own_calls(recorded(folder, truth), truth)
    hidden = truth["scenario"] in WITHOUT_CONTENT
    assert [call.arguments for call in calls] == [None if hidden else call["arguments"] for call in truth["calls"]]


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_what_failed_failed_and_what_never_ran_did_not_run(folder: str, truth: Truth) -> None:
    calls = own_calls(recorded(folder, truth), truth)
    assert [call.error is None for call in calls] == [call["ok"] for call in truth["calls"]]
    if (folder, truth["scenario"]) not in SPAN_WITHOUT_EXECUTION:
        executed = [call.get("executed", True) for call in truth["calls"]]
        assert [call.error != NOT_EXECUTED for call in calls] == executed


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_errors_say_what_was_raised(folder: str, truth: Truth) -> None:
    calls = own_calls(recorded(folder, truth), truth)
    for call, true in zip(calls, truth["calls"], strict=True):
        if call.error in (None, NOT_EXECUTED) or not true.get("executed", True):
            continue
        assert call.error is not None
        assert call.error == true["error"] or (folder in ERROR_TEXT_ABSENT and "redacted" in call.error)


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_results_are_what_the_model_was_told_or_else_what_the_tool_returned(folder: str, truth: Truth) -> None:
    calls = own_calls(recorded(folder, truth), truth)
    for call, true in zip(calls, truth["calls"], strict=True):
        told = true["error"] if true.get("executed") is False else true.get("told_model")
        if call.result is None:
            assert truth["scenario"] in WITHOUT_CONTENT or told is None
        elif told is not None and not (truth["ended"] == "error" and json_or_text(call.result) == true.get("result")):
            assert call.result == told
        else:
            assert json_or_text(call.result) == true["result"]


def json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_the_answer_is_what_the_user_got(folder: str, truth: Truth) -> None:
    runs = recorded(folder, truth)
    hidden = truth["scenario"] in WITHOUT_CONTENT
    assert [run.answer for run in runs] == [None if hidden else answer for answer in answers(truth)]


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_runs_end_as_they_ended(folder: str, truth: Truth) -> None:
    runs = recorded(folder, truth)
    ended = Ended.SILENCE if truth["scenario"] in WITHOUT_CONTENT else Ended(truth["ended"])
    assert [run.ended for run in runs] == [ended] * len(runs)
    assert all((run.error is None) == (ended is not Ended.ERROR) for run in runs)
    assert all(("no_content" in run.flags) == (truth["scenario"] in WITHOUT_CONTENT) for run in runs)


@pytest.mark.parametrize(("folder", "truth"), cases(EVERYTHING))
def test_model_calls_and_their_tokens_are_counted_once(folder: str, truth: Truth) -> None:
    runs = recorded(folder, truth)
    assert sum(run.model_calls for run in runs) == truth["model_calls"]
    assert sum(run.usage.input or 0 for run in runs) == truth["input_tokens"]
    assert sum(run.usage.output or 0 for run in runs) == truth["output_tokens"]


@pytest.mark.parametrize(("folder", "truth"), cases(HANDED_OVER))
def test_a_call_that_returns_is_a_tool_call_and_a_hand_over_is_none(folder: str, truth: Truth) -> None:
    (run,) = recorded(folder, truth)
    (delegated,) = truth["handoff"]
    found = [call for call in run.tool_calls if call.name == delegated["tool"]]
    if (folder, truth["scenario"]) in DELEGATION:
        (call,) = found
        assert (call.arguments, call.error) == (delegated["arguments"], None)
        assert call.result == (delegated["told_model"] or "Refunded 42.50 USD for A-1001.")
    else:
        assert found == []
        assert "handoff" in run.flags
    assert run.agents == (("refunds_desk",) if folder == "smolagents" else ("refunds-desk",))


@pytest.mark.parametrize(("folder", "truth"), cases(IN_TRACES))
def test_each_turn_asks_its_own_question(folder: str, truth: Truth) -> None:
    requests = [run.request for run in recorded(folder, truth)]
    if truth["scenario"] in WITHOUT_CONTENT:
        assert requests == [""]
    else:
        assert requests[0].startswith("[scenario:")
        assert len(set(requests)) == len(requests)


@pytest.mark.parametrize("folder", FRAMEWORKS)
def test_both_turns_of_a_session_name_their_conversation(folder: str) -> None:
    scenario = "session_using" if folder == "openai-agents" else "session"
    runs = runs_of(otlp_spans(LIVE / folder / f"{scenario}.jsonl"))
    assert [run.conversation_id for run in runs] == ["thread-1", "thread-1"]


# A bare loop has no span but those of its model calls, each a trace of its own: a run per model call. What each asked for was carried out
# between two traces, and no run can tell; the next trace's history belongs to the run before.


@pytest.mark.parametrize(("folder", "truth"), cases(BARE))
def test_a_bare_loop_is_a_run_for_each_model_call_of_the_services_own_agent(folder: str, truth: Truth) -> None:
    runs = recorded(folder, truth)
    assert len(runs) == truth["model_calls"]
    assert {run.place.cohort.agent for run in runs} == {"support-desk"}


@pytest.mark.parametrize(("folder", "truth"), cases(BARE))
def test_a_bare_loops_calls_are_each_asked_for_once_and_not_seen_to_run(folder: str, truth: Truth) -> None:
    calls = [call for run in recorded(folder, truth) for call in run.tool_calls]
    if truth["scenario"] in WITHOUT_CONTENT:
        assert calls == []
    else:
        assert [(call.name, call.arguments) for call in calls] == [(call["tool"], call["arguments"]) for call in truth["calls"]]
        assert {(call.error, call.result) for call in calls} <= {(NOT_EXECUTED, None)}


@pytest.mark.parametrize(("folder", "truth"), cases(BARE))
def test_only_the_runs_of_a_bare_loop_that_answer_have_an_answer(folder: str, truth: Truth) -> None:
    runs = recorded(folder, truth)
    found = [run.answer for run in runs if run.answer is not None]
    assert found == ([] if truth["scenario"] in WITHOUT_CONTENT else answers(truth))
    assert {run.ended for run in runs if run.answer is None} <= {Ended.SILENCE}


@pytest.mark.parametrize("folder", BARE_LOOPS)
def test_the_history_that_a_bare_loop_replays_is_there_to_be_read(folder: str) -> None:
    last = runs_of(otlp_spans(LIVE / folder / "refund_ok.jsonl"))[-1]
    assert [message.role for message in last.messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert last.request == "[scenario:refund_ok] Please help with my order."
    assert last.system == "You are a support agent. Refund only orders that exist."
