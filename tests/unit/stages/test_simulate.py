"""Simulated traffic: the gate that runs in production, fed with what chance gives."""

from math import sqrt
from random import Random

import pytest

from pipeline.stages.gate import BurnRateGate, FloorGate
from pipeline.stages.simulate import Incident, Traffic, _poisson, incidents

FLOOR = FloorGate(name="floor", kind="floor", raise_below=0.8, clear_above=0.9)
BURN = BurnRateGate(name="burn", kind="burn_rate", budget=0.05)
HOURS = 60
DAY = 24 * HOURS


def test_an_agent_that_never_fails_sets_nothing_off() -> None:
    for gate in (FLOOR, BURN):
        assert incidents(gate, Traffic(600), lambda _: 0.0, 2 * DAY, Random(1).random) == []


def test_a_floor_fires_with_the_first_window_of_an_agent_that_always_fails() -> None:
    """Its windows are 5 minutes long and hold about 50 runs."""
    assert incidents(FLOOR, Traffic(600), lambda _: 1.0, HOURS, Random(1).random) == [Incident(5)]


def test_an_incident_lasts_from_the_failure_to_an_hour_after_the_window_that_has_forgotten_it() -> None:
    """From hour 10 to hour 12 everything fails. The hour-long window forgets that at 13:00; twelve of them have to be calm."""
    broken = range(10 * HOURS, 12 * HOURS)
    [one] = incidents(BURN, Traffic(6000), lambda minute: float(minute in broken), DAY, Random(1).random)
    # After five minutes about 500 of 6,000 fail: 8 %, give or take 1.4 % by four standard errors.
    assert one.since == 10 * HOURS + 5
    # At 12:55 the window still holds five minutes of failures, 8 %; at 13:00 the first of twelve is calm.
    assert one.until == 13 * HOURS + 55


def test_the_same_chance_gives_the_same_and_another_does_not() -> None:
    played = [incidents(FLOOR, Traffic(120), lambda _: 0.2, 3 * DAY, Random(seed).random) for seed in (1, 1, 2)]
    assert played[0] == played[1] != played[2]


def test_of_runs_that_are_hardly_judged_little_is_known() -> None:
    """10 of 600 an hour are judged: too few for a window of 5 minutes, and the floor reads none."""
    assert incidents(FLOOR, Traffic(600, judged=10 / 600), lambda _: 1.0, DAY, Random(1).random) == []
    assert incidents(BURN, Traffic(600, judged=12 / 600), lambda _: 1.0, DAY, Random(1).random) != []


@pytest.mark.parametrize("mean", [0.2, 3.0, 700.0])
def test_events_of_a_minute_have_the_mean_and_the_variance_of_poisson(mean: float) -> None:
    chance = Random(3).random
    drawn = [_poisson(mean, chance) for _ in range(3000)]
    found = sum(drawn) / len(drawn)
    assert abs(found - mean) < 5 * sqrt(mean / len(drawn))
    variance = sum((one - found) ** 2 for one in drawn) / (len(drawn) - 1)
    assert 0.85 * mean < variance < 1.15 * mean
