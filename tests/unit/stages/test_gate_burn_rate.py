"""Burn-rate gates: beyond doubt over a long window, still now over a short one, and calm again for a while."""

from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.model.run import Cohort
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.window import GateState, GateStatus, Series, Sums, Transition, Trip, Window
from pipeline.stages.gate import BurnRateGate, SeriesGate, lengths_of
from pipeline.stages.gate_windows import on_windows
from pipeline.stages.window import window
from pipeline.stats import likelihood

COHORT = Cohort("refunds", "1", "production")
GATE = BurnRateGate.model_validate({"name": "verdicts", "kind": "burn_rate", "budget": 0.05})
START = GateState("shop", "verdicts", COHORT)
ALLOWANCE = 6 * MINUTE
NOON = 1_000 * 6 * HOUR
"""A moment at which windows of every length end."""


def a_window(length: int, end: int, failed: int, of: int, contract: str = "c1") -> Window:
    start = end - length
    sums = Sums(
        n=of,
        decided=of,
        w=of,
        w2=of,
        wp=of - failed,
        wy=of - failed,
        wy2=of - failed,
        passed=of - failed,
        first_received_ns=start + SECOND,
    )
    return window(Series("shop", COHORT, "verdict", "verdict", contract), start, length, sums)


def hour(end: int, failed: int, of: int = 60) -> Window:
    return a_window(HOUR, end, failed, of)


def five(end: int, failed: int, of: int = 5) -> Window:
    return a_window(5 * MINUTE, end, failed, of)


def read(*windows: Window, state: GateState = START, gate: SeriesGate = GATE) -> tuple[GateState, list[Trip]]:
    ready = max(one.end_ns for one in windows) + ALLOWANCE
    turn = on_windows(gate, state, windows, ready, ALLOWANCE)
    return turn.state, list(turn.trips)


def test_it_fires_where_both_windows_fail_more_than_the_budget_beyond_doubt() -> None:
    at = NOON + 5 * MINUTE
    state, [trip] = read(hour(at, 30), five(at, 3))
    assert (trip.transition, trip.kind, trip.value, trip.threshold) == (Transition.FIRED, "burn_rate", 0.5, 0.05)
    assert (trip.window_ns, trip.at_ns) == (at - HOUR, at + ALLOWANCE)
    low = likelihood.least(0.5, 60, 4)
    assert trip.why.startswith(
        f"0.5 of the runs fail over 60 min, at least {low:.4g} by 4 standard errors, and 0.6 over 5 min: more than 0.05, 1 times the budget; "
        "30 pass, 30 fail"
    )
    assert state.status is GateStatus.FIRING


def test_more_than_the_budget_that_chance_can_explain_does_not_fire() -> None:
    at = NOON + 5 * MINUTE
    assert likelihood.standard_errors(9 / 60, 60, 0.05) < 4
    state, trips = read(hour(at, 9), five(at, 5))
    assert (trips, state.status) == ([], GateStatus.OK)


@pytest.mark.parametrize("short", [[], [0], [None]])
def test_what_is_over_does_not_fire(short: list[int | None]) -> None:
    """A short window that is good again, that holds nothing decided, or that is not there."""
    at = NOON + 5 * MINUTE
    shorts = [five(at, failed or 0, of=5 if failed is not None else 0) for failed in short]
    state, trips = read(hour(at, 30), *shorts)
    assert (trips, state.status) == ([], GateStatus.OK)


def test_a_short_window_of_another_end_or_contract_says_nothing() -> None:
    at = NOON + 5 * MINUTE
    for other in (five(at - 5 * MINUTE, 5), five(at + 5 * MINUTE, 5), a_window(5 * MINUTE, at, 5, 5, contract="c2")):
        _, trips = read(hour(at, 30), other)
        assert trips == []


def slow(end: int) -> Iterable[Window]:
    """Few runs: too few in the hour, enough in six, of which most fail."""
    yield a_window(HOUR, end, 4, 5)
    yield a_window(5 * MINUTE, end, 1, 1)
    yield a_window(6 * HOUR, end, 25, 30)
    yield a_window(30 * MINUTE, end, 2, 3)


def test_where_the_hour_has_too_few_runs_six_hours_speak_at_their_own_ends() -> None:
    _, [trip] = read(*slow(NOON))
    assert trip.why.startswith("0.8333 of the runs fail over 360 min")
    state, trips = read(*slow(NOON + 5 * MINUTE))
    assert (trips, state.why) == ([], "5 decided, needs 30")


