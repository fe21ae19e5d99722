"""Ending: how a run ended, and what shows it: an answer, an error, a limit or silence (spec section 4.2)."""

import re
from typing import Final

from pipeline.model.run import Ended
from pipeline.model.step import Step, StepKind
from pipeline.stages.lineage import Lineage

LENGTH: Final = "length"
"""Flag of a model call that ended because its reply had reached the greatest length."""
_LIMIT: Final = re.compile(
    r"(?i)\bmax(?:imum)?[ _]?(?:number of )?(?:turns?|steps?|iterations?|rounds?|messages|llm[ _]?calls?)"
    r"|\b(?:turns?|steps?|iterations?|rounds?|recursion|llm[ _]calls?|usage)[ _]?limit"
    r"|MaxTurnsExceeded|GraphRecursionError|LimitExceeded|AgentMaxStepsError"
)
"""How frameworks say that they ended a run after so many rounds. Being turned away by a provider for calling too often is an error."""
_GAVE_UP: Final = frozenset(
    {
        "Agent stopped due to iteration limit or time limit.",
        "Agent stopped due to max iterations.",
        "Sorry, need more steps to process this request.",
    }
)
"""What frameworks write in the place of an answer when they end a run."""


def ending(lineage: Lineage, answer: str | None) -> tuple[Ended, str | None]:
    """Return how the run ended, and why where it was no answer of its own accord.

    The head's failure is the run's. Without an answer a failed step is, too: frameworks mark the step that raised and leave the root OK. A
    failed tool alone is not, unless nothing came after it.
    """
    answered = answer is not None and bool(answer.strip())
    error = lineage.head.error if lineage.head.error is not None or answered else _last_error(lineage)
    limit = _limit(lineage, answer if answered else None, error)
    if limit is not None:
        return Ended.LIMIT, limit
    if error is not None:
        return Ended.ERROR, error
    return (Ended.ANSWER if answered else Ended.SILENCE), None


def _last_error(lineage: Lineage) -> str | None:
    own = _own(lineage)
    last_model = max((step.start_ns for step in own if step.kind is StepKind.MODEL), default=0)
    for step in reversed(own):
        if step.error is not None and (step.kind is not StepKind.TOOL or step.start_ns >= last_model):
            return step.error
    return None


def _limit(lineage: Lineage, answer: str | None, error: str | None) -> str | None:
    """Return what shows that the run was ended at a limit: the framework's words, its rounds, or the model's own reason to stop."""
    if error is not None and _LIMIT.search(error):
        return error
    if answer is not None and answer.strip() in _GAVE_UP:
        return answer.strip()
    rounds = next((step for step in lineage.steps if step.most_rounds and step.span_id in lineage.own), None)
    if rounds is not None and _used_up(lineage, rounds, answer):
        return f"all of {rounds.most_rounds} rounds were used"
    if error is None and LENGTH in lineage.last_flags:
        return "the last reply reached the model's greatest length"
    return None


def _used_up(lineage: Lineage, agent: Step, answer: str | None) -> bool:
    """Whether an agent took all its rounds and then had no answer, or was made to give one: by a call outside of its rounds."""
    below = lineage.children(agent)
    rounds = [step for step in below if step.kind is StepKind.CHAIN]
    forced = any(step.kind is StepKind.MODEL and step.start_ns >= rounds[-1].start_ns for step in below) if rounds else False
    return len(rounds) >= agent.most_rounds and (answer is None or forced)


def _own(lineage: Lineage) -> list[Step]:
    return [step for step in lineage.steps if step.span_id in lineage.own]
