"""All stages in one process on a store in memory: spans in, and in the end runs, windows, trips, alerts and golden candidates."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from assembly_law import grading
from gate_worlds import Destination, Faults, Killed
from opentelemetry.metrics import NoOpMeter
from unit.runtime.turns import until
from worlds import T0, agent, model, tool, verdict_of

from collectors.dialects import read
from pipeline.errors import TemporaryError
from pipeline.model import ids
from pipeline.model.result import Feedback, JudgeRequest, Judgment
from pipeline.model.run import RunClass
from pipeline.model.span import Span
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.version import TraceVersion
from pipeline.model.window import Transition
from pipeline.runtime import embedded as module
from pipeline.runtime import guard
from pipeline.runtime.clock import ManualClock
from pipeline.runtime.embedded import Embedded
from pipeline.runtime.gates import Gates
from pipeline.runtime.messenger import Messenger
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.close import AssembleSettings
from pipeline.stages.gate import FloorGate, HardGate
from pipeline.stages.grade import Grading
from pipeline.stages.turn import Assembly
from sinks.memory_gates import MemoryGateStore

POLICY = {"policies": [{"name": "no_refund", "forbid": {"tool": "refund"}}]}
GRADING = grading(sampling={"rate": 1.0}, checks=POLICY)
UNSAMPLED = grading(sampling={"rate": 0.0}, checks=POLICY)
HARD = HardGate(name="no refunds", kind="hard", dimensions=("no_refund",))
FLOOR = FloorGate(
    name="policy",
    kind="floor",
    dimension="no_refund",
    raise_below=0.6,
    clear_above=0.9,
    min_n=4,
    min_n_effective=4,
)


class Store(MemoryGateStore):
    """A store in which calls can be held, and can fail."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Callable[[], Any]] = {}
        self.calls: Counter[str] = Counter()

    async def _met(self, name: str) -> None:
        self.calls[name] += 1
        if name in self.before and (waits := self.before[name]()) is not None:
            await waits

    async def insert_spans(self, spans: Sequence[Span]) -> None:
        await self._met("insert_spans")
        await super().insert_spans(spans)

    async def write(self, versions: Sequence[TraceVersion]) -> None:
        await self._met("write")
        await super().write(versions)

    async def write_windows(self, *args: Any, **kwargs: Any) -> None:
        await self._met("write_windows")
        await super().write_windows(*args, **kwargs)

    async def misplaced(self, buckets: Collection[int] = range(ids.BUCKETS), since_ns: int = 0) -> list[tuple[str, str]]:
        await self._met("misplaced")
        return await super().misplaced(buckets, since_ns)


class World:
    """An embedded pipeline with a judge that answers at once unless it is held, on a clock that is moved by hand."""

    def __init__(self, store: Store | None = None, now: int = T0 + 20 * SECOND, graded: Grading = GRADING) -> None:
        self.store = store or Store()
        self.clock = ManualClock(now)
        self.telemetry = Telemetry(NoOpMeter("test"))
        self.pager = Destination(Faults())
        self.judge = asyncio.Event()
        self.judge.set()
        self.asked = 0
        self.pipeline = Embedded(
            self.store,
            Assembly(read=read, settings=AssembleSettings(), grading_of=lambda _project, _agent: graded),
            self._ask,
            Gates(self.store, [HARD, FLOOR], 5 * MINUTE, 5 * MINUTE, {"no_refund": "code"}),
            Messenger(self.store, {"pager": self.pager}, {HARD.name: ["pager"], FLOOR.name: ["pager"]}, self.telemetry),
            [5 * MINUTE],
            self.clock,
            self.telemetry,
            8,
        )

    async def _ask(self, request: JudgeRequest, dimension: str, contract: str) -> Judgment:
        self.asked += 1
        await self.judge.wait()
        return verdict_of(request, dimension, contract)

    async def later(self, ns: int) -> None:
        """Move the clock, and let everything be done that is due then."""
        self.clock.advance_to(self.clock.now() + ns)
        await self.pipeline.settle()

    def die(self) -> None:
        """End all tasks as a kill does: nothing is finished."""
        for task in (*self.pipeline._tasks, *self.pipeline.desk._tasks):
            task.cancel()

    def trips(self) -> list[tuple[str, Transition]]:
        return sorted((trip.gate, trip.transition) for trip in self.store.tripped.values())

    def classes(self) -> list[str]:
        return sorted(run.run_class for run in self.store.live_runs())


@pytest.fixture(autouse=True)
def _no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT", 0.001)
    monkeypatch.setattr(guard, "FIRST_DELAY", 0.0)


@asynccontextmanager
async def started(world: World) -> AsyncIterator[World]:
    await world.pipeline.start()
    try:
        yield world
    finally:
        world.judge.set()
        await world.pipeline.stop()


