"""Standard errors by likelihood: those of a normal deviate where that holds, and honest where it does not."""

from math import exp, inf, isclose, lgamma, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stats import likelihood

shares = st.floats(0, 1)
others = st.floats(0.001, 0.999)
numbers = st.floats(0.5, 100_000)


def test_for_many_it_is_the_distance_by_the_standard_error() -> None:
    """0.52 of 10,000 against 0.5: 0.02 / √(0.5·0.5/10,000) = 4."""
    assert likelihood.standard_errors(0.52, 10_000, 0.5) == pytest.approx(4, rel=1e-3)


def test_six_of_sixty_against_one_in_a_hundred() -> None:
    """√(2 · 60 · (0.1 ln 10 + 0.9 ln (0.9/0.99))) = √(120 · (0.230259 − 0.085779)) = √17.3376."""
    assert likelihood.standard_errors(0.1, 60, 0.01) == pytest.approx(sqrt(17.3376), rel=1e-4)


def at_least(k: int, n: int, p: float) -> float:
    """Chance of k or more of n, exactly."""
    return sum(
        exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) + (n - i) * log(1 - p)) for i in range(k, n + 1)
    )


@pytest.mark.parametrize(("n", "p"), [(60, 0.01), (60, 0.05), (30, 0.2), (600, 0.01), (1000, 0.5)])
def test_four_standard_errors_are_as_rare_as_they_say(n: int, p: float) -> None:
    """Chernoff: exp(−4²/2) at the very most, whatever the share; an interval by Wilson breaks that for small shares."""
    least = next(k for k in range(n + 1) if likelihood.standard_errors(k / n, n, p) >= 4)
    assert at_least(least, n, p) <= exp(-8)


@given(shares, numbers, others)
def test_the_sign_says_on_which_side_it_lies(share: float, n: float, other: float) -> None:
    found = likelihood.standard_errors(share, n, other)
    assert (found > 0) <= (share > other)
    assert (found < 0) <= (share < other)


@given(shares, numbers, st.floats(0.5, 6))
def test_the_least_share_is_so_many_errors_away(share: float, n: float, errors: float) -> None:
    least = likelihood.least(share, n, errors)
    assert 0 <= least <= share
    if 1e-6 < least < share < 1:
        assert isclose(likelihood.standard_errors(share, n, least), errors, rel_tol=1e-3)


def test_nothing_failed_rules_out_nothing() -> None:
    assert likelihood.least(0.0, 1000, 4) == 0.0


@pytest.mark.parametrize(("share", "n", "other"), [(1.1, 10, 0.5), (0.5, -1, 0.5), (0.5, 10, 0), (0.5, 10, 1), (0.5, 10, inf)])
def test_what_cannot_be_compared_is_refused(share: float, n: float, other: float) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        likelihood.standard_errors(share, n, other)
