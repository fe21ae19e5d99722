"""The owner of traces: one poison trace stops nothing, trouble loses nothing, and what a crash left is taken up (promises 3 and 7)."""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Sequence
from typing import Final

import pytest
from assembly_law import grading
from msgspec.structs import replace
from worlds import T0, World, agent, model, span

from collectors.dialects import read
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model import ids
from pipeline.model.result import Feedback
from pipeline.model.run import RunClass
from pipeline.model.span import Span, seal
from pipeline.model.step import Step
from pipeline.model.time import DAY, MINUTE, SECOND
from pipeline.model.topology import DeadLetter
from pipeline.model.version import StoredTrace, TraceKey, TraceVersion
from pipeline.runtime import guard
from pipeline.runtime import owner as module
from pipeline.runtime.clock import Times
from pipeline.runtime.owner import TraceOwner
from sinks.memory import MemoryStore

GRADING = grading(sampling={"rate": 1.0})
QUIET = 10 * SECOND


class Store(MemoryStore):
    """A store in memory that counts calls, and may be in trouble or refuse a trace for good."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.trouble: dict[str, deque[Exception]] = {}
        self.refuses = ""
        self.forgets_to_retire = False

    def _called(self, name: str) -> None:
        self.calls[name] += 1
        if self.trouble.get(name):
            raise self.trouble[name].popleft()

    async def written(self, trace_keys: Sequence[TraceKey]) -> set[TraceKey]:
        self._called("written")
        return await super().written(trace_keys)

    async def load(self, trace_keys: Sequence[TraceKey]) -> dict[TraceKey, StoredTrace]:
        self._called("load")
        return await super().load(trace_keys)

    async def write(self, versions: Sequence[TraceVersion]) -> None:
        self._called("write")
        if any(version.trace_id == self.refuses for version in versions):
            raise PermanentError("the store cannot hold this")
        await super().write([replace(version, retired=()) if self.forgets_to_retire else version for version in versions])

    async def bury(self, letters: Sequence[DeadLetter]) -> None:
        self._called("bury")
        await super().bury(letters)


class OwnerWorld(World):
    """A world whose store can be in trouble, and in which a span may break whoever reads it."""

    def __init__(self) -> None:
        super().__init__(GRADING)
        self.store: Store = Store()
        self.poison = ""
        self._assembly = replace(self._assembly, read=self._read)
        self.owner = self._new_owner()

    def _read(self, one: Span) -> Step:
        if one.name == self.poison:
            raise ValueError(f"{self.poison} broke it")
        return read(one)

    def deaths(self) -> list[tuple[str, str, bytes]]:
        return sorted(self.store.dead_letters.values())

    def counted(self, name: str) -> float:
        return sum(count for label, count in self._telemetry.snapshot().items() if label.startswith(name))

    def classes(self) -> list[str]:
        return sorted(run.run_class for run in self.store.live_runs())


@pytest.fixture(autouse=True)
def _no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FIRST_DELAY", 0.0)


def a_trace(number: int, **fields: object) -> list[Span]:
    return [agent(number, 0, None, "shop", **fields), model(number, 1, 0, "refunded", **fields)]


def trace_id(number: int) -> str:
    return f"{number + 1:032x}"


# Poison


async def test_a_trace_that_breaks_its_reader_goes_to_the_dead_letters_and_stops_nobody_else() -> None:
    world = OwnerWorld()
    world.poison = "chat poison"
    poisoned = [*a_trace(0), seal(replace(model(0, 2, 0, "x"), name="chat poison"))]
    await world.arrive([*a_trace(1), *poisoned, *a_trace(2)])
    await world.settle()
    assert world.deaths() == [("assemble", "ValueError: chat poison broke it", trace_id(0).encode())]
    assert world.counted("tracegrade.dead_letters") == 1
    assert sorted(run.run.trace_id for run in world.store.live_runs()) == [trace_id(1), trace_id(2)]
    await world.arrive(a_trace(3))
    await world.settle()
    assert len(world.store.live_runs()) == 3


async def test_a_trace_that_the_store_will_never_take_stops_nobody_else() -> None:
    world = OwnerWorld()
    world.store.refuses = trace_id(3)
    await world.arrive([one for number in range(7) for one in a_trace(number)])
    await world.settle()
    assert world.deaths() == [("assemble", "the store cannot hold this", trace_id(3).encode())]
    assert len({run.run.trace_id for run in world.store.live_runs()}) == 6
    assert RunClass.PENDING not in world.classes()
    assert world.owner.next_wake is None


async def test_a_later_span_of_a_poisoned_trace_is_looked_at_with_all_that_came_before() -> None:
    world = OwnerWorld()
    world.poison = "chat m"
    await world.arrive(a_trace(0))
    await world.settle()
    assert world.store.live_runs() == []
    world.poison = ""
    await world.arrive([model(0, 2, 0, "done")])
    await world.settle()
    (run,) = world.store.live_runs()
    assert [step.name for step in run.run.steps] == ["invoke_agent shop", "chat m", "chat m"]


# Trouble


async def test_temporary_trouble_of_the_store_loses_nothing() -> None:
    world = OwnerWorld()
    world.store.trouble = {name: deque([TemporaryError("busy")] * 3) for name in ("written", "load", "write", "bury")}
    world.poison = "chat poison"
    await world.store.insert_spans(a_trace(0))
    await world.arrive([*a_trace(1), seal(replace(model(2, 1, 0, "x"), name="chat poison"))])
    await world.settle()
    await world.arrive([model(1, 2, 0, "done")])
    await world.settle()
    assert [len(run.run.steps) for run in world.store.live_runs()] == [3]
    assert len(world.deaths()) == 1
    assert world.counted("tracegrade.dead_letters") == 1
    assert not any(world.store.trouble.values())


async def test_trouble_that_is_not_temporary_is_raised() -> None:
    world = OwnerWorld()
    world.store.trouble = {"write": deque([RuntimeError("a bug")])}
    await world.arrive(a_trace(0))
    with pytest.raises(RuntimeError, match="a bug"):
        await world.settle()


# Recovery


@pytest.mark.parametrize("told", [True, False], ids=["by this owner", "by the one before"])
async def test_what_was_on_its_way_for_long_is_read_back_although_the_clocks_were_past_it(told: bool) -> None:
    """A bridge's backlog and dead letters come with the time when they were received first."""
    world = OwnerWorld()
    world.now += DAY
    await world.owner.tell_clocks(world.times)
    if not told:
        await world.crash()
    await world.arrive(a_trace(0))
    assert not world.store.live_runs(), "it was stored, folded and acknowledged, and not graded yet"
    await world.crash()
    await world.settle()
    assert len(world.store.live_runs()) == 1


