"""Stalls: what repeats without a tool call, and what only looks so."""

from typing import Any

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


def test_a_model_that_repeats_itself_stalls_and_case_of_spacing_does_not_matter() -> None:
    assert count(HEAD, says(1, "Let me think."), says(2, "Let  me think."), says(3, "Done.")) == 1.0
    assert count(HEAD, says(1, "Let me think."), says(2, "Let me think again."), says(3, "Done.")) == 0.0


def test_what_a_tool_or_another_agent_brought_in_between_is_progress_the_first_time() -> None:
    wait = says(1, "One moment."), says(5, "One moment.")
    assert count(HEAD, wait[0], returns(3, "new"), wait[1]) == 0.0
    assert count(HEAD, returns(0, "old"), wait[0], returns(3, "old"), wait[1]) == 1.0
    assert count(HEAD, wait[0], returns(3, None), wait[1]) == 0.0, "what it returned nobody knows"
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


def test_what_was_not_captured_may_have_repeated() -> None:
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