def test_six_hours_have_limits_of_their_own() -> None:
    pairs = [{"long": "1h", "short": "5m", "burn": 15}, {"long": "6h", "short": "30m", "burn": 6}]
    gate = GATE.model_validate(GATE.model_dump() | {"pairs": pairs})
    good, bad = hour(NOON, 3), a_window(6 * HOUR, NOON, 300, 360)
    _, [trip] = read(good, five(NOON, 0), bad, a_window(30 * MINUTE, NOON, 20, 30), gate=gate)
    assert [trip.value, trip.threshold] == pytest.approx([300 / 360, 0.3])
    _, trips = read(good, five(NOON, 0), bad, a_window(30 * MINUTE, NOON, 9, 30), gate=gate)
    assert trips == [], "9 of 30 is not more than six times the budget"


def fired() -> GateState:
    state, _ = read(hour(NOON, 30), five(NOON, 3))
    assert state.status is GateStatus.FIRING
    return state


def test_it_clears_after_an_hour_of_windows_at_80_per_cent_of_the_budget() -> None:
    calm = [hour(NOON + number * 5 * MINUTE, 2) for number in range(1, 13)]
    assert 2 / 60 < 0.8 * 0.05 < 3 / 60
    state, trips = read(*calm[:11], state=fired())
    assert (trips, state.streak, state.why) == ([], 11, "11 of 12 windows recovered")
    state, [over] = read(*calm, state=fired())
    assert (over.transition, over.window_ns) == (Transition.CLEARED, calm[-1].start_ns)
    assert [over.value, over.threshold] == pytest.approx([2 / 60, 0.04])
    assert (state.status, state.clears) == (GateStatus.OK, 1)


def test_a_window_within_the_budget_that_is_not_calm_starts_the_hour_again() -> None:
    windows = [hour(NOON + number * 5 * MINUTE, 3 if number == 6 else 0) for number in range(1, 13)]
    state, trips = read(*windows, state=fired())
    assert (trips, state.streak) == ([], 6)


def test_an_agent_with_few_runs_clears_by_the_longer_windows() -> None:
    """Twelve ends of six hours, half an hour apart; the hours between them hold too few runs, which breaks no row."""
    state, [trip] = read(*slow(NOON))
    calm = [
        one
        for number in range(1, 12 * 6 + 1)
        for one in (
            a_window(HOUR, NOON + number * 5 * MINUTE, 0, 5),
            *([a_window(6 * HOUR, NOON + number * 5 * MINUTE, 0, 30)] if number % 6 == 0 else []),
        )
    ]
    state, trips = read(*calm[:-2], state=state)
    assert (trips, state.streak) == ([], 11)
    _, [over] = read(*calm[-2:], state=state)
    assert (over.transition, over.trip_id) == (Transition.CLEARED, trip.trip_id)


def test_silence_breaks_a_row_of_recovered_windows() -> None:
    windows = [hour(NOON + number * 5 * MINUTE, 0) for number in range(1, 13) if number != 6]
    state, trips = read(*windows, state=fired())
    assert (trips, state.streak) == ([], 6)


def refused(**wrong: Any) -> str:
    with pytest.raises(ValidationError) as refusal:
        BurnRateGate.model_validate({"name": "verdicts", "kind": "burn_rate", "budget": 0.05} | wrong)
    return str(refusal.value)


def test_a_rate_that_can_never_fire_is_refused_with_what_to_write() -> None:
    """The 14.4 of a service that fails one request in a thousand means everything failing here (judging, section 5)."""
    said = refused(budget=0.1, pairs=[{"long": "1h", "short": "5m", "burn": 14.4}])
    assert "burn 14.4 of a budget of 0.1 means 144% failing, which can never be exceeded" in said
    assert "write a burn below 10" in said


def test_windows_without_common_ends_are_refused() -> None:
    assert "write a twelfth of long for short" in refused(pairs=[{"long": "1h", "short": "90m"}])
    assert "write a twelfth of long for short" in refused(pairs=[{"long": "1h", "short": "36m"}])
    assert "write multiples of one another" in refused(pairs=[{"long": "1h", "short": "5m"}, {"long": "84m", "short": "7m"}])
    assert "no pair of windows is left" in refused(pairs=[])


def test_the_windows_that_it_reads_are_published() -> None:
    assert lengths_of([GATE]) == {5 * MINUTE, 30 * MINUTE, HOUR, 6 * HOUR}
    assert (GATE.window, GATE.clear_windows) == (HOUR, 12)
