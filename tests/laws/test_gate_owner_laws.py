"""Laws of the owner of gates: neither order nor batches nor deaths matter to what runs add up to, to trips and to who is told."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from gate_worlds import DESK, FAULTS, FLOOR, GATES, SHOP, START, Fault, GateWorld, Seen, graded, merged, seen, story, tell
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.model.run import Cohort, Place
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.version import ResultRow, Retired, TraceVersion
from pipeline.model.window import GateState, Notification, Series, Sums, Touched, Transition, Trip, Window
from pipeline.runtime import windows
from pipeline.runtime.gate_owner import GateOwner
from pipeline.runtime.gates import Gates, Owns
from pipeline.runtime.messenger import Messenger
from pipeline.stages import gate_floor, gate_hard
from pipeline.stages.alert import confirmed
from pipeline.stages.gate import HardGate, Turn
from pipeline.stages.gate_hard import Failure
from pipeline.stages.turn import keys
from pipeline.stages.window import fold, total, window, windows_of
from sinks.memory_gates import MemoryGateStore, minute_row

LENGTH = 5 * MINUTE
unhurried = settings(deadline=None)


class Delivery(NamedTuple):
    """How versions get to the owner: in which order, how many at once, told or not, what fails meanwhile, and how long nobody looks."""

    order: Sequence[int]
    sizes: Sequence[int]
    told: Sequence[bool]
    pauses: Sequence[int]
    faults: dict[int, Fault]


@st.composite
def deliveries(draw: st.DrawFn, versions: int, pauses: Sequence[int] = (0, 1, 29, 31, 400)) -> Delivery:
    """Any order, any split, any redelivery."""
    order = [*draw(st.permutations(range(versions))), *draw(st.lists(st.integers(0, versions - 1), max_size=3))]
    some_of = st.integers(0, 200)
    return Delivery(
        order=order,
        sizes=draw(st.lists(st.integers(1, 4), min_size=len(order), max_size=len(order))),
        told=draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order))),
        pauses=draw(st.lists(st.sampled_from(pauses), min_size=len(order), max_size=len(order))),
        faults=draw(st.dictionaries(some_of, st.sampled_from(FAULTS), max_size=4)),
    )


def at_once(versions: int) -> Delivery:
    """The plainest delivery."""
    return Delivery(range(versions), [versions], [True], [0], {})


async def deliver(versions: Sequence[TraceVersion], how: Delivery, gates: Sequence[Any] = GATES) -> GateWorld:
    """Deliver versions, let the owner look in between, and give it time in the end to derive what nobody told it."""
    world = GateWorld(how.faults, gates=gates)
    await world.step()
    queue = [versions[index] for index in how.order]
    for size, told, pause in zip(how.sizes, how.told, how.pauses, strict=True):
        world.tells = told
        await world.write(*queue[:size])
        queue = queue[size:]
        world.now += pause * SECOND
        await world.step()
    for _ in range(3):
        world.now += MINUTE
        await world.step()
    return world


# Windows are what a fold of all rows from scratch gives


cohorts = st.sampled_from([SHOP, DESK])
changes = st.tuples(
    cohorts, st.integers(0, 7), st.booleans(), st.lists(st.sampled_from(["forbid", "gated"]), unique=True), st.booleans()
)


@st.composite
def histories(draw: st.DrawFn) -> list[TraceVersion]:
    """Versions of a few runs that move, change their minds, and are merged; each retires what its predecessors said elsewhere."""
    made: list[TraceVersion] = []
    for number in range(draw(st.integers(1, 4))):
        before: list[TraceVersion] = []
        for facts, (cohort, minute, passes, failing, ends) in enumerate(draw(st.lists(changes, min_size=1, max_size=3)), start=1):
            version = graded(number, cohort, minute, passes=passes, failing=failing, facts=facts)
            if ends and before:
                version = merged(before[-1], facts)
            current = {key for run in version.runs for key in keys(run)}
            left = {key for one in before for run in one.runs for key in keys(run)} - current
            before.append(replace(version, retired=tuple(Retired(key, 4 * facts) for key in sorted(left))))
        made += before
    return made


def from_scratch(store: MemoryGateStore) -> dict[tuple[str, Cohort, str, str, int], Window]:
    """Every window that holds a row, by hand."""
    rows: dict[tuple[str, Place, str, str], list[ResultRow]] = {}
    for row in store.results.values():
        rows.setdefault((row.project, row.key.place, row.key.dimension, row.key.contract), []).append(row)
    minutes: dict[tuple[str, Cohort, str, str], dict[int, Sums]] = {}
    for (project, place, dimension, contract), held in rows.items():
        series = minutes.setdefault((project, place.cohort, dimension, contract), {})
        series[place.minute_ns] = fold(map(minute_row, held))
    made = {}
    for named, by_minute in minutes.items():
        project, cohort, dimension, contract = named
        for start in {start for minute in by_minute for start in windows_of(minute, LENGTH)}:
            inside = total(sums for minute, sums in by_minute.items() if start <= minute < start + LENGTH)
            made[*named, start] = window(Series(project, cohort, dimension, "", contract), start, LENGTH, inside)
    return made


def published(store: MemoryGateStore) -> dict[tuple[str, Cohort, str, str, int], Window]:
    """Every window that is stored; whose word it is needs no proof."""
    found = {}
    for one, _ in store.windows.values():
        series = one.series
        named = (series.project, series.cohort, series.dimension, series.contract, one.start_ns)
        found[named] = replace(one, series=replace(series, kind=""))
    return found


async def check_windows(versions: Sequence[TraceVersion], how: Delivery) -> None:
    """The law of windows."""
    world = await deliver(versions, how)
    assert published(world.store) == from_scratch(world.store)
    assert await world.store.stale_minutes() == []


def any_windows(data: st.DataObject) -> None:
    """The law of windows, for any history and any delivery."""
    versions = data.draw(histories())
    asyncio.run(check_windows(versions, data.draw(deliveries(len(versions)))))


@unhurried
@given(st.data())
def test_windows_are_those_of_a_recomputation_from_scratch(data: st.DataObject) -> None:
    any_windows(data)


# Incidents


failing_runs = st.lists(
    st.tuples(st.integers(0, 9), cohorts, st.integers(0, 3), st.sampled_from([["forbid"], ["forbid", "gated"], ["answer"]])),
    min_size=1,
    max_size=8,
    unique_by=lambda drawn: drawn[0],
)


def incidents(trips: Iterable[Trip]) -> dict[tuple[str, Cohort, str], tuple[int, int, set[str]]]:
    """By gate, cohort and trip id: firings, clearings, and the runs that are named."""
    found: dict[tuple[str, Cohort, str], tuple[int, int, set[str]]] = {}
    for trip in trips:
        fired, cleared, runs = found.get((trip.gate, trip.cohort, trip.trip_id), (0, 0, set()))
        found[trip.gate, trip.cohort, trip.trip_id] = (
            fired + (trip.transition is Transition.FIRED),
            cleared + (trip.transition is Transition.CLEARED),
            runs | ({trip.run_id} if trip.run_id else set()),
        )
    return found


async def check_incidents(versions: Sequence[TraceVersion], how: Delivery) -> None:
    """The law of hard gates, as long as no pause is as long as a gate's quiet."""
    plain = await deliver(versions, at_once(len(versions)))
    world = await deliver(versions, how)
    hard = [incidents(trip for trip in one.store.tripped.values() if trip.kind == "hard") for one in (world, plain)]
    assert hard[0] == hard[1]
    assert all(fired == 1 for fired, _, _ in hard[0].values())
    states = [
        {
            key: (state.status, state.runs, state.trip_id)
            for key, state in one.store.states.items()
            if key[1] in ("no refunds", "gating")
        }
        for one in (world, plain)
    ]
    assert states[0] == states[1]
    assert world.pager.keys == plain.pager.keys


