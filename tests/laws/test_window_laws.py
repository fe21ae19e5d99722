"""Laws of minutes and windows: neither order nor batches matter, and what does not count does not count."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import pipeline.stages.window
from pipeline.model.result import Outcome
from pipeline.model.run import Cohort, Trouble
from pipeline.model.time import MINUTE
from pipeline.model.version import Spent
from pipeline.model.window import Series, Sums, Window
from pipeline.stages.window import MinuteRow, add, fold, slide_of, total, window, windows_of

SERIES = Series("shop", Cohort("refunds"), "correctness", "judged", "c1")
probabilities = st.sampled_from([1.0, 0.5, 0.3, 0.1, 0.07])
rows = st.builds(
    MinuteRow,
    outcome=st.sampled_from([*Outcome, None]),
    weight=probabilities.map(lambda pi: 1 / pi) | st.just(0.0),
    version=st.integers(1, 10**6),
    first_received_ns=st.integers(1, 10**18),
    value=st.floats(1, 5),
    lower=st.floats(1, 3),
    upper=st.floats(3, 5),
    spent=st.none()
    | st.builds(
        Spent,
        duration_ns=st.none() | st.integers(0, 2**63),
        cost_usd=st.none() | st.decimals(0, 100, places=12),
        trouble=st.sampled_from(Trouble),
    ),
)
many_rows = st.lists(rows, max_size=40)


def close(one: Sums, other: Sums) -> bool:
    """Whether two sums agree, apart from the last bits; money agrees to the last digit."""
    some, more = ({**msgspec.structs.asdict(each), "cost_usd": 0} for each in (one, other))
    return one.cost_usd == other.cost_usd and some == pytest.approx(more, rel=1e-9, abs=1e-9)


def window_of(sums: Sums) -> Window:
    return window(SERIES, 0, 5 * MINUTE, sums)


@given(many_rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_to_the_last_bit(some: list[MinuteRow], chance: random.Random) -> None:
    shuffled = some[:]
    chance.shuffle(shuffled)
    assert window_of(fold(shuffled)) == window_of(fold(some))


@given(st.lists(many_rows, max_size=6))
def test_the_split_into_minutes_and_batches_does_not_matter(batches: list[list[MinuteRow]]) -> None:
    at_once = fold(row for batch in batches for row in batch)
    assert close(total(map(fold, batches)), at_once)
    one_by_one = Sums()
    for batch in batches:
        one_by_one = add(one_by_one, fold(batch))
    assert close(one_by_one, at_once)


@given(many_rows, many_rows, many_rows)
def test_adding_is_associative_and_commutative_and_has_a_zero(
    one: list[MinuteRow], two: list[MinuteRow], three: list[MinuteRow]
) -> None:
    a, b, c = fold(one), fold(two), fold(three)
    assert close(add(add(a, b), c), add(a, add(b, c)))
    assert add(a, b) == add(b, a)
    assert add(a, Sums()) == a


@given(many_rows, many_rows)
def test_retired_rows_count_in_nothing(live: list[MinuteRow], retired: list[MinuteRow]) -> None:
    dead = [msgspec.structs.replace(row, weight=0.0, spent=None) for row in retired]
    with_them, without = window_of(fold(live + dead)), window_of(fold(live))
    assert with_them.sums.rows == without.sums.rows + len(dead)
    unseen = {"fingerprint": 0, "rows": 0}
    assert msgspec.structs.replace(with_them, sums=msgspec.structs.replace(with_them.sums, **unseen)) == msgspec.structs.replace(
        without, sums=msgspec.structs.replace(without.sums, **unseen)
    )


@given(many_rows)
def test_estimates_are_those_of_exact_arithmetic_over_the_rows(some: list[MinuteRow]) -> None:
    found = window_of(fold(some))
    counted = [row for row in some if row.weight > 0]
    decided = [(Fraction(row.weight), row) for row in counted if row.outcome in (Outcome.PASS, Outcome.FAIL)]
    weight = sum(w for w, _ in decided)
    assert (found.sums.n, found.sums.decided) == (len(counted), len(decided))
    assert found.sums.pending == sum(row.outcome is None for row in counted)
    if not decided:
        assert (found.mean, found.rate) == (None, None)
        return
    assert found.rate == pytest.approx(float(sum(w for w, row in decided if row.outcome is Outcome.PASS) / weight))
    assert found.mean == pytest.approx(float(sum(w * Fraction(row.value or 0) for w, row in decided) / weight))
    assert found.coverage == pytest.approx(float(weight / sum(Fraction(row.weight) for row in counted)))


@given(many_rows)
def test_bounds_and_intervals_hold_the_estimate(some: list[MinuteRow]) -> None:
    found = window_of(fold(some))
    if found.rate is None:
        return
    assert found.rate_if_undecided_fail is not None
    assert found.rate_if_undecided_pass is not None
    assert found.rate_low is not None
    assert found.rate_high is not None
    hair = 1e-12
    assert found.rate_if_undecided_fail - hair <= found.rate <= found.rate_if_undecided_pass + hair
    assert 0 <= found.rate_low <= found.rate + hair
    assert found.rate - hair <= found.rate_high <= 1
    if found.mean_low is not None:
        assert found.mean is not None
        assert found.mean_high is not None
        assert found.mean_low <= found.mean <= found.mean_high


@given(st.lists(st.booleans(), min_size=1, max_size=40), probabilities)
def test_constant_probability_gives_the_plain_share(passed: list[bool], pi: float) -> None:
    outcomes = [Outcome.PASS if one else Outcome.FAIL for one in passed]
    found = window_of(fold(MinuteRow(outcome, 1 / pi, 1, 1) for outcome in outcomes))
    assert found.rate == pytest.approx(sum(passed) / len(passed))
    assert found.n_effective == pytest.approx(len(passed))


@given(st.integers(0, 10**6), st.integers(1, 2000))
def test_windows_of_a_minute_are_exactly_those_that_hold_it(minute: int, length: int) -> None:
    at, long = minute * MINUTE, length * MINUTE
    slide = slide_of(long)
    starts = list(windows_of(at, long))
    around = range((at - long) // slide * slide - slide, at + 2 * slide, slide)
    assert starts == [start for start in around if start <= at and at + MINUTE <= start + long]
    assert starts


def _the_last_bits_depend_on_the_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.window.fsum", sum)


def _a_retired_row_counts(patch: pytest.MonkeyPatch) -> None:
    real = pipeline.stages.window._one
    patch.setattr("pipeline.stages.window._one", lambda row: real(msgspec.structs.replace(row, weight=row.weight or 1.0)))


@pytest.mark.parametrize(
    ("mutate", "law", "given_what"),
    [
        (
            _the_last_bits_depend_on_the_order,
            test_the_order_of_rows_does_not_matter_to_the_last_bit,
            (many_rows, st.randoms(use_true_random=False)),
        ),
        (_a_retired_row_counts, test_retired_rows_count_in_nothing, (many_rows, many_rows)),
    ],
    ids=["order matters", "retired rows count"],
)
def test_a_broken_fold_breaks_the_law(
    mutate: Callable[[pytest.MonkeyPatch], None], law: Any, given_what: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    unshrunk: Any = settings(phases=[Phase.generate], database=None, report_multiple_bugs=False, max_examples=400)
    bound: Any = given(*given_what)
    broken: Callable[[], None] = unshrunk(bound(law.hypothesis.inner_test))
    with pytest.raises(AssertionError):
        broken()
