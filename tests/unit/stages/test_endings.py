"""How runs end: an answer, an error, a limit or silence; and where control went on the way."""

from typing import Any

import pytest
from builders import T0, a_span, a_step
from recordings import CORPORA, arrived, runs_of
from traps import AGENT, CHAT, said, span

from collectors.dialects import read
from pipeline.model.run import Cohort, Ended, Place, Run
from pipeline.model.span import Event
from pipeline.model.spending import HandOff
from pipeline.model.step import Message, Step, StepKind
from pipeline.model.time import SECOND
from pipeline.scorers.answer import answer_present
from pipeline.stages.trajectory import as_run

ANSWERED = CHAT | {"gen_ai.output.messages": [said("assistant", "It is in the")]}


def run_of(head: Step, *below: Step) -> Run:
    return as_run(
        project="default",
        trace_id="ab" * 16,
        run_id="cd" * 16,
        head=head,
        steps=(head, *below),
        place=Place(Cohort("desk"), T0),
        start_ns=T0,
        end_ns=T0 + 60 * SECOND,
        first_received_ns=T0,
    )


def ended(**chat: Any) -> tuple[Ended, str | None]:
    (run,) = runs_of([span(1, 0, AGENT, lasts=9), span(2, 1, ANSWERED | chat)])
    return run.ended, run.error


CUT = "the last reply reached the model's greatest length"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gen_ai.response.finish_reasons", ["length"]),
        ("gen_ai.response.finish_reasons", ["stop", "max_tokens"]),
        ("gen_ai.response.finish_reasons", '["length"]'),
        ("gen_ai.response.finish_reasons", "stop,length"),
        ("gen_ai.response.finish_reason", "MAX_TOKENS"),
        ("ai.response.finishReason", "length"),
        ("llm.finish_reason", "length"),
        ("gen_ai.completion.0.finish_reason", "max_tokens"),
    ],
)
def test_a_last_reply_that_was_cut_ends_a_run_at_a_limit(name: str, reason: Any) -> None:
    assert ended(**{name: reason}) == (Ended.LIMIT, CUT)


@pytest.mark.parametrize("reason", [["stop"], ["length", "stop"], ["tool_call"], "[]", [], "content_filter", "lengthy", None, 7])
def test_any_other_reason_to_stop_leaves_an_answer_an_answer(reason: Any) -> None:
    assert ended(**{"gen_ai.response.finish_reasons": reason}) == (Ended.ANSWER, None)


def test_only_the_last_reply_counts_and_an_event_tells_as_well() -> None:
    cut = {"gen_ai.response.finish_reasons": ["length"]}
    (run,) = runs_of([span(1, 0, AGENT, lasts=9), span(2, 1, ANSWERED | cut), span(4, 1, ANSWERED)])
    assert run.ended is Ended.ANSWER
    event = Event("gen_ai.choice", T0, {"finish_reason": "max_tokens"})
    assert "length" in read(a_span(attributes=CHAT, events=(event,))).flags
    assert "length" not in read(a_span(attributes=AGENT | cut)).flags


@pytest.mark.parametrize(
    "error",
    [
        "GraphRecursionError: Recursion limit of 5 reached without hitting a stop condition",
        "MaxTurnsExceeded: Max turns (10) exceeded",
        "Max turns exceeded: {'max_turns': 3}",
        "LlmCallsLimitExceededError: Max number of llm calls limit of `8` exceeded",
        "UsageLimitExceeded: The next request would exceed the request_limit of 50",
        "AgentMaxStepsError: Reached max steps.",
        "RuntimeError: maximum number of iterations reached",
    ],
)
def test_what_frameworks_raise_when_they_end_a_run_is_a_limit(error: str) -> None:
    run = run_of(a_step("head", kind=StepKind.AGENT, agent="desk", error=error))
    assert (run.ended, run.error) == (Ended.LIMIT, error)
    finding = answer_present(run)
    assert (finding.value, finding.reason, finding.evidence) == (0.0, "the run ended at a limit, without an answer", error)


@pytest.mark.parametrize(
    "error",
    [
        "RateLimitError: Rate limit reached",
        "429 Too Many Requests",
        "ValueError: limit must be positive",
        "TimeoutError",
        "QuotaExceeded",
    ],
)
def test_other_failures_are_errors(error: str) -> None:
    assert run_of(a_step("head", kind=StepKind.AGENT, agent="desk", error=error)).ended is Ended.ERROR


@pytest.mark.parametrize(
    "text", ["Agent stopped due to iteration limit or time limit.", "Sorry, need more steps to process this request."]
)
def test_what_frameworks_write_in_the_place_of_an_answer_is_a_limit(text: str) -> None:
    (run,) = runs_of([span(1, 0, AGENT, lasts=9), span(2, 1, CHAT | {"gen_ai.output.messages": [said("assistant", text)]})])
    assert (run.ended, run.error, run.answer) == (Ended.LIMIT, text, text)
    (run,) = runs_of(
        [span(1, 0, AGENT, lasts=9), span(2, 1, CHAT | {"gen_ai.output.messages": [said("assistant", f"{text} Or not.")]})]
    )
    assert run.ended is Ended.ANSWER


