"""Wilson's interval, against scipy and worked values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.stats.wilson import interval, z

shares = st.floats(0, 1)
sizes = st.floats(0.01, 1e6)


def test_56_of_60_is_between_84_07_and_97_38_per_cent() -> None:
    low, high = interval(56 / 60, 60)
    assert (round(low, 4), round(high, 4)) == (0.8407, 0.9738)


def test_95_per_cent_is_1_96_standard_errors() -> None:
    assert z() == pytest.approx(1.959964, abs=1e-6)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.9, 0.95, 0.99]))
def test_it_is_what_scipy_computes_for_whole_numbers(counts: tuple[int, int], confidence: float) -> None:
    passed, n = counts
    expected = stats.binomtest(passed, n).proportion_ci(confidence, method="wilson")
    found = interval(passed / n, n, confidence)
    assert found.low == pytest.approx(float(expected.low), abs=1e-9)
    assert found.high == pytest.approx(float(expected.high), abs=1e-9)


@given(shares, sizes)
def test_it_holds_its_share_and_stays_within_0_and_1(share: float, n: float) -> None:
    low, high = interval(share, n)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


@given(shares, sizes)
def test_more_observations_never_widen_it(share: float, n: float) -> None:
    few, many = interval(share, n), interval(share, 2 * n)
    assert many.high - many.low <= few.high - few.low + 1e-12


@given(shares, sizes)
def test_failures_are_the_mirror_of_passes(share: float, n: float) -> None:
    low, high = interval(share, n)
    mirrored = interval(1 - share, n)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="not a share"):
        interval(share, 10)


@pytest.mark.parametrize("n", [0.0, -1.0, float("nan")])
def test_no_observations_have_no_interval(n: float) -> None:
    with pytest.raises(ValueError, match="without observations"):
        interval(0.5, n)
