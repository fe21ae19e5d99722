"""The exact sign test: whether one of two equally likely answers came too often (judging, section 3, item 9)."""

from fractions import Fraction
from math import comb


def sign_test(one: int, other: int) -> float | None:
    """Return the two-sided p: how often so uneven a split, or a more uneven one, comes of a fair coin. None without a toss.

    Raises:
        ValueError: if a count is below 0.
    """
    if min(one, other) < 0:
        raise ValueError(f"{one} and {other} are no counts")
    tosses = one + other
    if not tosses:
        return None
    tail = sum(comb(tosses, heads) for heads in range(min(one, other) + 1))
    return float(min(Fraction(2 * tail, 2**tosses), Fraction(1)))
