"""e-CUSUM: evidence that a share has risen above what is allowed, gathered over time (judging, section 5; e-detectors).

Evidence is multiplied by a bet on each observation and never falls below 1, so calm times are forgotten. Whatever the order of the
observations, whoever made them and whatever is known of the ones before: while the allowed share holds, evidence reaches ``c`` after
``c`` batches on average at the soonest.
"""

from collections.abc import Sequence
from math import exp, log, log1p
from typing import Final

RISEN: Final = (1.5, 2.0, 4.0)
"""How many times the allowed share the bets are made for: a small lasting rise, a doubling, a great one."""


def bets(allowed: float) -> tuple[float, ...]:
    """Return λ for each rise, (p₁−m) / (m(1−m)) at most just below 1/m, so that a pass never takes all evidence away.

    Raises:
        ValueError: if ``allowed`` does not lie between 0 and 1.
    """
    if not 0 < allowed < 1:
        raise ValueError(f"{allowed} is not a share between 0 and 1")
    risen = (min(times * allowed, (1 + allowed) / 2) for times in RISEN)
    return tuple(min((share - allowed) / (allowed * (1 - allowed)), 0.9 / allowed) for share in risen)


def after(before: Sequence[float], allowed: float, failed: float, n: float) -> tuple[float, ...]:
    """Return the logarithms of the evidence, one a bet, after a batch of ``n`` observations of which ``failed`` failed.

    Both may be effective numbers. An empty ``before`` is a beginning.
    """
    held = before or (0.0,) * len(RISEN)
    return tuple(
        max(logarithm, 0.0) + failed * log1p(bet * (1 - allowed)) + (n - failed) * log1p(-bet * allowed)
        for logarithm, bet in zip(held, bets(allowed), strict=True)
    )


def logarithm(evidence: Sequence[float]) -> float:
    """Return the logarithm of the evidence of all bets together, their mean; 0 at a beginning."""
    if not evidence:
        return 0.0
    most = max(evidence)
    return most + log(sum(exp(one - most) for one in evidence) / len(evidence))