class Grown(OwnerWorld):
    """A world in which there are two partitions since an hour before, and the first has a clock."""

    def __init__(self, clock: int) -> None:
        super().__init__()
        if clock:
            self.store.told_clocks[0] = (clock, clock)
        self.since: list[int] = []
        self.store.unfinished = self._unfinished  # type: ignore[method-assign]

    async def _unfinished(self, buckets: Collection[int] = (), since_ns: int = 0) -> list[TraceKey]:
        self.since.append(since_ns)
        return await MemoryStore.unfinished(self.store, buckets, since_ns)

    def _new_owner(self) -> TraceOwner:
        owner = super()._new_owner()
        return TraceOwner(self.store, self._assembly, owner._publish, self._telemetry, 2, (1,))

    @property
    def times(self) -> Times:
        return Times({1: self.now}, self.now)


IN_THE_SECOND: Final = next(number for number in range(9) if ids.bucket("default", trace_id(number)) % 2)


async def test_a_start_after_partitions_grew_does_not_read_all_history() -> None:
    world = Grown(T0 + DAY)
    await world.crash()
    assert world.since == [T0 + DAY - 5 * MINUTE - 15 * MINUTE]
    assert await world.store.clocks() == {0: T0 + DAY, 1: T0 + DAY}


@pytest.mark.parametrize("clock", [T0 + DAY, 0], ids=["after they grew", "when all is new"])
async def test_an_old_backlog_of_a_new_partition_is_read_back_after_a_death_before_its_first_clock(clock: int) -> None:
    world = Grown(clock)
    world.now = T0 + DAY
    await world.crash()
    await world.arrive(a_trace(IN_THE_SECOND))
    world.store.told_clocks[0] = (T0 + DAY, T0 + DAY)
    await world.crash()
    assert world.owner.open_traces == 1


async def test_feedback_that_was_on_its_way_for_long_is_read_back_too() -> None:
    world = OwnerWorld()
    await world.arrive(a_trace(0))
    await world.settle()
    world.now += DAY
    await world.owner.tell_clocks(world.times)
    await world.arrive([Feedback("default", trace_id(0), "f", -1.0, received_ns=T0)])
    await world.crash()
    await world.settle()
    assert "thumbs_down" in world.store.live_runs()[0].failing