def rounds(used: int, *, of: int, forced: bool = False, answer: str = "") -> Run:
    output = (Message("assistant", answer),) if answer else ()
    head = a_step("head", kind=StepKind.AGENT, agent="desk", most_rounds=of, output=output, end_ns=T0 + 90 * SECOND)
    below = [a_step(f"r{number}", "head", StepKind.CHAIN, start_ns=T0 + number * SECOND) for number in range(used)]
    last = [a_step("forced", "head", StepKind.MODEL, start_ns=T0 + 50 * SECOND)] if forced else []
    return run_of(head, *below, *last)


def test_an_agent_that_took_all_its_rounds_ended_at_a_limit_unless_it_answered_in_the_last() -> None:
    assert (rounds(3, of=3).ended, rounds(3, of=3).error) == (Ended.LIMIT, "all of 3 rounds were used")
    assert rounds(3, of=3, forced=True, answer="I must stop here.").ended is Ended.LIMIT
    assert rounds(3, of=3, answer="Found it.").ended is Ended.ANSWER
    assert rounds(2, of=3).ended is Ended.SILENCE
    assert rounds(2, of=3, answer="Found it.").ended is Ended.ANSWER


def test_recorded_runs_that_a_framework_ended_say_so() -> None:
    files = (
        "adk/pingpong",
        "langgraph/loops_recursion_limit",
        "openai-agents/loops_max_turns",
        "smolagents/tool_error_stuck_max_steps",
    )
    assert [runs_of(arrived(CORPORA / "live" / f"{file}.jsonl"))[0].ended for file in files] == [Ended.LIMIT] * 4


# --- hand-offs ------------------------------------------------------------------------------------------------------------------------


def agent(name: str, number: int, under: str, lasts: float = 1) -> Step:
    start = T0 + number * SECOND
    return a_step(f"{name}{number}", under, StepKind.AGENT, agent=name, start_ns=start, end_ns=start + int(lasts * SECOND))


FLOW = a_step("flow", kind=StepKind.ORCHESTRATION, end_ns=T0 + 60 * SECOND)
DESK = agent("desk", 0, "", 60)


@pytest.mark.parametrize(
    ("head", "below", "handed"),
    [
        pytest.param(
            FLOW, (agent("desk", 1, "flow"), agent("refunds", 3, "flow")), [("desk", "refunds")], id="one after another"
        ),
        pytest.param(DESK, (agent("refunds", 1, "desk0", 9),), [("desk", "refunds")], id="below"),
        pytest.param(
            DESK,
            (agent("refunds", 1, "desk0", 9), agent("desk", 2, "refunds1", 5), agent("refunds", 3, "desk2")),
            [("desk", "refunds"), ("refunds", "desk"), ("desk", "refunds")],
            id="to and fro",
        ),
        pytest.param(
            FLOW, (agent("a", 1, "flow", 9), agent("b", 2, "flow", 9), agent("c", 3, "flow", 9)), [], id="beside each other"
        ),
        pytest.param(
            FLOW, (agent("a", 1, "flow", 3), agent("b", 2, "flow", 3), agent("c", 9, "flow")), [("b", "c")], id="after a fan-out"
        ),
        pytest.param(DESK, (agent("desk", 1, "desk0", 9), agent("desk", 2, "desk1")), [], id="frames of one agent"),
        pytest.param(
            DESK, (agent("", 1, "desk0", 9), agent("refunds", 2, "1")), [("desk", "refunds")], id="a frame without a name"
        ),
        pytest.param(DESK, (a_step("tool", "desk0", StepKind.TOOL), agent("refunds", 1, "tool")), [], id="called like a tool"),
    ],
)
def test_control_goes_from_the_agent_above_or_the_one_before(
    head: Step, below: tuple[Step, ...], handed: list[tuple[str, str]]
) -> None:
    assert run_of(head, *below).hand_offs == tuple(HandOff(*one) for one in handed)


def test_recorded_hand_offs_are_found_and_calls_of_agents_are_none() -> None:
    def found(file: str) -> list[tuple[str, str]]:
        return [(one.source, one.target) for one in runs_of(arrived(CORPORA / "live" / f"{file}.jsonl"))[0].hand_offs]

    for framework in ("langgraph", "openai-agents", "strands"):
        assert found(f"{framework}/handoff") == [("support-agent", "refunds-desk")], framework
    assert found("adk/pingpong") == [("support_agent", "refunds_desk"), ("refunds_desk", "support_agent")] * 4
    for file in ("pydantic-ai/handoff", "smolagents/handoff", "openai-agents/agent_as_tool", "strands/agent_as_tool"):
        assert found(file) == [], file
