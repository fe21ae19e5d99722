"""What rows and windows say, in numbers worked by hand."""

from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from pipeline.model.result import Outcome
from pipeline.model.run import Cohort, Trouble
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.version import Spent
from pipeline.model.window import Series, Sums, Window
from pipeline.stages.window import MinuteRow, add, fold, slide_of, total, window, windows_of

SERIES = Series("shop", Cohort("refunds", "1", "production"), "verdict", "verdict", "c1")


def row(outcome: Outcome | None, weight: float = 1.0, **fields: Any) -> MinuteRow:
    """A row of version 5 that was first heard of at 100 ns."""
    return MinuteRow(outcome=outcome, weight=weight, version=5, first_received_ns=100, **fields)


def window_of(*rows: MinuteRow) -> Window:
    return window(SERIES, 0, 5 * MINUTE, fold(rows))


def test_a_minute_holds_passes_failures_and_the_undecided_apart() -> None:
    sums = fold(
        [
            row(Outcome.PASS, value=4.0),
            row(Outcome.FAIL, 2.0, value=1.0),
            row(Outcome.INSUFFICIENT_EVIDENCE, 4.0, lower=1.0, upper=5.0),
            row(None, 3.0, lower=1.0, upper=5.0),
        ]
    )
    assert sums == Sums(
        n=4,
        passed=1,
        decided=2,
        pending=1,
        w=3.0,
        w2=5.0,
        wy=6.0,
        wy2=18.0,
        wp=1.0,
        v=2.0,
        vy=2.0,
        vy2=2.0,
        vp=0.0,
        undecided_w=7.0,
        undecided_w_lower=7.0,
        undecided_w_upper=35.0,
        first_received_ns=100,
        fingerprint=20,
        rows=4,
    )


def test_grader_errors_are_counted_apart_from_other_undecided_runs() -> None:
    sums = fold(
        [row(Outcome.GRADER_ERROR, 2.0), row(Outcome.INSUFFICIENT_EVIDENCE), row(Outcome.PASS), row(Outcome.GRADER_ERROR)]
    )
    assert (sums.n, sums.decided, sums.passed, sums.grader_errors) == (4, 1, 1, 2)


def test_what_runs_took_is_added_up_whether_they_were_sampled_or_not_and_nothing_unknown_is_0() -> None:
    took = [
        Spent(1500, Decimal("0.10"), Trouble.NONE),
        Spent(500, None, Trouble.ERROR),
        Spent(None, Decimal("0.20"), Trouble.ALARM),
    ]
    sums = fold(replace(row(Outcome.PASS, weight), spent=spent) for weight, spent in zip((1.0, 0.0, 4.0), took, strict=True))
    assert (sums.runs, sums.timed, sums.duration_ns) == (3, 2, 2000)
    assert (sums.priced, sums.cost_usd) == (2, Decimal("0.30"))
    assert (sums.erring, sums.alarming) == (2, 1)
    assert sums.n == 2


def test_what_was_not_counted_in_one_minute_is_not_known_of_a_window() -> None:
    sums = add(Sums(n=2, decided=2, passed=None, grader_errors=None), Sums(n=1, decided=1, passed=1))
    assert (sums.n, sums.passed, sums.grader_errors) == (3, None, None)


def test_a_retired_row_counts_in_nothing_but_the_fingerprint() -> None:
    assert fold([row(Outcome.PASS, 0.0, value=1.0)]) == Sums(fingerprint=5, rows=1)


def test_a_window_weighs_by_the_inclusion_probability_and_never_shows_the_plain_share() -> None:
    found = window_of(row(Outcome.FAIL, value=0.0), row(Outcome.PASS, 10.0, value=1.0))
    assert found.rate == pytest.approx(10 / 11)
    assert found.mean == pytest.approx(10 / 11)
    assert found.n_effective == pytest.approx(121 / 101)


def test_a_rate_comes_with_both_bounds_of_what_is_undecided() -> None:
    decided = [row(Outcome.PASS)] * 6 + [row(Outcome.FAIL)] * 2
    found = window_of(*decided, row(Outcome.GRADER_ERROR), row(None))
    assert found.rate == 0.75
    assert found.coverage == 0.8
    assert found.rate_if_undecided_fail == 0.6
    assert found.rate_if_undecided_pass == 0.8


