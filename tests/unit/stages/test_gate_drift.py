"""Drift gates: a small rise that lasts."""

from math import log
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import ValidationError
from unit.stages.test_gate_burn_rate import ALLOWANCE, NOON, START, a_window, read

from pipeline.model.time import DAY, HOUR, MINUTE
from pipeline.model.window import GateState, GateStatus, Transition, Window
from pipeline.stages.gate import DriftGate
from pipeline.stages.gate_windows import due_windows
from pipeline.stats import ecusum

GATE = DriftGate.model_validate({"name": "verdicts", "kind": "drift", "budget": 0.05})


def five(number: int, failed: int, of: int = 10, **more: Any) -> Window:
    """The window that ends so many five minutes after noon."""
    return a_window(5 * MINUTE, NOON + number * 5 * MINUTE, failed, of, **more)


def test_evidence_gathers_over_windows_until_it_fires() -> None:
    """Each window has 1 failing run of 10, twice the budget: none of them alone says anything."""
    evidence: tuple[float, ...] = ()
    needed = 0
    while ecusum.logarithm(evidence) < log(90 * DAY // (5 * MINUTE)):
        evidence, needed = ecusum.after(evidence, 0.05, 1, 10), needed + 1
    state, trips = read(*[five(number, 1) for number in range(1, needed)], gate=GATE)
    assert trips == []
    assert state.memory != ()
    state, [trip] = read(five(needed, 1), state=state, gate=GATE)
    assert (trip.transition, trip.kind, trip.threshold) == (Transition.FIRED, "drift", 0.05)
    assert trip.value == pytest.approx(0.1)
    assert trip.why.startswith("more than 0.05 of the runs have failed for some time: evidence ")
    assert "chance takes 25,920 windows on average" in trip.why
    assert (state.status, state.memory) == (GateStatus.FIRING, ())


def test_a_budget_that_is_kept_gathers_none() -> None:
    state, trips = read(*[five(number, int(number % 2 == 0)) for number in range(1, 300)], gate=GATE)
    assert trips == []
    assert ecusum.logarithm(state.memory) < 2


def test_each_run_counts_once() -> None:
    """Windows of five minutes are published every minute; those between are parts of others."""
    between = a_window(5 * MINUTE, NOON + 7 * MINUTE, 10, 10)
    whole = five(2, 10)
    assert due_windows(GATE, START, [between, whole], NOON + DAY, ALLOWANCE) == [whole]


def test_a_window_of_unequal_weights_counts_as_the_fewer_runs_that_it_is_worth() -> None:
    state, _ = read(replace(five(1, 2), n_effective=5.0), gate=GATE)
    assert state.memory == pytest.approx(ecusum.after((), 0.05, 1, 5))


def test_a_window_that_says_nothing_leaves_the_evidence_as_it_is() -> None:
    before, _ = read(five(1, 3), gate=GATE)
    thin = replace(five(2, 10), coverage=0.7)
    for silent, why in ((five(2, 0, of=0), "no data"), (thin, "coverage 0.7, needs 0.8")):
        after, trips = read(silent, state=before, gate=GATE)
        assert (after.memory, after.why, trips) == (before.memory, why, [])


def test_another_contract_begins_anew() -> None:
    before, _ = read(five(1, 3), gate=GATE)
    after, _ = read(five(2, 3, contract="c2"), state=before, gate=GATE)
    assert after.memory == before.memory


def fired() -> GateState:
    state, _ = read(five(1, 10), five(2, 10), gate=GATE)
    assert state.status is GateStatus.FIRING
    return state


def long(number: int, failed: int, of: int = 400) -> tuple[Window, Window]:
    """Six hours that end so many half hours after noon, and the five minutes that end with them."""
    return a_window(6 * HOUR, NOON + number * 30 * MINUTE, failed, of), five(6 * number, 0)


def test_it_clears_when_six_hours_have_been_calm_for_an_hour() -> None:
    windows = [*long(1, 16), *(five(number, 0) for number in range(7, 12)), *long(2, 16)]
    state, [over] = read(*windows, state=fired(), gate=GATE)
    assert over.transition is Transition.CLEARED
    assert [over.value, over.threshold] == pytest.approx([0.04, 0.04])
    assert (state.status, state.memory) == (GateStatus.OK, ())


def test_it_goes_on_firing_while_six_hours_hold_too_many() -> None:
    state, trips = read(*long(1, 17), *(five(number, 0) for number in range(7, 12)), *long(2, 17), state=fired(), gate=GATE)
    assert (trips, state.streak) == ([], 0)
    assert state.why.startswith("0.0425 of the runs fail, more than 0.04")


def test_windows_that_never_end_together_are_refused() -> None:
    for wrong in ({"window": "7m"}, {"window": "1h", "clear_window": "90m"}, {"clear_window": "1m"}):
        with pytest.raises(ValidationError, match="write a multiple of window for clear_window"):
            DriftGate.model_validate({"name": "a", "kind": "drift", "budget": 0.05} | wrong)
    with pytest.raises(ValidationError, match="write days, such as 90d"):
        DriftGate.model_validate({"name": "a", "kind": "drift", "budget": 0.05, "false_alarm_every": "9m"})
