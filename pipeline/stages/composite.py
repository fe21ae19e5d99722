"""Composite: the dimensions of a rubric added up to one number, or to an interval while some are unknown (spec sections 2.1 to 2.4).

In decimals throughout: (4, 5, 2, 5, 5) under ``support`` is exactly 80 and meets a bar of 80.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

import msgspec

from pipeline.model.result import Kind, Outcome, Result, Unresolved
from pipeline.model.rubric import CompositeKind, Dimension, MeasuredBy, Rubric
from pipeline.stages.accounting import first_word

UNCALIBRATED = "uncalibrated"
"""The reason of a dimension whose judge has not earned that its scores decide."""
NOT_MEASURED = "not_measured"
"""The reason of a dimension that nobody was asked about."""
_PLACES: Final = Decimal("0.001")
"""Of the score of criteria (spec section 2.3)."""


class Score(msgspec.Struct, frozen=True):
    """What is known of one dimension of a run: the least and the greatest score that it can have."""

    dimension: Dimension
    low: Decimal
    high: Decimal
    outcome: Outcome | None = None
    """Why it is undecided; None if it is decided or pending."""
    reason: str = ""
    """The first word of that reason."""
    pending: bool = False
    """A judgment is outstanding that will count."""

    @property
    def decided(self) -> bool:
        """Whether the score is known and counts."""
        return self.outcome is None and not self.pending

    @property
    def is_unknown(self) -> bool:
        """Whether the judge was asked and could not tell."""
        return self.outcome is Outcome.INSUFFICIENT_EVIDENCE and self.reason == Unresolved.INSUFFICIENT_EVIDENCE


def scores(rubric: Rubric, results: Iterable[Result], deciding: frozenset[str]) -> tuple[Score, ...]:
    """Return what is known of each dimension, in the rubric's order. ``deciding`` are the authorities whose scores count."""
    found = {(result.kind, result.dimension): result for result in results}
    return tuple(_score(rubric, dimension, found, deciding) for dimension in rubric.dimensions)


def _score(rubric: Rubric, dimension: Dimension, found: Mapping[tuple[Kind, str], Result], deciding: frozenset[str]) -> Score:
    low, high = Decimal(rubric.scale_low), Decimal(rubric.scale_high)
    kind = Kind.CODE if dimension.measured_by is MeasuredBy.CODE else Kind.JUDGED
    result = found.get((kind, dimension.name))
    if result is None:
        return Score(dimension, low, high, Outcome.INSUFFICIENT_EVIDENCE, NOT_MEASURED)
    if result.outcome is not None and not result.outcome.decided:
        return Score(dimension, low, high, result.outcome, first_word(result.reason) or result.outcome)
    if kind is Kind.JUDGED and result.authority not in deciding:
        return Score(dimension, low, high, Outcome.INSUFFICIENT_EVIDENCE, UNCALIBRATED)
    if result.outcome is None:
        return Score(dimension, low, high, pending=True)
    value = _value(rubric, kind, result)
    if value is None:
        return Score(dimension, low, high, Outcome.GRADER_ERROR, Outcome.GRADER_ERROR)
    return Score(dimension, value, value)


def _value(rubric: Rubric, kind: Kind, result: Result) -> Decimal | None:
    """Return a decided result on the rubric's scale: a check is at one of its ends. None if it is not on the scale at all."""
    if kind is Kind.CODE:
        return Decimal(rubric.scale_high if result.outcome is Outcome.PASS else rubric.scale_low)
    on_scale = result.value is not None and rubric.scale_low <= result.value <= rubric.scale_high
    return Decimal(str(result.value)) if on_scale else None


class Interval(msgspec.Struct, frozen=True):
    """What the composite can still be, in parts of a point: exact, where a division by the scale's width need not be."""

    low: Decimal
    high: Decimal
    parts: int
    """How many of them are one point of the composite."""
    bar: Decimal

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest composite, 0 to 100 or on the scale."""
        return float(self.low / self.parts), float(self.high / self.parts)

    @property
    def meets_bar(self) -> bool:
        """Whether the composite is at the bar or over it, whatever becomes known."""
        return self.low >= self.bar * self.parts

    @property
    def misses_bar(self) -> bool:
        """Whether the composite is under the bar, whatever becomes known."""
        return self.high < self.bar * self.parts


def interval(rubric: Rubric, known: Iterable[Score]) -> Interval:
    """Add the scores up: unknown ones at the bottom of the scale, and at its top."""
    known = tuple(known)
    percent = rubric.composite is CompositeKind.PERCENT
    return Interval(
        low=_points(rubric, known, lambda score: score.low),
        high=_points(rubric, known, lambda score: score.high),
        parts=rubric.scale_high - rubric.scale_low if percent else 1,
        bar=rubric.bar,
    )


def _points(rubric: Rubric, known: Sequence[Score], bound: Callable[[Score], Decimal]) -> Decimal:
    if rubric.is_of_criteria:
        return _share_passed(known, bound)
    mean = sum((score.dimension.weight * bound(score) for score in known), Decimal(0))
    return 100 * (mean - rubric.scale_low) if rubric.composite is CompositeKind.PERCENT else mean


def _share_passed(known: Sequence[Score], bound: Callable[[Score], Decimal]) -> Decimal:
    """Return passes / criteria, half up to three decimals; 0 where a hard criterion fails, whatever the rest."""
    if any(score.dimension.gate is not None and bound(score) < score.dimension.gate for score in known):
        return Decimal(0)
    passed = sum((bound(score) for score in known), Decimal(0))
    return (passed / len(known)).quantize(_PLACES, ROUND_HALF_UP)


def composite_result(known: Iterable[Score], total: Interval, contract: str) -> Result:
    """Return the composite as a result. It has a value only where both bounds agree."""
    low, high = total.bounds
    exact = total.low == total.high
    outcome, reason = (Outcome.PASS if total.meets_bar else Outcome.FAIL, "") if exact else _undecided(known)
    return Result(
        dimension="composite",
        kind=Kind.COMPOSITE,
        contract=contract,
        outcome=outcome,
        value=low if exact else None,
        lower=low,
        upper=high,
        reason=reason,
    )


def _undecided(known: Iterable[Score]) -> tuple[Outcome | None, str]:
    """Return the outcome of a composite that has no value yet: pending while a judgment is outstanding, else the first reason."""
    open_ones = [score for score in known if not score.decided]
    if any(score.pending for score in open_ones):
        return None, ""
    return open_ones[0].outcome, f"{open_ones[0].reason}: {open_ones[0].dimension.name}"