async def test_open_traces_are_read_back_and_nothing_closes_before_a_quiet_period_has_passed() -> None:
    world = OwnerWorld()
    await world.arrive(a_trace(0))
    world.now += MINUTE  # it is long due
    await world.crash()
    assert world.owner.open_traces == 1
    began = world.now
    await world.owner.tick(Times.single(began))
    assert world.owner.next_wake == began + QUIET
    await world.owner.tick(Times.single(began + QUIET - 1))
    assert world.store.live_runs() == []
    await world.arrive([model(0, 2, 0, "done")])  # it was on its way when the owner stopped
    await world.owner.tick(Times.single(began + QUIET))
    (run,) = world.store.live_runs()
    assert len(run.run.steps) == 3


async def test_a_start_with_nothing_open_waits_for_nothing() -> None:
    world = OwnerWorld()
    assert await world.owner.recover(world.now) == 0
    await world.arrive(a_trace(0, received=world.now - MINUTE))
    await world.owner.tick(Times.single(world.now))
    assert len(world.store.live_runs()) == 1


async def test_many_open_traces_are_read_back_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    world = OwnerWorld()
    await world.store.insert_spans([one for number in range(8) for one in a_trace(number)])
    assert await world.owner.recover(world.now) == 8
    assert world.store.calls["load"] == 3
    await world.settle()
    assert len(world.store.live_runs()) == 8
    assert world.owner.open_traces == world.owner.pending_runs == 0


async def test_a_judgment_that_was_outstanding_is_asked_for_again_with_all_its_time() -> None:
    world = OwnerWorld()
    await world.arrive(a_trace(0))
    await world.wait(20, judge_answers=False)
    (first,) = world.questions
    assert world.owner.pending_runs == 1
    world.now += 2 * (first.deadline_ns - first.requested_ns)  # nobody was there when the deadline passed
    await world.crash()
    assert world.owner.pending_runs == 1
    await world.wait(10, judge_answers=False)
    (again,) = world.questions
    assert again.transcript_hash == first.transcript_hash
    assert again.dimensions == first.dimensions
    assert again.deadline_ns - again.requested_ns == first.deadline_ns - first.requested_ns
    assert again.deadline_ns > world.now
    assert world.classes() == [RunClass.PENDING]
    await world.answer()
    await world.settle()
    (run,) = world.store.live_runs()
    assert (run.run_class is RunClass.PENDING, run.class_reason == "expired") == (False, False)


async def test_a_judgment_that_never_comes_is_waited_for_until_its_deadline_and_no_longer() -> None:
    world = OwnerWorld()
    await world.arrive(a_trace(0))
    await world.wait(20, judge_answers=False)
    (asked,) = world.questions
    assert world.owner.next_wake == asked.deadline_ns
    await world.owner.tick(Times.single(asked.deadline_ns - 1))
    assert world.classes() == [RunClass.PENDING]
    await world.owner.tick(Times.single(asked.deadline_ns))
    assert world.classes() == [RunClass.UNRESOLVED]
    assert world.owner.next_wake is None


# Look-ups and memory


async def test_late_spans_cost_one_look_up_a_batch() -> None:
    world = OwnerWorld()
    await world.arrive([one for number in range(50) for one in a_trace(number)])
    await world.settle()
    world.store.calls.clear()
    late = [model(number, 2, 0, "done") for number in range(50)]
    new = [one for number in range(50, 100) for one in a_trace(number)]
    await world.arrive([*late, *new, *late])
    assert world.store.calls == {"written": 1, "load": 1}
    await world.arrive([model(number, 3, 0, "done") for number in range(100)])
    assert world.store.calls == {"written": 1, "load": 1}, "what is in memory is not looked up"
    await world.settle()
    assert {len(run.run.steps) for run in world.store.live_runs()} == {3, 4}


async def test_nothing_of_a_trace_is_held_once_nothing_is_awaited() -> None:
    world = OwnerWorld()
    noise = [span(9, 0, None, name="GET /")]
    await world.arrive([*a_trace(0), *a_trace(1), *noise])
    assert world.owner.open_traces == 3
    await world.settle()
    await world.arrive([*a_trace(0), *noise])  # redelivered
    assert (len(world.owner._states), len(world.owner._agendas[0])) == (0, 0)
    await world.arrive([model(0, 5, 0, "late")])
    await world.settle()
    assert (len(world.owner._states), len(world.owner._agendas[0]), world.owner.open_traces) == (0, 0, 0)
    assert world.owner.next_wake is None