def any_incidents(data: st.DataObject) -> None:
    """The law of hard gates, for any failing runs and any delivery."""
    versions = [graded(number, cohort, minute, failing=failing) for number, cohort, minute, failing in data.draw(failing_runs)]
    asyncio.run(check_incidents(versions, data.draw(deliveries(len(versions), pauses=(0, 1, 31)))))


@unhurried
@given(st.data())
def test_neither_order_nor_deaths_matter_to_an_incident(data: st.DataObject) -> None:
    any_incidents(data)


# Floor gates


async def check_floors(versions: Sequence[TraceVersion], how: Delivery) -> None:
    """The law of floor gates: results that come before their windows are final trip the same, in whatever order they come."""
    plain, world = [await deliver(versions, each, [FLOOR]) for each in (at_once(len(versions)), how)]
    for one in (plain, world):
        for minute in (7, 9, 30):
            one.now = START + minute * MINUTE
            await one.step()
    assert world.store.tripped == plain.store.tripped
    assert {key: replace(state, version=0) for key, state in world.store.states.items()} == {
        key: replace(state, version=0) for key, state in plain.store.states.items()
    }
    assert world.pager.keys == plain.pager.keys


passing_runs = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=8)


def any_floors(data: st.DataObject) -> None:
    """The law of floor gates, for any runs, and any delivery that is over before the first window is final."""
    versions = [graded(number, SHOP, minute, passes=passes) for number, (minute, passes) in enumerate(data.draw(passing_runs))]
    asyncio.run(check_floors(versions, data.draw(deliveries(len(versions), pauses=(0, 1, 5)))))


