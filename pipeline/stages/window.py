"""Rows add up to minutes, minutes to windows (design section 5, spec section 8).

The store computes minutes in SQL; the fold here is the oracle of that query. Windows are made here, from minutes.
"""

from collections.abc import Iterable
from decimal import Decimal
from math import fsum, sqrt
from typing import Any, Final

import msgspec

from pipeline.model.rate import Rate
from pipeline.model.result import Outcome
from pipeline.model.run import Trouble
from pipeline.model.time import MINUTE, minute_of
from pipeline.model.version import Spent
from pipeline.model.window import Series, Sums, Window
from pipeline.stats import hajek, wilson

SLIDES: Final = 12
"""Windows slide by their length over this, rounded up to whole minutes."""

_FIELDS: Final = msgspec.structs.fields(Sums)
_REALS: Final = tuple(field.name for field in _FIELDS if field.type is float)
_COUNTS: Final = tuple(field.name for field in _FIELDS if field.type is int and field.name != "first_received_ns")
_MAYBE: Final = tuple(field.name for field in _FIELDS if field.type == int | None)


class MinuteRow(msgspec.Struct, frozen=True):
    """The columns of a results row that its minute is made of. Weight 0: retired or unsampled, counts in nothing."""

    outcome: Outcome | None
    """None while a judgment is outstanding."""
    weight: float
    version: int
    first_received_ns: int
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    spent: Spent | None = None
    """What its run took, whatever the weight."""


def fold(rows: Iterable[MinuteRow]) -> Sums:
    """Add up rows. The order of rows does not matter, not even for the last bit."""
    return total(map(_one, rows))


def _one(row: MinuteRow) -> Sums:
    said = _said(row)
    return said if row.spent is None else msgspec.structs.replace(said, **_spent(row.spent))


def _spent(spent: Spent) -> dict[str, Any]:
    return {
        "runs": 1,
        "timed": int(spent.duration_ns is not None),
        "duration_ns": spent.duration_ns or 0,
        "priced": int(spent.cost_usd is not None),
        "cost_usd": spent.cost_usd or Decimal(0),
        "erring": int(spent.trouble is not Trouble.NONE),
        "alarming": int(spent.trouble is Trouble.ALARM),
    }


def _said(row: MinuteRow) -> Sums:
    w = row.weight
    if w <= 0:
        return Sums(fingerprint=row.version, rows=1)
    if row.outcome is None or not row.outcome.decided:
        return Sums(
            n=1,
            pending=int(row.outcome is None),
            grader_errors=int(row.outcome is Outcome.GRADER_ERROR),
            undecided_w=w,
            undecided_w_lower=w * row.lower if row.lower is not None else 0.0,
            undecided_w_upper=w * row.upper if row.upper is not None else 0.0,
            first_received_ns=row.first_received_ns,
            fingerprint=row.version,
            rows=1,
        )
    passed = float(row.outcome is Outcome.PASS)
    # A dimension without values of its own has the scale 0 to 1: fail or pass.
    y = row.value if row.value is not None else passed
    # w²(1−π), from the weight: a code check looks at every run (w = 1), whatever the probability of being judged.
    v = w * (w - 1)
    return Sums(
        n=1,
        decided=1,
        passed=int(passed),
        w=w,
        w2=w * w,
        wy=w * y,
        wy2=w * y * y,
        wp=w * passed,
        v=v,
        vy=v * y,
        vy2=v * y * y,
        vp=v * passed,
        first_received_ns=row.first_received_ns,
        fingerprint=row.version,
        rows=1,
    )


def add(one: Sums, other: Sums) -> Sums:
    """Return both together; associative up to rounding, commutative, and with ``Sums()`` as its zero."""
    return total((one, other))


