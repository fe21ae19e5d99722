"""Laws of the owner of gates: neither order nor batches nor deaths matter to what runs add up to, to trips and to who is told."""

from collections.abc import Callable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from gate_owner_law import (
    assert_any_call_may_fail,
    assert_floors_trip_the_same,
    assert_incidents_are_the_same,
    assert_the_story_ends_the_same,
    assert_windows_are_recomputed,
    undisturbed,
)
from gate_worlds import FAULTS, Fault
from hypothesis import given, settings
from hypothesis import strategies as st
from law_search import searched

from pipeline.model.run import Cohort
from pipeline.model.time import HOUR
from pipeline.model.window import GateState, Notification, Touched
from pipeline.runtime import windows
from pipeline.runtime.gate_owner import GateOwner
from pipeline.runtime.gates import Gates, Owns
from pipeline.runtime.messenger import Messenger
from pipeline.stages import gate_hard, gate_windows
from pipeline.stages.alert import confirmed
from pipeline.stages.gate import HardGate, Turn
from pipeline.stages.gate_hard import Failure

unhurried = settings(deadline=None)


@unhurried
@given(st.data())
def test_windows_are_those_of_a_recomputation_from_scratch(data: st.DataObject) -> None:
    assert_windows_are_recomputed(data)


@unhurried
@given(st.data())
def test_neither_order_nor_deaths_matter_to_an_incident(data: st.DataObject) -> None:
    assert_incidents_are_the_same(data)


@unhurried
@given(st.data())
def test_neither_order_nor_deaths_matter_to_windows_that_fire(data: st.DataObject) -> None:
    assert_floors_trip_the_same(data)


@settings(unhurried, max_examples=50)
@given(
    st.dictionaries(st.integers(1, 250), st.sampled_from(FAULTS), max_size=6),
    st.booleans(),
    st.sets(st.integers(0, 6), max_size=3),
)
def test_the_story_ends_the_same_however_often_its_owner_dies(faults: dict[int, Fault], told: bool, away: set[int]) -> None:
    assert_the_story_ends_the_same(faults, told=told, away=away)


# Each law is broken once on purpose


def _only_the_minutes_that_changed_make_a_window(patch: pytest.MonkeyPatch) -> None:
    made = windows._windows
    patch.setattr(windows, "_windows", lambda _minutes, changed, length: made(changed, changed, length))


def _a_minute_of_retired_rows_is_another_series(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(windows, "_named_alike", lambda *some: some)


def _nothing_is_derived(patch: pytest.MonkeyPatch) -> None:
    async def told(_self: GateOwner, touched: set[Touched], **_: bool) -> tuple[list[Touched], list[Failure]]:
        return sorted(touched), []

    patch.setattr(GateOwner, "_derived", told)


def _minutes_are_written_before_what_follows_from_them(patch: pytest.MonkeyPatch) -> None:
    recompute = windows.recompute

    async def first(store: windows.WindowStore, *rest: Any) -> windows.Minutes:
        await store.write_minutes(await recompute(store, *rest))
        return {}

    patch.setattr("pipeline.runtime.gate_owner.recompute", first)


def _what_was_touched_is_forgotten_in_trouble(patch: pytest.MonkeyPatch) -> None:
    step = GateOwner.step

    async def forgetful(self: GateOwner, now: int, wall: int) -> None:
        touched = set(self._touched)
        await step(self, now, wall)
        self._touched -= touched

    patch.setattr(GateOwner, "step", forgetful)
    _nothing_is_derived(patch)


def _a_gate_that_said_nothing_has_no_state(patch: pytest.MonkeyPatch) -> None:
    save = Gates._save

    async def changed(self: Gates, key: tuple[str, str, Cohort], state: GateState) -> None:
        if state.version:
            await save(self, key, state)

    patch.setattr(Gates, "_save", changed)


def _states_are_not_rebuilt_from_trips(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.gate_hard.rebuild", lambda state, _trips: state)
    patch.setattr("pipeline.stages.gate_windows.rebuild", lambda state, _trips: state)


def _nobody_is_told_after_a_start(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Messenger, now: int, owns: Owns) -> None:  # noqa: ARG001 - it stands in for another
        return None

    patch.setattr(Messenger, "recover", nothing)


def _what_is_due_is_confirmed_before_it_is_sent(patch: pytest.MonkeyPatch) -> None:
    attempt = Messenger._try

    async def early(self: Messenger, one: Notification, now: int) -> Notification:
        await self._store.write_notifications([confirmed(one, now)])
        return await attempt(self, one, now)

    patch.setattr(Messenger, "_try", early)


def _a_run_trips_again_whenever_it_is_seen(patch: pytest.MonkeyPatch) -> None:
    def unknown(_self: Gates, gate: HardGate, state: GateState, failures: Sequence[Failure], now: int) -> Turn:
        return gate_hard.on_failures(gate, state, failures, (), now)

    patch.setattr(Gates, "_hard", unknown)


def _trips_are_named_by_chance(patch: pytest.MonkeyPatch) -> None:
    names = count()
    patch.setattr("pipeline.stages.gate_hard.ids", SimpleNamespace(digest=lambda *_: f"trip-{next(names)}"))


def _windows_are_read_before_they_are_final(patch: pytest.MonkeyPatch) -> None:
    on_windows = gate_windows.on_windows
    patch.setattr(
        gate_windows, "on_windows", lambda gate, state, held, now, allowance: on_windows(gate, state, held, now + HOUR, allowance)
    )


windows_law, incidents_law, floors_law = (
    searched(assert_windows_are_recomputed, 300),
    searched(assert_incidents_are_the_same, 300),
    searched(assert_floors_trip_the_same, 300),
)


@pytest.mark.parametrize(
    ("mutate", "law"),
    [
        (_only_the_minutes_that_changed_make_a_window, windows_law),
        (_a_minute_of_retired_rows_is_another_series, windows_law),
        (_nothing_is_derived, windows_law),
        (_minutes_are_written_before_what_follows_from_them, assert_any_call_may_fail),
        (_what_was_touched_is_forgotten_in_trouble, assert_any_call_may_fail),
        (_a_gate_that_said_nothing_has_no_state, assert_any_call_may_fail),
        (_states_are_not_rebuilt_from_trips, assert_any_call_may_fail),
        (_nobody_is_told_after_a_start, assert_any_call_may_fail),
        (_what_is_due_is_confirmed_before_it_is_sent, assert_any_call_may_fail),
        (_a_run_trips_again_whenever_it_is_seen, incidents_law),
        (_trips_are_named_by_chance, incidents_law),
        (_windows_are_read_before_they_are_final, floors_law),
    ],
    ids=lambda one: one.__name__.strip("_").replace("_", " "),
)
def test_a_broken_owner_breaks_the_law(
    mutate: Callable[[pytest.MonkeyPatch], None], law: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed()
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        law()
