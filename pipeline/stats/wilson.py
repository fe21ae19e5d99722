"""Wilson's score interval of a share, on a number of observations that need not be whole (spec section 8)."""

from math import sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

CONFIDENCE: Final = 0.95
"""Two-sided confidence of every interval that is shown."""


class Interval(NamedTuple):
    """Both ends of an interval."""

    low: float
    high: float


def z(confidence: float = CONFIDENCE) -> float:
    """Return how many standard errors a two-sided interval reaches to each side."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def interval(share: float, n: float, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's interval, within [0, 1], of a ``share`` seen in ``n`` (effective) observations.

    Raises:
        ValueError: if ``share`` is no share or ``n`` is not above 0; there is no interval without observations.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"{share} is not a share between 0 and 1")
    if not n > 0:
        raise ValueError(f"there is no interval of a share without observations (n = {n})")
    z2 = z(confidence) ** 2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Interval(max(centre - half, 0.0), min(centre + half, 1.0))