async def several(part: Any, name: str) -> None:
    """Wait until something was done several times more."""
    done, calls = getattr(part, name), Counter[str]()

    def counting(*args: Any) -> Any:
        calls[name] += 1
        return done(*args)

    setattr(part, name, counting)
    await until(lambda: calls[name] > 5)
    setattr(part, name, done)


def a_trace(number: int, used: str = "lookup", **fields: Any) -> list[Span]:
    return [
        agent(number, 0, None, "shop", **fields),
        tool(number, 1, 0, used, fails=False, **fields),
        model(number, 2, 0, "Your order was refunded.", **fields),
    ]


async def test_spans_go_all_the_way() -> None:
    async with started(World()) as world:
        await asyncio.gather(
            *(world.pipeline.intake.store(a_trace(number, "refund" if number % 2 else "lookup")) for number in range(8))
        )
        assert len(world.store.spans) == 8, "an accepted span is a stored span"
        await world.pipeline.settle()
        assert world.store.live_runs() == [], "their quiet period is not over"
        await world.later(20 * SECOND)
        assert len(world.store.live_runs()) == 8
        assert RunClass.PENDING not in world.classes()
        assert world.asked == 8 * len(GRADING.judged)
        assert world.trips() == [("no refunds", Transition.FIRED), *[("no refunds", Transition.RUN)] * 3]
        assert await world.store.stale_minutes() == []
        assert {window.sums.n for window, _ in world.store.windows.values() if window.series.dimension == "no_refund"} == {8}
        assert sum(case.runs for case in world.store.cases.values()) >= 4
        await world.later(15 * MINUTE)
        assert ("policy", Transition.FIRED) in world.trips()
        assert len(world.pager.keys) == 2
        assert await world.store.unconfirmed_notifications() == []
        await world.later(2 * HOUR)
        assert ("no refunds", Transition.CLEARED) in world.trips()
        assert world.pipeline.intake.now() == world.clock.now()
        assert world.pipeline.failed is None


async def test_settling_waits_for_the_judge_and_for_what_follows() -> None:
    async with started(World()) as world:
        await world.pipeline.intake.store(a_trace(0))
        world.judge.clear()
        world.clock.advance_to(world.clock.now() + 20 * SECOND)
        settling = asyncio.create_task(world.pipeline.settle())
        await until(lambda: world.asked)
        await several(world.pipeline, "_is_settled")
        assert world.classes() == [RunClass.PENDING]
        assert not settling.done()
        world.judge.set()
        await settling
        assert RunClass.PENDING not in world.classes()
        assert await world.store.stale_minutes() == []


async def test_settling_waits_for_windows_that_are_being_written() -> None:
    async with started(World()) as world:
        goes = asyncio.Event()
        world.store.before["write_windows"] = goes.wait
        await world.pipeline.intake.store(a_trace(0))
        world.clock.advance_to(world.clock.now() + 20 * SECOND)
        settling = asyncio.create_task(world.pipeline.settle())
        await until(lambda: world.store.calls["write_windows"] and not world.pipeline.desk.busy)
        await several(world.pipeline, "_is_settled")
        assert not settling.done()
        goes.set()
        await settling
        assert world.store.windows


async def test_no_window_is_final_while_runs_that_were_due_before_are_not_written() -> None:
    async with started(World()) as world:
        await world.pipeline.intake.store([one for number in range(4) for one in a_trace(number)])
        await world.later(20 * SECOND)
        await world.pipeline.intake.store(
            [one for number in range(4, 12) for one in a_trace(number, "refund", received=world.clock.now())]
        )
        await world.pipeline.settle()
        goes = asyncio.Event()
        world.store.before["write"] = goes.wait
        steps = world.store.calls["misplaced"]
        world.clock.advance_to(world.clock.now() + 2 * HOUR)  # a clock that jumps, such as that of a laptop that slept
        await until(lambda: world.store.calls["write"] > 1)
        await several(world.pipeline.gates, "step")
        assert [state.last_window_ns for state in world.store.states.values() if state.gate == FLOOR.name] == [0]
        goes.set()
        await world.pipeline.settle()
        assert ("policy", Transition.FIRED) in world.trips()
        fired = next(trip for trip in world.store.tripped.values() if trip.gate == FLOOR.name)
        assert fired.value == pytest.approx(4 / 12)
        assert world.store.calls["misplaced"] > steps, "a sweep was due"


