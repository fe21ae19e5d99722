"""How far a share lies from another, by the likelihood of what was seen; in standard errors, also where shares are near 0 or 1.

Wilson's interval is too short there: of 60 runs 3 that fail would be four standard errors above a budget of 1 %, and are two.
"""

from math import copysign, log, sqrt
from typing import Final

_HALVINGS: Final = 50


def standard_errors(share: float, n: float, other: float) -> float:
    """Return the signed root of the likelihood ratio, ±√(2n·KL(share ‖ other)), of a ``share`` seen in ``n`` (effective) observations.

    Raises:
        ValueError: if ``share`` is no share, ``other`` does not lie between 0 and 1, or ``n`` is negative.
    """
    if not (0 <= share <= 1 and 0 < other < 1 and n >= 0):
        raise ValueError(f"{share} of {n} cannot be compared with {other}")
    divergence = _times_log(share, share / other) + _times_log(1 - share, (1 - share) / (1 - other))
    return copysign(sqrt(2 * n * max(divergence, 0.0)), share - other)


def least(share: float, n: float, errors: float) -> float:
    """Return the least true share that lies no more than so many standard ``errors`` below the one that was seen."""
    low, high = 0.0, share
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if 0 < middle < 1 and standard_errors(share, n, middle) > errors:
            low = middle
        else:
            high = middle
    return high


def _times_log(factor: float, ratio: float) -> float:
    return factor * log(ratio) if factor else 0.0