def test_56_of_60_has_the_worked_interval() -> None:
    found = window_of(*[row(Outcome.PASS)] * 56, *[row(Outcome.FAIL)] * 4)
    assert found.rate_low == pytest.approx(0.8407, abs=5e-5)
    assert found.rate_high == pytest.approx(0.9738, abs=5e-5)


def test_a_mean_has_an_interval_from_two_runs_on() -> None:
    one, two = window_of(row(Outcome.PASS, value=4.0)), window_of(row(Outcome.PASS, value=4.0), row(Outcome.FAIL, value=2.0))
    assert (one.mean, one.mean_low, one.mean_high) == (4.0, None, None)
    # The standard error of 2 and 4 is 1.
    assert two.mean == 3.0
    assert two.mean_low == pytest.approx(1.04, abs=1e-3)
    assert two.mean_high == pytest.approx(4.96, abs=1e-3)


def test_a_dimension_without_values_has_its_passes_as_its_mean() -> None:
    found = window_of(row(Outcome.PASS), row(Outcome.PASS), row(Outcome.FAIL), row(Outcome.FAIL))
    assert found.mean == found.rate == 0.5


def test_a_value_of_exactly_0_is_a_value_though_the_run_passes() -> None:
    found = window_of(row(Outcome.PASS, value=0.0), row(Outcome.PASS, value=0.0))
    assert (found.rate, found.mean) == (1.0, 0.0)


def test_rows_that_round_differently_in_another_order_add_up_to_the_same() -> None:
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)
    rows = [row(Outcome.PASS, value=value) for value in (0.1, 0.2, 0.3)]
    assert len({repr(fold(order)) for order in permutations(rows)}) == 1


def test_a_rate_of_exactly_0_is_a_rate() -> None:
    found = window_of(row(Outcome.FAIL, value=0.0), row(Outcome.FAIL, value=0.0))
    assert (found.rate, found.mean, found.coverage) == (0.0, 0.0, 1.0)


def test_an_empty_window_says_no_data_and_never_0() -> None:
    for found in (window_of(), window_of(row(Outcome.FAIL, 0.0, value=0.0))):
        estimates = (found.mean, found.mean_low, found.mean_high, found.rate, found.rate_low, found.rate_high)
        assert {*estimates, found.coverage, found.rate_if_undecided_fail, found.rate_if_undecided_pass} == {None}
        assert (found.sums.n, found.n_effective) == (0, 0.0)


def test_a_window_of_undecided_runs_has_coverage_0_and_no_estimate() -> None:
    found = window_of(row(Outcome.INSUFFICIENT_EVIDENCE), row(None))
    assert (found.coverage, found.rate, found.mean) == (0.0, None, None)
    assert (found.rate_if_undecided_fail, found.rate_if_undecided_pass) == (0.0, 1.0)


def test_the_first_received_of_a_window_is_the_least_that_is_known() -> None:
    assert add(Sums(first_received_ns=7), Sums(first_received_ns=0)).first_received_ns == 7
    assert total([Sums(first_received_ns=7), Sums(first_received_ns=3), Sums()]).first_received_ns == 3


@pytest.mark.parametrize(
    ("length", "slide"),
    [(MINUTE, MINUTE), (5 * MINUTE, MINUTE), (13 * MINUTE, 2 * MINUTE), (HOUR, 5 * MINUTE), (24 * HOUR, 2 * HOUR)],
)
def test_windows_slide_by_a_twelfth_of_their_length_in_whole_minutes(length: int, slide: int) -> None:
    assert slide_of(length) == slide


def test_a_minute_is_in_five_windows_of_five_minutes() -> None:
    assert [start // MINUTE for start in windows_of(100 * MINUTE + 59 * SECOND, 5 * MINUTE)] == [96, 97, 98, 99, 100]


@pytest.mark.parametrize("length", [0, -MINUTE, 90 * SECOND])
def test_a_window_is_whole_minutes_long(length: int) -> None:
    with pytest.raises(ValueError, match="whole number of minutes"):
        slide_of(length)
