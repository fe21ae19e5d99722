"""Promise 4 at the end of a trace's life: what has expired, and what comes after that, changes nothing that was said of its runs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from assembly_law import GRADING, facts, seen
from gate_worlds import GateWorld, story, tell
from gate_worlds import seen as seen_of_gates
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from worlds import T0, Action, World, agent, in_order, model, schedules

from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span
from pipeline.model.time import DAY, SECOND
from pipeline.model.topology import Record
from pipeline.model.version import TraceKey

LAWS = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
RETENTION = 7 * DAY


class ExpiringWorld(World):
    """A world in which facts are kept for a week."""

    def __init__(self) -> None:
        super().__init__(GRADING)
        self._assembly = replace(self._assembly, retention_of=lambda _: RETENTION)
        self.owner = self._new_owner()

    @property
    def late(self) -> float:
        return self._telemetry.snapshot().get("tracegrade.facts.late_after_retention", 0)

    def expire(self, keep: int) -> None:
        """Delete facts as an engine does: in no order, and any number of them at a time."""
        kinds: tuple[dict[TraceKey, dict[Any, Any]], ...] = (
            self.store.spans,
            self.store.log_records,
            self.store.judgments,
            self.store.feedback,
            self.store.evidence,
        )
        for kind in kinds:
            for of_trace in kind.values():
                for index, key in enumerate(list(of_trace)):
                    if (index + 1) & keep == 0:
                        del of_trace[key]


def _after(records: Sequence[Record], days: float) -> list[Record]:
    """The same things said, later by so many days, and differently: nothing of it is known."""
    at = T0 + int(days * DAY)
    return [
        replace(one, id=f"{one.id}-late", received_ns=at)
        if isinstance(one, Feedback)
        else replace(one, content_hash=f"{one.content_hash}-late", received_ns=at)
        for one in records
        if not isinstance(one, Judgment)
    ]


@LAWS
@given(st.data())
def test_whatever_expired_and_whatever_comes_after_it_changes_nothing_of_a_graded_trace(data: st.DataObject) -> None:
    records = data.draw(facts().filter(lambda some: any(isinstance(one, Span) for one in some)))
    late = _after(records, 8)
    schedule = data.draw(schedules(len(late)))
    keep = data.draw(st.integers(0, 7))

    async def play() -> None:
        world = ExpiringWorld()
        for action in in_order(records):
            await world.act(action, records)
        await world.settle()
        before = seen(world)
        world.now += 8 * DAY
        world.expire(keep)
        for action in schedule:
            await world.act(action, late)
        await world.crash()
        await world.settle()
        assert seen(world) == before
        assert world.late >= len({repr(one) for one in late})

    asyncio.run(play())


def _trace() -> list[Record]:
    return [agent(0, 0, None, "a", received=T0), model(0, 1, 0, "refunded", received=T0 + SECOND)]


def _play(age: int, later: list[Record], *, expire: bool) -> ExpiringWorld:
    async def play() -> ExpiringWorld:
        world = ExpiringWorld()
        await world.act(Action("arrive", records=(0, 1), seconds=60), _trace())
        await world.settle()
        if expire:
            world.expire(keep=0)
        world.now = T0 + age
        await world.arrive(later)
        await world.settle()
        return world

    return asyncio.run(play())


@pytest.mark.parametrize("expired", [False, True], ids=["still there", "gone"])
def test_a_record_that_comes_after_the_retention_makes_no_version_whatever_is_left_of_the_trace(expired: bool) -> None:
    (before,) = _play(RETENTION, [], expire=False).store.live_runs()
    some: list[Record] = [model(0, at, 0, "done", received=T0 + RETENTION) for at in range(2, 9)]
    world = _play(RETENTION + 1, some, expire=expired)
    assert (world.store.live_runs(), world.late) == ([before], 7)


def test_a_record_that_comes_within_the_retention_makes_a_new_version() -> None:
    (before,) = _play(RETENTION, [], expire=False).store.live_runs()
    world = _play(RETENTION, [model(0, 2, 0, "done", received=T0 + RETENTION)], expire=False)
    (run,) = world.store.live_runs()
    assert (run.version > before.version, world.late) == (True, 0)


def test_what_came_late_is_no_trace_of_its_own_and_the_trace_is_remembered_for_as_long() -> None:
    remembered: list[TraceKey] = []

    async def play() -> ExpiringWorld:
        world = ExpiringWorld()
        await world.arrive(_trace())
        await world.settle()

        async def remember(keys: Sequence[TraceKey]) -> None:
            remembered.extend(keys)

        world.store.remember = remember  # type: ignore[method-assign,assignment]
        world.now += 8 * DAY
        await world.arrive(_after(_trace(), 8))
        await world.crash()
        await world.settle()
        return world

    world = asyncio.run(play())
    assert remembered == [("default", f"{1:032x}")]
    assert len(world.store.live_runs()) == 1
    assert world.owner.open_traces == 0


@LAWS
@given(st.data())
def test_whatever_expired_of_runs_and_results_leaves_what_they_add_up_to_as_it_was(data: st.DataObject) -> None:
    """Minutes, windows, gates, trips and golden cases say what they said, also after a start that looks at everything."""
    chapters = story()
    away = data.draw(st.sets(st.integers(0, len(chapters) - 1), max_size=2))
    drawn = data.draw(st.lists(st.booleans(), min_size=7, max_size=7))

    async def play() -> None:
        world = await tell(GateWorld(retention=30 * DAY), chapters, away)
        before = seen_of_gates(world)
        world.now += 61 * DAY
        await world.step()
        rows: tuple[dict[Any, Any], ...] = (world.store.results, world.store.runs)
        for kind in rows:
            for index, key in enumerate(list(kind)):
                if drawn[index % len(drawn)]:
                    del kind[key]
        world.owner = None
        await world.step()
        assert seen_of_gates(world) == before

    asyncio.run(play())
