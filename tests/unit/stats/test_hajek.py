"""Estimates from sums, against plain formulas and scipy."""

from math import isclose, sqrt
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.stats.hajek import Moments, effective_n, mean, sampling_variance, variance

values = st.floats(-100, 100)
probabilities = st.floats(0.05, 1)
observations = st.lists(st.tuples(values, probabilities), min_size=2, max_size=30)


def moments(observed: list[tuple[float, float]]) -> Moments:
    """The sums, written as the reference writes them: with π."""
    w = [(y, 1 / pi, (1 - pi) / pi**2) for y, pi in observed]
    return Moments(
        w=sum(wi for _, wi, _ in w),
        w2=sum(wi**2 for _, wi, _ in w),
        wy=sum(wi * y for y, wi, _ in w),
        wy2=sum(wi * y * y for y, wi, _ in w),
        v=sum(v for *_, v in w),
        vy=sum(v * y for y, _, v in w),
        vy2=sum(v * y * y for y, _, v in w),
    )


def test_nothing_observed_has_no_mean_and_no_variance() -> None:
    nothing = moments([])
    assert mean(nothing.w, nothing.wy) is None
    assert sampling_variance(nothing) is None
    assert variance(nothing) is None
    assert effective_n(nothing.w, nothing.w2) == 0


def test_one_observation_has_a_mean_and_no_spread() -> None:
    one = moments([(3.0, 0.5)])
    assert mean(one.w, one.wy) == 3.0
    assert variance(one) is None


def test_a_rarely_sampled_run_speaks_for_those_that_were_not_sampled() -> None:
    # One failure kept at π = 1, one pass drawn at π = 0.1 that stands for ten: 10 / 11, not 1 / 2.
    sums = moments([(0.0, 1.0), (1.0, 0.1)])
    assert mean(sums.w, sums.wy) == pytest.approx(10 / 11)
    assert effective_n(sums.w, sums.w2) == pytest.approx(121 / 101)


@given(st.lists(values, min_size=2, max_size=30), probabilities)
def test_constant_probability_gives_the_plain_mean_and_the_plain_n(ys: list[float], pi: float) -> None:
    sums = moments([(y, pi) for y in ys])
    assert mean(sums.w, sums.wy) == pytest.approx(fmean(ys), abs=1e-9)
    assert effective_n(sums.w, sums.w2) == pytest.approx(len(ys))


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30))
def test_a_census_has_the_standard_error_that_scipy_computes_and_no_sampling_variance(ys: list[int]) -> None:
    sums = moments([(float(y), 1.0) for y in ys])
    assert sampling_variance(sums) == 0
    found = variance(sums)
    assert found is not None
    assert sqrt(found) == pytest.approx(float(stats.sem(ys)), abs=1e-6)


@given(observations)
def test_sampling_variance_is_the_formula_of_the_reference(observed: list[tuple[float, float]]) -> None:
    sums = moments(observed)
    mu = sum(y / pi for y, pi in observed) / sum(1 / pi for _, pi in observed)
    expected = sum((1 - pi) / pi**2 * (y - mu) ** 2 for y, pi in observed) / sum(1 / pi for _, pi in observed) ** 2
    found = sampling_variance(sums)
    assert found is not None
    assert isclose(found, expected, rel_tol=1e-6, abs_tol=1e-8)


@given(observations)
def test_variance_is_the_weighted_squared_deviations_with_the_usual_correction(observed: list[tuple[float, float]]) -> None:
    sums = moments(observed)
    n = effective_n(sums.w, sums.w2)
    found = variance(sums)
    if round(n, 9) < 2:
        assert found is None
        return
    weights = [1 / pi for _, pi in observed]
    mu = sum(w * y for w, (y, _) in zip(weights, observed, strict=True)) / sum(weights)
    squares = sum(w * w * (y - mu) ** 2 for w, (y, _) in zip(weights, observed, strict=True))
    assert found == pytest.approx(squares / sum(weights) ** 2 * n / (n - 1), rel=1e-6, abs=1e-8)
