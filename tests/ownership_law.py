"""The law of ownership: whoever owns which partitions, however often that changes, the rows are those of a single owner.

A group of workers reads one log of traces on one store. Assignments change at any moment: in the middle of a batch, of a write, of a
read-back. Who is gone may still do something before it notices; what it did not acknowledge is delivered again.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec
from assembly_law import GRADING
from hypothesis import strategies as st
from opentelemetry.metrics import NoOpMeter
from worlds import T0, Log, Stored, agent, in_order, ledger_says, model, results_of, run_world, runs_of, verdict_of, windows_of

from collectors.dialects import read
from pipeline.model.evidence import Question
from pipeline.model.result import JudgeRequest
from pipeline.model.time import SECOND
from pipeline.model.topology import JUDGE, TOUCHED, TRACES, Record, Topic
from pipeline.runtime.assembling import SWEEP_EVERY, Assembling
from pipeline.runtime.clock import ManualClock, Times
from pipeline.runtime.faust.assignment import Assignment, Position
from pipeline.runtime.fence import Fence, LostOwnershipError
from pipeline.runtime.holding import DeadLetters
from pipeline.runtime.owner import TraceOwner
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.close import AssembleSettings
from pipeline.stages.turn import Assembly
from sinks.memory import MemoryStore

WORKERS = 3


class Deed(msgspec.Struct, frozen=True):
    """What a worker does last: takes records or ticks, until its fence falls after so many looks at it."""

    kind: Literal["nothing", "take", "tick"]
    looks: int = 0


class Event(msgspec.Struct, frozen=True):
    """One thing that happens to the group."""

    kind: Literal["produce", "take", "pass", "answer", "rebalance", "haunt"]
    records: tuple[int, ...] = ()
    count: int = 0
    """Records of each partition that are taken; seconds that pass; the number of whoever haunts."""
    owners: tuple[int, ...] = ()
    """By partition, the worker that gets it."""
    last: tuple[Deed, ...] = ()
    """What each of the former workers does while it is still owner; its fence falls in the middle of it."""
    deed: Deed = Deed("nothing")
    """What one of those that are gone does meanwhile, before it notices."""


deeds = st.builds(Deed, st.sampled_from(["nothing", "take", "tick"]), st.integers(0, 12))
moments = st.sampled_from([0, 5, 12, 61, 400, 1000, 90_000])


def events(partitions: int) -> st.SearchStrategy[Event]:
    """Anything but the arrival of new records."""
    shares = st.lists(st.integers(0, WORKERS - 1), min_size=partitions, max_size=partitions).map(tuple)
    return st.one_of(
        st.builds(Event, st.just("take"), count=st.integers(1, 9)),
        st.builds(Event, st.just("pass"), count=moments),
        st.just(Event("answer")),
        st.builds(
            Event,
            st.just("rebalance"),
            owners=shares,
            last=st.lists(deeds, min_size=WORKERS, max_size=WORKERS).map(tuple),
            count=st.integers(0, 5),
            deed=deeds,
        ),
        st.builds(Event, st.just("haunt"), count=st.integers(0, 5), deed=deeds),
    )


@st.composite
def group_schedules(draw: st.DrawFn, records: int, partitions: int) -> list[Event]:
    """Records in any order and any split, with everything else in between."""
    queue = draw(st.permutations(range(records)))
    schedule: list[Event] = []
    while queue:
        size = draw(st.integers(1, len(queue)))
        schedule.append(Event("produce", records=tuple(queue[:size])))
        queue = queue[size:]
        schedule += draw(st.lists(events(partitions), max_size=5))
    return schedule


class ShortFence(Fence):
    """A fence that can be told to fall by itself after so many looks at it."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: int | None = None

    def check(self) -> None:
        """Fall when the time has come."""
        if self.looks is not None:
            if not self.looks:
                self.fall()
            self.looks -= 1
        super().check()


