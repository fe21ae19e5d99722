"""The laws of the owner of gates as functions, so that the product can be held to them and mutants can be seen to break them."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from gate_worlds import (
    BURN,
    DESK,
    DRIFT,
    FAULTS,
    FLOOR,
    GATES,
    SHOP,
    START,
    Fault,
    GateWorld,
    Seen,
    assert_same,
    graded,
    merged,
    seen,
    story,
    tell,
)
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.model.run import Cohort, Place
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.version import ResultRow, Retired, TraceVersion
from pipeline.model.window import Series, Sums, Transition, Trip, Window
from pipeline.stages.turn import keys
from pipeline.stages.window import fold, total, window, windows_of
from sinks.memory_gates import MemoryGateStore, minute_row

LENGTH = 5 * MINUTE


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


async def _windows(versions: Sequence[TraceVersion], how: Delivery) -> None:
    """The law of windows."""
    world = await deliver(versions, how)
    assert_same(published(world.store), from_scratch(world.store))
    assert await world.store.stale_minutes() == []


def assert_windows_are_recomputed(data: st.DataObject) -> None:
    """The law of windows, for any history and any delivery."""
    versions = data.draw(histories())
    asyncio.run(_windows(versions, data.draw(deliveries(len(versions)))))


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


async def _incidents(versions: Sequence[TraceVersion], how: Delivery) -> None:
    """The law of hard gates, as long as no pause is as long as a gate's quiet."""
    plain = await deliver(versions, at_once(len(versions)))
    world = await deliver(versions, how)
    hard = [incidents(trip for trip in one.store.tripped.values() if trip.kind == "hard") for one in (world, plain)]
    assert_same(*hard)
    assert all(fired == 1 for fired, _, _ in hard[0].values())
    states = [
        {
            key: (state.status, state.runs, state.trip_id)
            for key, state in one.store.states.items()
            if key[1] in ("no refunds", "gating")
        }
        for one in (world, plain)
    ]
    assert_same(*states)
    assert world.pager.keys == plain.pager.keys


def assert_incidents_are_the_same(data: st.DataObject) -> None:
    """The law of hard gates, for any failing runs and any delivery."""
    versions = [graded(number, cohort, minute, failing=failing) for number, cohort, minute, failing in data.draw(failing_runs)]
    asyncio.run(_incidents(versions, data.draw(deliveries(len(versions), pauses=(0, 1, 31)))))


# Gates over windows


async def _floors(versions: Sequence[TraceVersion], how: Delivery) -> None:
    """The law of gates over windows: results that come before their windows are final trip the same, in whatever order they come."""
    plain, world = [await deliver(versions, each, [FLOOR, BURN, DRIFT]) for each in (at_once(len(versions)), how)]
    for one in (plain, world):
        for minute in (7, 9, 30):
            one.now = START + minute * MINUTE
            await one.step()
    assert_same(world.store.tripped, plain.store.tripped)
    assert_same(*({key: replace(state, version=0) for key, state in one.store.states.items()} for one in (world, plain)))
    assert world.pager.keys == plain.pager.keys


passing_runs = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=8)


def assert_floors_trip_the_same(data: st.DataObject) -> None:
    """The law of gates over windows, for any runs, and any delivery that is over before the first window is final."""
    versions = [graded(number, SHOP, minute, passes=passes) for number, (minute, passes) in enumerate(data.draw(passing_runs))]
    asyncio.run(_floors(versions, data.draw(deliveries(len(versions), pauses=(0, 1, 5)))))


# Deaths


@cache
def undisturbed() -> Seen:
    """What is seen of the story when all goes well."""
    return seen(asyncio.run(tell(GateWorld(), story())))


def assert_the_story_ends_the_same(faults: dict[int, Fault], *, told: bool = True, away: Iterable[int] = ()) -> None:
    """The law of deaths."""
    assert_same(seen(asyncio.run(tell(GateWorld(faults, tells=told), story(), away)))._asdict(), undisturbed()._asdict())


def assert_any_call_may_fail() -> None:
    """The law of deaths, at each call of the story, in an order that is none of the story's: what breaks it is found the sooner."""
    calls = len(asyncio.run(tell(GateWorld(), story())).faults.calls)
    places = [(number, fault) for number in range(1, calls + 1) for fault in FAULTS]
    random.Random(0).shuffle(places)
    for number, fault in places:
        assert_the_story_ends_the_same({number: fault})