async def test_a_stop_and_a_start_go_on_where_they_were() -> None:
    first = World()
    async with started(first):
        first.judge.clear()
        await first.pipeline.intake.store(a_trace(0, "refund"))
        first.clock.advance_to(first.clock.now() + 20 * SECOND)
        await until(lambda: first.asked == len(GRADING.judged))
        await first.pipeline.intake.store(a_trace(1, received=first.clock.now()))
        async with asyncio.timeout(10):
            await first.pipeline.stop()  # it meets a batch that was just handed over
    assert not first.pipeline.desk.busy
    (fired,) = first.store.tripped.values()
    assert first.classes() == [RunClass.PENDING]
    assert await first.store.stale_minutes() == [], "a clean stop leaves nothing to be added up"
    async with started(World(first.store, first.clock.now() + HOUR)) as second:
        assert (second.pipeline.owner.open_traces, second.pipeline.owner.pending_runs) == (1, 1)
        await second.pipeline.settle()
        assert len(second.store.live_runs()) == 1, "nothing closes before a quiet period has passed"
        await second.later(10 * SECOND)
        assert len(second.store.live_runs()) == 2
        assert RunClass.PENDING not in second.classes()
        named = [trip for trip in second.store.tripped.values() if trip.run_id]
        assert named == [fired], "it was known, so it is not fired again"
        assert len(second.pager.keys) + len(first.pager.keys) >= 1


@pytest.mark.parametrize("moment", ["insert_spans", "write", "write_windows"])
async def test_what_a_kill_left_is_taken_up(moment: str) -> None:
    first = World()
    await first.pipeline.start()
    dead = asyncio.Event()

    def die() -> None:
        first.die()
        dead.set()
        raise Killed

    first.store.before[moment] = die
    sent = asyncio.create_task(first.pipeline.intake.store(a_trace(0, "refund")))
    if moment != "insert_spans":
        await sent
    await asyncio.gather(sent, return_exceptions=True)
    first.clock.advance_to(first.clock.now() + 20 * SECOND)
    await dead.wait()
    await asyncio.gather(*first.pipeline._tasks, *first.pipeline.desk._tasks, return_exceptions=True)
    accepted = sent.exception() is None
    assert accepted == (moment != "insert_spans")
    first.store.before.clear()
    async with started(World(first.store, first.clock.now())) as second:
        if not accepted:
            await second.pipeline.intake.store(a_trace(0, "refund"))  # as an exporter does
        await second.pipeline.settle()
        await second.later(20 * SECOND)
        assert len(second.store.live_runs()) == 1
        assert second.trips() == [("no refunds", Transition.FIRED)]
        assert len(second.pager.keys) == 1
        assert await second.store.stale_minutes() == []


@pytest.mark.parametrize("call", ["write", "write_windows", "misplaced"])
async def test_a_loop_that_dies_is_reported_and_nobody_waits_for_it(call: str) -> None:
    async with started(World(graded=UNSAMPLED)) as world:  # one version a run, so that nothing more is to be done but what failed

        def break_() -> None:
            raise RuntimeError("a bug")

        await world.pipeline.intake.store(a_trace(0))
        await world.pipeline.settle()
        assert world.pipeline.failed is None
        world.store.before[call] = break_
        with pytest.raises(RuntimeError, match="a bug"):
            await world.later(20 * MINUTE)
        assert isinstance(world.pipeline.failed, RuntimeError)
        with pytest.raises(RuntimeError, match="a bug"):
            await world.pipeline.settle()
        world.store.before.clear()


async def test_a_store_in_temporary_trouble_delays_and_loses_nothing() -> None:
    async with started(World()) as world:
        left = Counter({"write": 3, "write_windows": 3, "misplaced": 2})

        def sometimes(call: str) -> Callable[[], None]:
            def fail() -> None:
                if left[call]:
                    left[call] -= 1
                    raise TemporaryError("busy")

            return fail

        for call in left:
            world.store.before[call] = sometimes(call)
        await world.pipeline.intake.store(a_trace(0, "refund"))
        await world.later(20 * MINUTE)
        assert not +left
        assert world.trips() == [("no refunds", Transition.FIRED)]
        assert len(world.pager.keys) == 1


async def test_feedback_that_is_stored_and_fed_counts() -> None:
    async with started(World()) as world:
        await world.pipeline.intake.store(a_trace(0))
        await world.later(20 * SECOND)
        thumb = Feedback("default", f"{1:032x}", "f1", -1.0, received_ns=T0)
        await world.store.insert_feedback([thumb])
        await world.pipeline.feed([thumb])
        await world.pipeline.settle()
        (run,) = world.store.live_runs()
        assert "thumbs_down" in run.failing
        assert [case.runs for case in world.store.cases.values()] == [1]


async def test_what_is_in_work_is_counted() -> None:
    async with started(World()) as world:
        world.judge.clear()
        await world.pipeline.intake.store([*a_trace(0), *a_trace(1, received=T0 + 25 * SECOND)])
        world.clock.advance_to(T0 + 31 * SECOND)
        await until(lambda: world.pipeline.owner.pending_runs)
        counted = world.telemetry.snapshot()
        assert (counted["tracegrade.traces.open"], counted["tracegrade.runs.pending"]) == (1, 1)
        assert counted["tracegrade.runs.graded pending"] == 1