class Shared:
    """The store as everybody has it: others have a turn before each call."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            return await method(*args, **kwargs)

        return call


class Worker:
    """A process with an assignment: the product's positions and its assemble node."""

    def __init__(self, group: "Group", owned: Collection[int]) -> None:
        self._group = group
        self.fence = ShortFence()
        self.generation = group.generation
        shared: Any = self.fence.around(Shared(group.store))
        publish = self.fence.around_publish(group.publish)
        telemetry = Telemetry(NoOpMeter("test"))
        assembly = Assembly(read=read, settings=AssembleSettings(), grading_of=lambda _project, _agent: GRADING)
        self.owner = TraceOwner(shared, assembly, publish, telemetry, len(group.log.partitions), owned, group.reads.extend)
        letters = DeadLetters("assemble", shared.bury, publish, telemetry)
        self.assembling = Assembling(shared, self.owner, publish, letters, self._acknowledge, group.clock)
        positions = {partition: Position(group.committed[partition], group.committed[partition]) for partition in owned}
        self.assignment = Assignment(self.generation, self.fence, self.assembling, positions)

    def _acknowledge(self, partition: int, offset: int) -> None:
        self._group.acknowledge(self.generation, partition, offset)

    async def take(self, count: int) -> None:
        """Take the next records of each partition."""
        wanted = []
        for partition, position in list(self.assignment.positions.items()):
            for record in self._group.log.partitions[partition][position.next_offset :][:count]:
                assert self.assignment.expects(partition, record.offset, self.generation)
                self.assignment.took(partition, record.offset)
                wanted.append(record)
        if wanted:
            await self.assembling.take(wanted)
        for record in wanted:
            self.assignment.done(record.partition, record.offset, record.timestamp_ns)

    async def tick(self) -> None:
        """Do what is due."""
        wall = self._group.clock.now()
        ends = {partition: len(held) for partition, held in enumerate(self._group.log.partitions)}
        await self.assembling.tick(Times(self.assignment.partition_times(wall, ends), wall))

    async def do(self, deed: Deed) -> None:
        """Do something, for as long as the fence stands; then be gone."""
        self.fence.looks = deed.looks
        try:
            if deed.kind == "take":
                await self.take(9)
            elif deed.kind == "tick":
                await self.tick()
        except LostOwnershipError:
            return
        self.fence.looks = None


