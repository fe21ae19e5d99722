"""Evidence of a rise: no more than chance gives while the share is allowed, and enough soon after it is not."""

from math import exp, isclose, log
from random import Random
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stats import ecusum

shares = st.floats(0.001, 0.999)


@given(shares)
def test_a_bet_is_fair_while_the_share_is_what_is_allowed(allowed: float) -> None:
    failed = [exp(one) for one in ecusum.after((), allowed, 1, 1)]
    passed = [exp(one) for one in ecusum.after((), allowed, 0, 1)]
    for one, other in zip(failed, passed, strict=True):
        assert isclose(allowed * one + (1 - allowed) * other, 1, rel_tol=1e-9)
        assert one > 1 > other > 0


@given(shares, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_calm_is_forgotten_and_nothing_is_below_a_beginning_for_long(allowed: float, batches: list[tuple[int, int]]) -> None:
    evidence: tuple[float, ...] = ()
    for failed, passed in batches:
        fresh = ecusum.after((), allowed, failed, failed + passed)
        evidence = ecusum.after(evidence, allowed, failed, failed + passed)
        assert all(now >= anew - 1e-12 for now, anew in zip(evidence, fresh, strict=True))


def test_a_beginning_is_no_evidence() -> None:
    assert ecusum.logarithm(()) == 0.0
    assert ecusum.logarithm((0.0, 0.0, 0.0)) == 0.0
    assert ecusum.logarithm((1000.0, 0.0, 0.0)) == pytest.approx(1000 - log(3)), "no number is too large for it"


def runs_until(evidence: float, allowed: float, true: float, seed: int, batch: int = 5, longest: int = 100_000) -> int:
    """Batches until so much evidence is there."""
    chance = Random(seed)
    held: tuple[float, ...] = ()
    for number in range(1, longest + 1):
        failed = sum(chance.random() < true for _ in range(batch))
        held = ecusum.after(held, allowed, failed, batch)
        if ecusum.logarithm(held) >= log(evidence):
            return number
    return longest


def test_chance_takes_as_many_batches_on_average_as_there_is_evidence_or_more() -> None:
    """The promise of e-detectors, at the very share that is allowed; evidence is 40, of 200 beginnings."""
    assert mean(runs_until(40, 0.1, 0.1, seed, longest=2000) for seed in range(200)) >= 40


def test_a_lasting_rise_is_seen_the_sooner_the_greater_it_is() -> None:
    half, twice, four = (median(runs_until(10_000, 0.05, times * 0.05, seed) for seed in range(15)) for times in (1.5, 2, 4))
    assert half > twice > four
    # ln 10,000 = 9.2; a run at four times the budget brings 0.2 ln 4 + 0.8 ln (0.8/0.95) = 0.14 at the best bet: 66 runs, 13 batches.
    assert 13 <= four <= 26


@pytest.mark.parametrize("allowed", [0.0, 1.0, -0.1])
def test_what_is_no_budget_is_refused(allowed: float) -> None:
    with pytest.raises(ValueError, match="is not a share between 0 and 1"):
        ecusum.bets(allowed)
