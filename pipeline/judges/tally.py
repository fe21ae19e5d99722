"""Graded calls in, one outcome out: the aggregation that a contract fixes in advance (spec section 6)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import median
from typing import Final

import msgspec

from pipeline.model.result import Outcome, Unresolved
from pipeline.model.rubric import Dimension, Panel, Rubric


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
    NO_REFERENCE = "no_reference"


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


NO_REFERENCE: Final = Grade(
    Outcome.INSUFFICIENT_EVIDENCE,
    reason=f"{Why.NO_REFERENCE}: it is graded against a reference answer, and there is none for this request; no model was asked",
)
"""What a dimension comes to that requires a reference answer, without one."""


def scored(rubric: Rubric, dimension: Dimension, score: float, reason: str, quote: str) -> Grade:
    """Return the grade of a score."""
    return Grade(Outcome.PASS if rubric.passes(dimension, score) else Outcome.FAIL, float(score), reason, quote)


def tally(rubric: Rubric, dimension: Dimension, grades: Sequence[Grade]) -> Grade:
    """Return what the calls come to together.

    One call speaks for itself. Of three of one model, two decided ones on one side of the gate win with the median of that
    side; of a panel as many as :class:`pipeline.model.rubric.Panel` says, at the gate or, without one, where the rubric passes a
    score. Reason and quote are those of the call nearest to the median. Otherwise the dimension is undecided: a grader error
    where calls that broke could have made a side win, else insufficient evidence.
    """
    if len(grades) == 1:
        return grades[0]
    needed = _needed(rubric.panel(dimension.name))
    for side, least in needed.items():
        winners = [(grade.score, grade) for grade in grades if grade.outcome is side and grade.score is not None]
        if len(winners) >= least:
            middle = float(median(score for score, _ in winners))
            _, nearest = min(winners, key=lambda winner: abs(winner[0] - middle))
            return scored(rubric, dimension, middle, nearest.reason, nearest.quote)
    return _undecided(grades, needed)


def _needed(panel: Panel | None) -> Mapping[Outcome, int]:
    """Return how many decided votes a side wins with: never so few that both sides could."""
    if panel is None:
        return {Outcome.PASS: 2, Outcome.FAIL: 2}
    return {Outcome.PASS: panel.passes_at, Outcome.FAIL: panel.fails_at}


def _undecided(grades: Sequence[Grade], needed: Mapping[Outcome, int]) -> Grade:
    votes = Counter(grade.outcome for grade in grades)
    broken = [grade for grade in grades if grade.outcome is Outcome.GRADER_ERROR]
    unknown = [grade for grade in grades if grade.outcome is Outcome.INSUFFICIENT_EVIDENCE]
    if broken and any(votes[side] + len(broken) >= least for side, least in needed.items()):
        return Grade(Outcome.GRADER_ERROR, reason=broken[0].reason)
    if unknown and not (votes[Outcome.PASS] and votes[Outcome.FAIL]):
        return Grade(Outcome.INSUFFICIENT_EVIDENCE, reason=unknown[0].reason)
    said = f"{votes[Outcome.PASS]} of {len(grades)} votes pass and {votes[Outcome.FAIL]} fail"
    takes = f"a pass takes {needed[Outcome.PASS]} and a fail {needed[Outcome.FAIL]}"
    return Grade(Outcome.INSUFFICIENT_EVIDENCE, reason=f"{Why.VOTES_SPLIT}: {said}; {takes}")
