"""Area under the ROC curve: how well a score tells good runs from bad ones, with an interval."""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

Z95 = 1.959963984540054


class Auroc(NamedTuple):
    """The area, and its 95 % interval. 0.5 is a coin."""

    area: float
    lower: float
    upper: float


def auroc(good: Sequence[float], bad: Sequence[float]) -> Auroc | None:
    """Return how often a good one scores above a bad one, ties as half; None where either side is empty.

    The interval is Newcombe's method 5 (Statistics in Medicine 25, 2006, 559-573): the areas from which the one found is within z
    standard errors, by Hanley and McNeil's variance with the sizes' mean for either side. It has width also where all pairs are in order.
    """
    if not good or not bad:
        return None
    area = sum((one > other) + (one == other) / 2 for one in good for other in bad) / (len(good) * len(bad))

    def away(true: float) -> float:
        return abs(area - true) / _error(true, len(good), len(bad)) - Z95

    lower = 0.0 if area == 0 else _root(lambda true: away(true) > 0, 0.0, area)
    upper = 1.0 if area == 1 else _root(lambda true: away(true) <= 0, area, 1.0)
    return Auroc(area, lower, upper)


def _error(area: float, good: int, bad: int) -> float:
    mean = (good + bad) / 2
    spread = 1 + (mean - 1) * ((1 - area) / (2 - area) + area / (1 + area))
    return max(sqrt(area * (1 - area) * spread / (good * bad)), 1e-12)


def _root(left: Callable[[float], bool], low: float, high: float) -> float:
    """Return where ``left`` turns from true to false."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle) else (low, middle)
    return (low + high) / 2
