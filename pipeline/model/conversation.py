"""Conversations: the unit above runs. What a user and agents said to each other in several turns, each of them a run."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec

from pipeline.model.result import Outcome
from pipeline.model.run import Cohort, Run
from pipeline.model.version import RunVersion

EXCERPT: Final = 300
"""Characters of a request or an answer in a list of turns; the run has all of them."""


class ConversationTurn(msgspec.Struct, frozen=True):
    """A live run of a conversation in one line. What is None was not measured, or is not yet."""

    run_id: str
    trace_id: str
    cohort: Cohort
    request: str
    answer: str | None
    ended: str
    verdict: str | None
    reason: str
    run_class: str
    class_reason: str
    tool_calls: int
    agents: tuple[str, ...]
    """Its sub-agents."""
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: Decimal | None
    """By the price table; None where it is not known."""
    start_ns: int
    end_ns: int


class Outcomes(msgspec.Struct, frozen=True):
    """How many runs have which verdict. They add up to all runs: nothing that was not measured is counted as good or bad."""

    passed: int = 0
    failed: int = 0
    insufficient_evidence: int = 0
    grader_error: int = 0
    pending: int = 0


class Conversation(msgspec.Struct, frozen=True):
    """All live runs of one conversation of a project, added up."""

    id: str
    runs: int
    agents: tuple[str, ...]
    """Everybody who took part, sub-agents too, by name."""
    outcomes: Outcomes
    input_tokens: int | None
    """Of the runs that say; None where none does."""
    output_tokens: int | None
    cost_usd: Decimal | None
    """By the price table; None unless it is known of every run: a part of it is not the cost."""
    without_tokens: int
    """Runs that do not say how many tokens they took: by that much the sums are too small."""
    without_cost: int
    """Runs of which it is not known."""
    start_ns: int
    end_ns: int


class ConversationDetail(msgspec.Struct, frozen=True):
    """A conversation and its turns, by their start. Of very many turns the latest."""

    conversation: Conversation
    turns: tuple[ConversationTurn, ...]


def turn_of(version: RunVersion) -> ConversationTurn:
    """Return a run as a turn of its conversation."""
    run: Run = version.run
    return ConversationTurn(
        run_id=run.run_id,
        trace_id=run.trace_id,
        cohort=run.place.cohort,
        request=run.request[:EXCERPT],
        answer=None if run.answer is None else run.answer[:EXCERPT],
        ended=run.ended,
        verdict=version.verdict.outcome,
        reason=version.verdict.reason,
        run_class=version.run_class,
        class_reason=version.class_reason,
        tool_calls=len(run.tool_calls),
        agents=run.agents,
        input_tokens=run.usage.input,
        output_tokens=run.usage.output,
        cost_usd=version.cost.usd,
        start_ns=run.start_ns,
        end_ns=run.end_ns,
    )


def roll_up(conversation_id: str, turns: Sequence[ConversationTurn]) -> Conversation:
    """Add up the turns of a conversation, of which there is at least one."""
    verdicts = [turn.verdict for turn in turns]
    known = {
        name: [value for turn in turns if (value := getattr(turn, name)) is not None]
        for name in ("input_tokens", "output_tokens")
    }
    costs = [turn.cost_usd for turn in turns if turn.cost_usd is not None]
    return Conversation(
        id=conversation_id,
        runs=len(turns),
        agents=tuple(sorted({name for turn in turns for name in (turn.cohort.agent, *turn.agents)})),
        outcomes=Outcomes(
            passed=verdicts.count(Outcome.PASS),
            failed=verdicts.count(Outcome.FAIL),
            insufficient_evidence=verdicts.count(Outcome.INSUFFICIENT_EVIDENCE),
            grader_error=verdicts.count(Outcome.GRADER_ERROR),
            pending=verdicts.count(None),
        ),
        **{name: sum(values) if values else None for name, values in known.items()},
        cost_usd=sum(costs, Decimal(0)) if len(costs) == len(turns) else None,
        without_tokens=sum(turn.input_tokens is None and turn.output_tokens is None for turn in turns),
        without_cost=len(turns) - len(costs),
        start_ns=min(turn.start_ns for turn in turns),
        end_ns=max(turn.end_ns for turn in turns),
    )
