"""answer_present: the run ended with a final answer that is not empty."""

from collections.abc import Iterator
from typing import Final

from pipeline.model.run import Ended, Run
from pipeline.model.settings import Settings
from pipeline.model.step import StepKind
from pipeline.scorers.calls import NO_CONTENT, shows_execution
from pipeline.scorers.check import Check, Finding, Missing, check_of, ruled, unknown

ANSWER_PRESENT: Final = "answer_present"
_SHORT: Final = {Ended.ERROR: "in an error", Ended.LIMIT: "at a limit"}


class AnswerSettings(Settings):
    """Whether a run without a final answer fails as a whole."""

    gate: bool = True
    """Set to false to measure it only."""


def answer_check(settings: AnswerSettings) -> Check:
    """Return the check."""
    return check_of(ANSWER_PRESENT, {"rule": "final answer not blank", "version": 3}, answer_present, gates=settings.gate)


def answer_present(run: Run) -> Finding:
    """Say whether there is an answer. One that nobody captured is unknown, not missing."""
    if run.completed:
        return ruled(holds=True)
    if run.answer is not None:
        return ruled(holds=False, reason="the final answer is empty")
    if run.ended in _SHORT:
        return ruled(holds=False, reason=f"the run ended {_SHORT[run.ended]}, without an answer", evidence=run.error or "")
    if run.ended is Ended.ANSWER or NO_CONTENT in _model_flags(run):
        return unknown(Missing.ANSWER_NOT_CAPTURED, "the models' content was not captured")
    if _goes_on_elsewhere(run):
        return unknown(
            Missing.EXECUTION_NOT_CAPTURED, "a bare model call that asked for a tool: what followed is in another trace"
        )
    return ruled(holds=False, reason="the run ended without an answer")


def _goes_on_elsewhere(run: Run) -> bool:
    """Whether the run is one turn of a loop that makes a trace per model call: it ends in the middle, and nobody can tell how."""
    head = next(iter(run.steps), None)
    return head is not None and head.kind is StepKind.MODEL and bool(run.tool_calls) and not shows_execution(run.tool_calls)


def _model_flags(run: Run) -> Iterator[str]:
    """Yield flags of the steps that could hold an answer: a tool span without content hides none."""
    for step in run.steps:
        if step.kind in (StepKind.MODEL, StepKind.AGENT, StepKind.ORCHESTRATION):
            yield from step.flags
