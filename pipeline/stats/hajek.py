"""Hájek estimates of a sampled population from sums (reference judging section 4).

Every observation has a weight w = 1/π. The sums are enough: minutes add up, and no estimate needs the rows again.
"""

from typing import Final, NamedTuple

_LEAST_N: Final = 2


class Moments(NamedTuple):
    """Sums over the observations: w, w², wy, wy², and with v = w²(1−π): v, vy, vy²."""

    w: float
    w2: float
    wy: float
    wy2: float
    v: float
    vy: float
    vy2: float


def effective_n(w: float, w2: float) -> float:
    """Return (Σw)² / Σw², the number of equally weighted observations that would be worth as much; 0 where there is none."""
    return w * w / w2 if w2 > 0 else 0.0


def mean(w: float, wy: float) -> float | None:
    """Return Σwy / Σw, or None where nothing was observed."""
    return wy / w if w > 0 else None


def sampling_variance(sums: Moments) -> float | None:
    """Return what sampling adds to the variance of the mean: (1/N²) Σ w²(1−π)(y−μ)² with N = Σw.

    It is 0 where every run was looked at. None where nothing was observed.
    """
    mu = mean(sums.w, sums.wy)
    if mu is None:
        return None
    return max(sums.vy2 - 2 * mu * sums.vy + mu * mu * sums.v, 0.0) / sums.w**2


def variance(sums: Moments) -> float | None:
    """Return the variance of the mean as an estimate of what the agent does, not only of what it happened to do.

    Sampling variance plus the runs' own spread, Σw(y−μ)²/N², times n/(n−1) for the effective n; for equal weights this is the
    squared standard error of a plain mean. (Sampling variance alone is 0 at π = 1, which would call ten runs certainty.)
    None below two effective observations: one value says nothing of spread.
    """
    n = effective_n(sums.w, sums.w2)
    sampling = sampling_variance(sums)
    # Two equal weights can be a hair less than two.
    if sampling is None or round(n, 9) < _LEAST_N:
        return None
    spread = max(sums.wy2 - sums.wy * sums.wy / sums.w, 0.0) / sums.w**2
    return (sampling + spread) * n / (n - 1)