class Group:
    """Workers on one log and one store, driven by hand."""

    def __init__(self, partitions: int) -> None:
        self.store = MemoryStore()
        self.log = Log(TRACES, partitions)
        self.clock = ManualClock(T0 + 30 * SECOND)
        self.committed = dict.fromkeys(range(partitions), 0)
        self.generation = 0
        self.workers: list[Worker] = []
        self.gone: list[Worker] = []
        """Those whose assignment was taken away, and who have not noticed."""
        self._questions: list[JudgeRequest] = []
        self.reads: list[Question] = []
        """What record sources were asked, by whomever: one that is gone asks too, and is answered on the topic like the others."""

    async def publish(self, topic: Topic, records: Sequence[Any]) -> None:
        """Take what workers publish; what is to be judged waits, whoever asked."""
        await asyncio.sleep(0)
        assert topic in (JUDGE, TOUCHED)
        if topic is JUDGE:
            self._questions.extend(records)

    def acknowledge(self, generation: int, partition: int, offset: int) -> None:
        """Commit; the broker takes no word from those that are gone."""
        if generation == self.generation:
            assert offset == self.committed[partition], "out of order"
            self.committed[partition] = offset + 1

    async def assign(self, event: Event) -> None:
        """Take all partitions away, in the middle of what their owners do, and give them to new workers."""
        for worker, deed in zip(self.workers, event.last, strict=False):
            await worker.do(deed)
        self.gone += [worker for worker in self.workers if worker.fence.stands]
        self.generation += 1
        self.workers = [
            Worker(self, [partition for partition, owner in enumerate(event.owners) if owner == number])
            for number in range(WORKERS)
        ]
        await asyncio.gather(self.haunt(event.count, event.deed), *(one.assembling.recover() for one in self.workers))

    async def haunt(self, number: int, deed: Deed) -> None:
        """Let one of those that are gone do something."""
        if self.gone:
            worker = self.gone[number % len(self.gone)]
            await worker.do(deed)
            if not worker.fence.stands:
                self.gone.remove(worker)

    async def answer(self) -> None:
        """Let the judge and record sources answer everything they were asked."""
        read, self.reads[:] = dict.fromkeys(self.reads), []
        self.log.append([ledger_says(question) for question in read], self.clock.now())
        asked, self._questions = self._questions, []
        self.log.append([verdict_of(request, *one) for request in asked for one in request.dimensions], self.clock.now())

    async def tick(self, seconds: int = 0) -> None:
        """Let time pass."""
        self.clock.advance_to(self.clock.now() + seconds * SECOND)
        for worker in self.workers:
            await worker.tick()

    async def take(self, count: int) -> None:
        """Let everybody take records."""
        for worker in self.workers:
            await worker.take(count)

    async def act(self, event: Event, records: Sequence[Record]) -> None:
        """Let something happen."""
        if event.kind == "produce":
            self.log.append([records[index] for index in event.records], self.clock.now())
        elif event.kind == "take":
            await self.take(event.count)
        elif event.kind == "pass":
            await self.tick(event.count)
        elif event.kind == "answer":
            await self.answer()
        elif event.kind == "rebalance":
            await self.assign(event)
        else:
            await self.haunt(event.count, event.deed)

    async def settle(self) -> None:
        """Take everything and run out every clock, with the judge answering at once; then sweep, and see what follows from that."""
        for _ in range(2):
            await self._run_out()
            await self.tick(SWEEP_EVERY // SECOND)
        await self._run_out()

    async def _run_out(self) -> None:
        for _ in range(60):
            await self.take(1000)
            await self.tick()
            wake = min((at for one in self.workers if (at := one.owner.next_wake) is not None), default=None)
            if self._questions or self.reads:
                await self.answer()
            elif wake is None:
                return
            else:
                self.clock.advance_to(wake)
        raise AssertionError("the group does not settle")


def seen(world: Stored) -> dict[str, Any]:
    """All that a reader can see, apart from versions and times of arrival."""
    return {"runs": runs_of(world), "results": results_of(world), "windows": windows_of(world)}


def run_group(records: Sequence[Record], partitions: int, schedule: Sequence[Event]) -> Group:
    """Play a schedule to its end."""

    async def play() -> Group:
        group = Group(partitions)
        await group.assign(Event("rebalance", owners=tuple(partition % WORKERS for partition in range(partitions))))
        for event in schedule:
            await group.act(event, records)
        await group.settle()
        return group

    return asyncio.run(play())


def assert_ownership_changes_nothing(records: Sequence[Record], partitions: int, schedule: Sequence[Event]) -> None:
    """The law: whoever owned what, the rows are those of a single owner, and nothing is left to do."""
    group = run_group(records, partitions, schedule)
    assert seen(group) == seen(run_world(GRADING, records, in_order(records)))
    assert group.committed == {partition: len(held) for partition, held in enumerate(group.log.partitions)}
    assert asyncio.run(group.store.unfinished()) == []
    assert group.store.dead_letters == {}


def _late_write(first: Record, then: Sequence[Record]) -> tuple[list[Record], list[Event]]:
    """An owner took the first record and is stopped; another reads back, takes the rest and grades; then the first write of the former lands."""
    events = [
        Event("produce", records=(0,)),
        Event("take", count=9),
        Event("rebalance", owners=(1,)),
        Event("pass"),  # whoever read back rests from here on
        Event("produce", records=tuple(range(1, len(then) + 1))),
        Event("take", count=9),
        Event("pass", count=20),
        Event("answer"),
        Event("take", count=9),
        Event("pass", count=1),
        Event("haunt", deed=Deed("tick", looks=1)),
    ]
    return [first, *then], events


def assert_an_old_version_counts_less() -> None:
    """The law, where a run is graded by who knows it whole, and then by who knows half of it."""
    records, schedule = _late_write(agent(0, 0, None, "a"), [model(0, 1, 0, "refunded"), model(0, 2, 0, "done")])
    assert_ownership_changes_nothing(records, 1, schedule)


def assert_a_run_that_never_was_is_retracted() -> None:
    """The law, where who knows half of a trace writes a run that is part of another one, which nobody who knows the whole ever heard of."""
    records, schedule = _late_write(model(0, 3, None, "refunded"), [agent(0, 0, None, "a"), model(0, 1, 0, "done")])
    assert_ownership_changes_nothing(records, 1, schedule)