async def test_a_trace_is_not_looked_at_more_often_than_something_is_due() -> None:
    world = OwnerWorld()
    for second in range(5):
        await world.arrive([agent(0, 0, None, "shop", end=T0 + MINUTE, received=T0 + second * SECOND)])
        await world.arrive([model(0, second + 1, 0, "x", received=T0 + second * SECOND)])
    await world.settle()
    await world.owner.tick(Times.single(world.now + DAY))
    assert world.store.calls["write"] == 2  # when it closed, and when it was judged


# Rows at a place they left


async def moved(world: OwnerWorld) -> None:
    """A run that moved to another minute, and whose old rows nobody retired."""
    await world.arrive(a_trace(0))
    await world.settle()
    world.store.forgets_to_retire = True
    await world.arrive([agent(0, 0, None, "shop", end=T0 + 10 * MINUTE)])
    await world.settle()
    world.store.forgets_to_retire = False
    assert len(await world.store.misplaced()) == 1


def places(world: OwnerWorld) -> set[int]:
    return {(row.key.place.minute_ns - T0) // MINUTE for row in world.store.counting()}


async def test_a_sweep_retires_rows_at_places_that_their_runs_left() -> None:
    world = OwnerWorld()
    await moved(world)
    assert len(places(world)) == 2
    world.touched.clear()
    await world.owner.sweep(Times.single(world.now))
    await world.settle()
    assert await world.store.misplaced() == []
    assert len(places(world)) == 1
    assert len({one.minute_ns for one in world.touched}) == 2, "both minutes are to be added up again"
    assert world.owner._states == {}


async def test_a_sweep_leaves_traces_alone_that_are_held_anyway() -> None:
    world = OwnerWorld()
    await moved(world)
    await world.arrive([model(0, 2, 0, "done", received=world.now)])
    world.store.calls.clear()
    await world.owner.sweep(Times.single(world.now))
    assert world.store.calls["load"] == 0
    await world.settle()
    assert len(places(world)) == 1


async def test_a_start_retires_rows_at_places_that_their_runs_left() -> None:
    world = OwnerWorld()
    await moved(world)
    await world.crash()
    await world.settle()
    assert len(places(world)) == 1


async def test_results_whose_owner_died_before_it_wrote_their_run_count_in_nothing_once_the_run_heads_nothing() -> None:
    world = OwnerWorld()
    await world.arrive([agent(0, 1, 0, "inner")])
    with_runs = world.store.write

    async def only_results(versions: Sequence[TraceVersion]) -> None:
        await with_runs(versions)
        world.store.runs.clear()
        world.store.traces.clear()
        raise asyncio.CancelledError

    world.store.write = only_results  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await world.owner.tick(Times.single(world.now + 2 * MINUTE))
    world.store.write = with_runs  # type: ignore[method-assign]
    assert world.store.counting()
    await world.crash()
    await world.arrive([agent(0, 0, None, "outer"), model(0, 2, 0, "done")])
    await world.settle()
    (run,) = world.store.live_runs()
    assert {row.key.run_id for row in world.store.counting()} == {run.run.run_id}


# The clock that gates go by


async def test_gates_may_believe_the_clock_when_everything_that_was_due_is_written() -> None:
    world = OwnerWorld()
    late = world.now + 10 * MINUTE
    assert world.owner.done_until(Times.single(late))[0] == late
    await world.arrive(a_trace(0, received=world.now))
    due = world.now + QUIET
    assert world.owner.done_until(Times.single(world.now))[0] == world.now
    assert world.owner.done_until(Times.single(late))[0] == due, "it is due, and nobody came to it yet"
    believed: list[int] = []
    write = world.store.write

    async def looking(versions: Sequence[TraceVersion]) -> None:
        believed.append(world.owner.done_until(Times.single(late))[0])
        await write(versions)

    world.store.write = looking  # type: ignore[method-assign]
    await world.owner.tick(Times.single(late))
    assert believed == [due], "while it is being written"
    assert world.owner.done_until(Times.single(late))[0] == late


async def test_what_was_open_at_a_stop_holds_the_gates_back_until_it_is_written() -> None:
    world = OwnerWorld()
    await world.arrive(a_trace(0, received=world.now))
    due = world.now + QUIET
    world.now += 60 * MINUTE
    await world.crash()
    assert world.owner.done_until(Times.single(world.now))[0] == due
    await world.settle()
    assert world.owner.done_until(Times.single(world.now))[0] == world.now