def total(parts: Iterable[Sums]) -> Sums:
    """Return all parts together, exactly rounded, so that their order does not matter."""
    held = tuple(parts)
    summed: dict[str, Any] = {name: fsum(getattr(part, name) for part in held) for name in _REALS}
    summed |= {name: sum(getattr(part, name) for part in held) for name in _COUNTS}
    summed |= {name: _whole([getattr(part, name) for part in held]) for name in _MAYBE}
    summed["cost_usd"] = sum((part.cost_usd for part in held), Decimal(0))
    return Sums(first_received_ns=min((part.first_received_ns for part in held if part.first_received_ns), default=0), **summed)


def _whole(counts: list[int | None]) -> int | None:
    """Add up counts: what is not known of a part is not known of the whole."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def slide_of(length_ns: int) -> int:
    """Return how far apart windows of this length start, in nanoseconds.

    Raises:
        ValueError: if the length is not a whole number of minutes.
    """
    if length_ns <= 0 or length_ns % MINUTE:
        raise ValueError("a window is a whole number of minutes long, such as 5m or 1h")
    return -(-length_ns // (SLIDES * MINUTE)) * MINUTE


def windows_of(minute_ns: int, length_ns: int) -> range:
    """Return the starts of all windows that hold this minute, in order, aligned to the epoch."""
    slide = slide_of(length_ns)
    minute = minute_of(minute_ns)
    first = (minute - length_ns) // slide * slide + slide
    return range(first, minute + 1, slide)


def window(series: Series, start_ns: int, length_ns: int, sums: Sums) -> Window:
    """Estimate a series over [start, start + length) from what its minutes add up to. Without data every estimate is None."""
    known = sums.w + sums.undecided_w
    mean, mean_low, mean_high = _mean(sums)
    rate, rate_low, rate_high = _rate(sums)
    return Window(
        series=series,
        start_ns=start_ns,
        length_ns=length_ns,
        sums=sums,
        n_effective=hajek.effective_n(sums.w, sums.w2),
        coverage=sums.w / known if known > 0 else None,
        mean=mean,
        mean_low=mean_low,
        mean_high=mean_high,
        rate=rate,
        rate_low=rate_low,
        rate_high=rate_high,
        rate_if_undecided_fail=min(sums.wp / known, 1.0) if known > 0 else None,
        rate_if_undecided_pass=min((sums.wp + sums.undecided_w) / known, 1.0) if known > 0 else None,
    )


def rate_of(found: Window) -> Rate:
    """Return the rate of a window, with all that is to stand beside it."""
    sums = found.sums
    undecided = sums.n - sums.decided - sums.pending
    return Rate(
        n=sums.n,
        decided=sums.decided,
        passed=sums.passed,
        failed=None if sums.passed is None else sums.decided - sums.passed,
        insufficient_evidence=None if sums.grader_errors is None else undecided - sums.grader_errors,
        grader_error=sums.grader_errors,
        pending=sums.pending,
        n_effective=found.n_effective,
        coverage=found.coverage,
        rate=found.rate,
        low=found.rate_low,
        high=found.rate_high,
        if_undecided_fail=found.rate_if_undecided_fail,
        if_undecided_pass=found.rate_if_undecided_pass,
    )


def _mean(sums: Sums) -> tuple[float | None, float | None, float | None]:
    mean = hajek.mean(sums.w, sums.wy)
    variance = hajek.variance(hajek.Moments(sums.w, sums.w2, sums.wy, sums.wy2, sums.v, sums.vy, sums.vy2))
    if mean is None or variance is None:
        return mean, None, None
    reach = wilson.z() * sqrt(variance)
    return mean, mean - reach, mean + reach


def _rate(sums: Sums) -> tuple[float | None, float | None, float | None]:
    rate = hajek.mean(sums.w, sums.wp)
    if rate is None:
        return None, None, None
    # Sums that were rounded apart can put a share of all a hair above 1.
    rate = min(rate, 1.0)
    low, high = wilson.interval(rate, hajek.effective_n(sums.w, sums.w2))
    return rate, low, high