@unhurried
@given(st.data())
def test_neither_order_nor_deaths_matter_to_windows_that_fire(data: st.DataObject) -> None:
    any_floors(data)


# Deaths


@cache
def undisturbed() -> Seen:
    """What is seen of the story when all goes well."""
    return seen(asyncio.run(tell(GateWorld(), story())))


def check_story(faults: dict[int, Fault], *, told: bool = True, away: Iterable[int] = ()) -> None:
    """The law of deaths."""
    assert seen(asyncio.run(tell(GateWorld(faults, tells=told), story(), away))) == undisturbed()


@unhurried
@given(
    st.dictionaries(st.integers(1, 250), st.sampled_from(FAULTS), max_size=6),
    st.booleans(),
    st.sets(st.integers(0, 6), max_size=3),
)
def test_the_story_ends_the_same_however_often_its_owner_dies(faults: dict[int, Fault], told: bool, away: set[int]) -> None:
    check_story(faults, told=told, away=away)


# Each law is broken once on purpose


def _only_the_minutes_that_changed_make_a_window(patch: pytest.MonkeyPatch) -> None:
    made = windows._windows
    patch.setattr(windows, "_windows", lambda _minutes, changed, length: made(changed, changed, length))


def _a_minute_of_retired_rows_is_another_series(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(windows, "_named_alike", lambda *some: some)


def _nothing_is_derived(patch: pytest.MonkeyPatch) -> None:
    async def told(self: GateOwner, touched: set[Touched], wall: int) -> tuple[list[Touched], list[Failure]]:
        self._derived_ns = wall
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
    patch.setattr("pipeline.stages.gate_floor.rebuild", lambda state, _trips: state)


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
    on_windows = gate_floor.on_windows
    patch.setattr(
        gate_floor, "on_windows", lambda gate, state, held, now, allowance: on_windows(gate, state, held, now + HOUR, allowance)
    )


def check_every_call() -> None:
    """The law of deaths, at each call of the story."""
    calls = len(asyncio.run(tell(GateWorld(), story())).faults.calls)
    for number in range(1, calls + 1):
        for fault in FAULTS:
            check_story({number: fault})


def drawn(law: Callable[[st.DataObject], None]) -> Callable[[], None]:
    """A law as a function that searches for what breaks it, always the same way."""
    search = settings(
        max_examples=300,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    return search(given(st.data())(law))


windows_law, incidents_law, floors_law = drawn(any_windows), drawn(any_incidents), drawn(any_floors)


@pytest.mark.parametrize(
    ("mutate", "law"),
    [
        (_only_the_minutes_that_changed_make_a_window, windows_law),
        (_a_minute_of_retired_rows_is_another_series, windows_law),
        (_nothing_is_derived, windows_law),
        (_minutes_are_written_before_what_follows_from_them, check_every_call),
        (_what_was_touched_is_forgotten_in_trouble, check_every_call),
        (_a_gate_that_said_nothing_has_no_state, check_every_call),
        (_states_are_not_rebuilt_from_trips, check_every_call),
        (_nobody_is_told_after_a_start, check_every_call),
        (_what_is_due_is_confirmed_before_it_is_sent, check_every_call),
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
