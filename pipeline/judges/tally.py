"""Graded calls in, one outcome out: the aggregation that a contract fixes in advance (spec section 6)."""

from collections.abc import Sequence
from enum import StrEnum
from statistics import median

import msgspec

from pipeline.model.result import Outcome, Unresolved
from pipeline.model.rubric import Dimension, Rubric


class Why(StrEnum):
    """The first word of a reason where a judge gave no score, or where none was asked."""

    UNKNOWN = "unknown"
    VOTES_SPLIT = "votes_split"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    REFUSAL = "refusal"
    """Of the model; ``refused`` is of its endpoint."""
    QUOTE_NOT_FOUND = "quote_not_found"
    REFUSED = "refused"
    NEAR_EMPTY = "near_empty"


class Grade(msgspec.Struct, frozen=True):
    """What one call came to. ``score`` is None unless the model gave one whose quote was found."""

    outcome: Outcome
    score: float | None = None
    reason: str = ""
    quote: str = ""

    @property
    def unresolved(self) -> str:
        """Why there is no score; empty where there is one."""
        match self.outcome:
            case Outcome.GRADER_ERROR:
                return Unresolved.GRADER_ERROR
            case Outcome.INSUFFICIENT_EVIDENCE:
                return Unresolved.INSUFFICIENT_EVIDENCE
            case _:
                return ""


def scored(rubric: Rubric, dimension: Dimension, score: float, reason: str, quote: str) -> Grade:
    """Return the grade of a score."""
    return Grade(Outcome.PASS if rubric.passes(dimension, score) else Outcome.FAIL, float(score), reason, quote)


def tally(rubric: Rubric, dimension: Dimension, grades: Sequence[Grade]) -> Grade:
    """Return what the calls come to together.

    One call speaks for itself. Of several, two decided ones on one side of the gate win with the median of that side;
    its reason and quote are those of the call nearest to it. Otherwise the dimension is undecided: a grader error where
    calls that broke could have made two of a side, else insufficient evidence.
    """
    if len(grades) == 1:
        return grades[0]
    for side in (Outcome.PASS, Outcome.FAIL):
        winners = [(grade.score, grade) for grade in grades if grade.outcome is side and grade.score is not None]
        if len(winners) > 1:
            middle = float(median(score for score, _ in winners))
            _, nearest = min(winners, key=lambda winner: abs(winner[0] - middle))
            return scored(rubric, dimension, middle, nearest.reason, nearest.quote)
    return _undecided(grades)


def _undecided(grades: Sequence[Grade]) -> Grade:
    broken = [grade for grade in grades if grade.outcome is Outcome.GRADER_ERROR]
    unknown = [grade for grade in grades if grade.outcome is Outcome.INSUFFICIENT_EVIDENCE]
    some_decided = len(broken) + len(unknown) < len(grades)
    # No side has two votes, so at most one; each call that broke could have joined it.
    if len(broken) + some_decided > 1 and broken:
        return Grade(Outcome.GRADER_ERROR, reason=broken[0].reason)
    if unknown and len(unknown) + len(broken) > 1:
        return Grade(Outcome.INSUFFICIENT_EVIDENCE, reason=unknown[0].reason)
    return Grade(Outcome.INSUFFICIENT_EVIDENCE, reason=f"{Why.VOTES_SPLIT}: no two votes stand on one side of the gate")
