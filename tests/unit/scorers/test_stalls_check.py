"""Stalls: what repeats without a tool call, and what only looks so."""

from typing import Any

import msgspec
import pytest
from builders import T0
from run_builders import a_call, a_run

from pipeline.model.result import Outcome
from pipeline.model.run import Run
from pipeline.model.step import Message, Step, StepKind, ToolCall
from pipeline.model.time import SECOND
from pipeline.scorers.check import Finding
from pipeline.scorers.stalls import stalls, stalls_check

MODEL, AGENT, TOOL = StepKind.MODEL, StepKind.AGENT, StepKind.TOOL


def step(number: int, kind: StepKind, under: str = "head", **fields: Any) -> Step:
    at = T0 + number * SECOND
    return Step(f"s{number}", under, kind, at, at + SECOND // 2, at, kind=kind, **fields)


def says(number: int, text: str = "", asks: str = "", under: str = "head", **arguments: Any) -> Step:
    calls = (ToolCall(asks, f"c{number}", arguments),) if asks else ()
    return step(number, MODEL, under, output=(Message("assistant", text, calls),))


def returns(number: int, result: str | None, name: str = "lookup") -> Step:
    return step(number, TOOL, tool=ToolCall(name, result=result))


HEAD = step(0, AGENT, "", agent="desk")
DESK, REFUNDS = step(1, AGENT, "", agent="desk"), step(2, AGENT, "", agent="refunds")


def run_of(*steps: Step) -> Run:
    tools = tuple(one.tool for one in steps if one.tool is not None)
    return a_run(*tools, steps=steps, model_calls=sum(one.kind is MODEL for one in steps))


def found(*steps: Step) -> Finding:
    finding = stalls(run_of(*steps))
    assert finding is not None
    return finding


def count(*steps: Step) -> float | None:
    return found(*steps).value


def test_agents_that_hand_a_task_to_and_fro_stall_from_the_second_round_on() -> None:
    """Desk and refunds hand over three times each: the first two replies are new, all others repeat one and nothing came between."""
    rounds = [says(number, asks=("to_refunds", "to_desk")[number % 2], under=("s1", "s2")[number % 2]) for number in range(4, 10)]
    finding = found(DESK, REFUNDS, *rounds)
    assert (finding.value, finding.outcome, finding.reason) == (3.0, Outcome.FAIL, "3 of 6 replies only repeat an earlier one")
    assert finding.evidence == "refunds: to_desk()"
    assert not stalls_check().gates
    assert stalls_check().measure(run_of(DESK, REFUNDS, *rounds)) == finding


def test_a_model_that_repeats_itself_stalls_and_case_of_spacing_does_not_matter() -> None:
    assert count(HEAD, says(1, "Let me think."), says(2, "Let  me think."), says(3, "Done.")) == 1.0
    assert count(HEAD, says(1, "Let me think."), says(2, "Let me think again."), says(3, "Done.")) == 0.0


def test_what_was_found_is_said_whole() -> None:
    nothing = Finding(Outcome.PASS, 0.0, 0.0, 0.0)
    assert found(HEAD, says(1, "a"), says(2, "b")) == nothing
    assert found(HEAD, says(1, asks="lookup"), returns(2, "x"), says(3, "Done.")) == nothing
    repeats = found(step(0, StepKind.CHAIN, ""), *(says(number, "Wait.", asks="boss", under="s0") for number in (1, 2)))
    assert repeats.evidence == "support: Wait. boss()", "without an agent's span it is the run's own agent"
    unnamed = found(DESK, step(2, AGENT, "s1"), *(says(number, "Wait.", under="s2") for number in (3, 4)))
    assert unnamed.evidence == "desk: Wait.", "an agent without a name is part of the one above it"


def test_what_comes_before_and_after_two_replies_that_are_alike() -> None:
    same, again = says(3, "a"), says(4, "a")
    calling = says(1, asks="lookup"), returns(2, "x")
    assert count(HEAD, *calling, same, again) == 1.0
    assert count(HEAD, same, again, says(5, asks="lookup"), returns(6, "x")) == 1.0
    assert count(HEAD, says(1, "a"), returns(2, "x"), says(3, "b"), again) == 0.0, "two things were new"


def test_what_a_tool_or_another_agent_brought_in_between_is_progress_the_first_time() -> None:
    wait = says(1, "One moment."), says(5, "One moment.")
    assert count(HEAD, wait[0], returns(3, "new"), wait[1]) == 0.0
    assert count(HEAD, returns(0, "old"), wait[0], returns(3, "old"), wait[1]) == 1.0
    assert count(HEAD, wait[0], returns(3, None), wait[1]) == 0.0, "what it returned nobody knows"
    assert count(HEAD, returns(0, None), wait[0], returns(3, None), wait[1]) == 0.0, "nor whether it was the same"
    down = [step(number, TOOL, tool=ToolCall("lookup", error="timeout")) for number in (0, 3)]
    assert count(HEAD, down[0], wait[0], down[1], wait[1]) == 1.0, "the same error again"
    assert count(HEAD, wait[0], step(3, TOOL), wait[1]) == 1.0, "a span of no tool"
    assert count(HEAD, wait[0], step(3, StepKind.RETRIEVAL, output=(Message("tool", "found"),)), wait[1]) == 0.0
    assert count(HEAD, wait[0], says(3, "Something else."), wait[1]) == 0.0


def test_a_repeated_tool_call_is_a_loop_and_no_stall() -> None:
    assert (
        count(
            HEAD, says(1, asks="lookup", id=7), returns(2, "a"), says(3, asks="lookup", id=7), returns(4, "a"), says(5, "Done.")
        )
        == 0.0
    )


def test_two_agents_that_say_the_same_do_not_repeat_each_other() -> None:
    assert count(DESK, REFUNDS, says(4, "Hello.", under="s1"), says(5, "Hello.", under="s2")) == 0.0


def test_one_reply_in_several_spans_is_one_reply() -> None:
    inner = says(2, "Hello.", under="s1"), says(3, "Hello.", under="s2")
    run = a_run(steps=(HEAD, says(1, "Hello."), *inner, says(5, "Done.")), model_calls=2)
    finding = stalls(run)
    assert finding is not None
    assert finding.value == 0.0


def test_a_reply_in_a_span_below_others_is_still_the_one_reply() -> None:
    outer, chain, inner = says(1, "Hello."), step(2, StepKind.CHAIN, "s1"), says(3, "Hello.", under="s2")
    finding = stalls(a_run(steps=(HEAD, outer, chain, inner, says(5, "Done.")), model_calls=2))
    assert finding == Finding(Outcome.PASS, 0.0, 0.0, 0.0)
    bare = step(1, MODEL)
    finding = stalls(a_run(steps=(HEAD, bare, chain, inner, says(5, "Hello.")), model_calls=2))
    assert finding is not None
    assert finding.value == 1.0, "what the outer span does not say the inner one does"


def test_what_was_not_captured_may_have_repeated() -> None:
    unread = stalls(a_run(steps=(HEAD, step(1, MODEL)), model_calls=2))
    reason = "messages_not_captured: 1 of 2 replies"
    assert unread == Finding(Outcome.INSUFFICIENT_EVIDENCE, None, 0.0, 1.0, reason)
    finding = found(HEAD, says(1, "a"), says(2, "a"), step(3, MODEL), says(4, "b"))
    assert (finding.outcome, finding.value, finding.lower, finding.upper) == (Outcome.INSUFFICIENT_EVIDENCE, None, 1.0, 3.0)
    assert finding.reason == "messages_not_captured: 1 of 4 replies"


@pytest.mark.parametrize("steps", [(), (HEAD,), (HEAD, says(1, "a"))])
def test_fewer_than_two_replies_cannot_repeat(steps: tuple[Step, ...]) -> None:
    assert stalls(run_of(*steps)) is None


def test_a_chain_of_ten_thousand_spans_is_walked_like_any_other() -> None:
    chain = [step(number, StepKind.CHAIN, f"s{number - 1}") for number in range(2, 10_000)]
    replies = (says(10_000, "a", under="s9999"), says(10_001, "a", under="s9999"))
    assert count(step(1, AGENT, "", agent="desk"), *chain, *replies) == 1.0


def test_calls_that_nobody_executed_are_of_no_tool_only_if_the_run_has_none() -> None:
    run = a_run(a_call("lookup"), steps=(HEAD, says(1, asks="lookup"), says(2, asks="lookup"), says(3, "x")), model_calls=3)
    finding = stalls(run)
    assert finding is not None
    assert finding.value == 0.0, "loops counts them"
    more = stalls(msgspec.structs.replace(run, steps=(*run.steps, says(4, "y")), model_calls=4))
    assert more == Finding(Outcome.PASS, 0.0, 0.0, 0.0), "whatever else is said"


def test_replies_without_an_agents_span_repeat_like_any_other() -> None:
    assert count(says(1, "a", under=""), says(2, "a", under="")) == 1.0
