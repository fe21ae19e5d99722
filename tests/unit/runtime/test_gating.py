"""The gate node: it goes by the slowest partition, acknowledges what is up to date, and leaves the agents of others alone."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from gate_worlds import DESK, HELP, SHOP, START, GateWorld, Seen, assert_same, graded, seen, story, tell
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from opentelemetry.metrics import NoOpMeter
from worlds import Log

from pipeline.errors import TemporaryError
from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.run import Cohort
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.topology import GATE, TOUCHED, Topic, bucket_of_agent
from pipeline.model.version import TraceVersion
from pipeline.model.window import Notification, Touched, Window
from pipeline.runtime import guard, promoter
from pipeline.runtime.clock import ManualClock, Times
from pipeline.runtime.gates import Owns
from pipeline.runtime.gating import Gating
from pipeline.runtime.holding import DeadLetters
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.promote import case_id
from pipeline.stages.turn import touched_by
from sinks.memory_gates import MemoryGateStore

PARTITIONS = 3
"""Of the traces topic."""


class Steps:
    """Stands in for the owner of gates: notes its clocks, and is in trouble or busy where told."""

    def __init__(self) -> None:
        self.touched: list[Touched] = []
        self.clocks: list[tuple[int, int]] = []
        self.idle = False
        self.up_to_date: deque[bool] = deque()
        self.during_step: Callable[[], Any] | None = None

    def touch(self, touched: Sequence[Touched]) -> None:
        self.touched += touched

    def is_idle(self, now: int, wall: int) -> bool:
        self.clocks.append((now, wall))
        return self.idle

    async def step(self, _now: int, _wall: int) -> bool:
        if self.during_step is not None:
            await self.during_step()
        return self.up_to_date.popleft() if self.up_to_date else True


class Node:
    """The gate node, with an owner of gates or with what stands in for one."""

    def __init__(self, owner: Any, store: MemoryGateStore | None = None, agents: int = 1) -> None:
        self.log = Log(TOUCHED, agents)
        self.owner = owner
        self.acknowledged: list[tuple[int, int]] = []
        self.clocks: dict[int, int] = dict.fromkeys(range(PARTITIONS), START)
        self.reads = 0
        self.published: list[Any] = []
        self.clock_trouble: deque[Exception] = deque()
        self.store = MemoryGateStore() if store is None else store
        self.now = START
        dead_letters = DeadLetters(GATE.name, self.store.bury, self._publish, Telemetry(NoOpMeter("test")))
        self.gating = Gating(
            owner, self._read_clocks, PARTITIONS, dead_letters, lambda *done: self.acknowledged.append(done), ManualClock(START)
        )

    async def _publish(self, topic: Topic, records: Sequence[Any]) -> None:
        assert topic in GATE.writes
        self.published += records

    async def _read_clocks(self) -> Mapping[int, int]:
        self.reads += 1
        if self.clock_trouble:
            raise self.clock_trouble.popleft()
        return self.clocks

    async def tick(self, seconds: float = 2) -> None:
        self.now += int(seconds * SECOND)
        await self.gating.tick(Times({}, self.now))

    async def take(self, *touched: Touched) -> None:
        await self.gating.take(self.log.append(touched, self.now))


def a_node(**fields: Any) -> tuple[Node, Steps]:
    steps = Steps()
    for name, value in fields.items():
        setattr(steps, name, value)
    return Node(steps), steps


TOUCH = Touched("default", SHOP, START)


# The gates' clock


async def test_the_gates_clock_is_that_of_the_slowest_partition() -> None:
    node, steps = a_node()
    node.clocks = {0: START + 50, 1: START + 20, 2: START + 90}
    await node.tick()
    assert steps.clocks == [(START + 20, node.now)]


async def test_a_partition_whose_clock_nobody_told_holds_all_gates() -> None:
    node, steps = a_node()
    node.clocks = {0: START, 1: START}
    await node.tick()
    assert steps.clocks[-1][0] == 0
    node.clocks[2] = START + 5
    await node.tick()
    assert steps.clocks[-1][0] == START
    node.clocks[3] = 7  # of a time when there were more partitions
    await node.tick()
    assert steps.clocks[-1][0] == START


async def test_the_gates_clock_never_goes_back() -> None:
    node, steps = a_node()
    await node.tick()
    node.clocks = {0: START - MINUTE, 1: START + MINUTE, 2: START + MINUTE}
    await node.tick()
    node.clocks = {}
    await node.tick()
    assert [now for now, _ in steps.clocks] == [START] * 3


async def test_clocks_are_read_once_a_second_however_often_it_beats() -> None:
    node, _ = a_node()
    for _ in range(21):
        await node.tick(0.25)
    assert node.reads == 6


async def test_clocks_that_cannot_be_read_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FIRST_DELAY", 0.0)
    node, steps = a_node()
    node.clock_trouble.extend([TemporaryError("busy")] * 3)
    await node.tick()
    assert node.reads == 4
    assert steps.clocks == [(START, node.now)]


# Acknowledgements


async def test_what_was_touched_is_acknowledged_after_it_is_up_to_date() -> None:
    node, steps = a_node()
    await node.take(TOUCH, replace(TOUCH, minute_ns=START + MINUTE))
    assert steps.touched == [TOUCH, replace(TOUCH, minute_ns=START + MINUTE)]
    assert node.acknowledged == []
    await node.tick()
    assert node.acknowledged == [(0, 1)]
    await node.tick()
    assert node.acknowledged == [(0, 1)], "once"


async def test_a_step_that_met_trouble_acknowledges_nothing_until_one_goes_through() -> None:
    node, _ = a_node(up_to_date=deque([False, False, True]))
    await node.take(TOUCH)
    await node.tick()
    await node.tick()
    assert node.acknowledged == []
    await node.tick()
    assert node.acknowledged == [(0, 0)]


async def test_a_step_that_raises_acknowledges_nothing() -> None:
    async def broken() -> None:
        raise RuntimeError("a bug")

    node, _ = a_node(during_step=broken)
    await node.take(TOUCH)
    with pytest.raises(RuntimeError, match="a bug"):
        await node.tick()
    assert node.acknowledged == []


async def test_what_is_taken_while_a_step_is_under_way_waits_for_the_next() -> None:
    node, steps = a_node()
    await node.take(TOUCH)

    async def meanwhile() -> None:
        await node.take(replace(TOUCH, minute_ns=START + MINUTE))

    steps.during_step = meanwhile
    await node.tick()
    assert node.acknowledged == [(0, 0)]
    steps.during_step = None
    await node.tick()
    assert node.acknowledged == [(0, 0), (0, 1)]


async def test_what_leaves_nothing_to_do_is_acknowledged_too() -> None:
    node, steps = a_node(idle=True)
    await node.gating.take([node.log.append_raw(b"garbage", {"kind": b"touched", "version": b"1"}, START)])
    await node.tick()
    assert node.acknowledged == [(0, 0)]
    assert steps.touched == []
    assert [body for _, _, body in node.store.dead_letters.values()] == [b"garbage"]


async def test_each_partition_is_acknowledged_up_to_its_last_record() -> None:
    steps = Steps()
    node = Node(steps, agents=2)
    agents = {bucket_of_agent("default", name) % 2: Cohort(name, "1", "production") for name in ("shop", "desk", "a", "b", "c")}
    assert len(agents) == 2
    await node.take(*(Touched("default", agents[partition], START) for partition in (0, 1, 0)))
    await node.tick()
    assert sorted(node.acknowledged) == [(0, 1), (1, 0)]


# Owners of agents: two nodes on one store, each with some of the partitions

AGENTS = 8
"""Partitions of the touched topic; the agents of the story are in two of them."""
HOME = {cohort: bucket_of_agent("default", cohort.agent) % AGENTS for cohort in (SHOP, DESK, HELP)}
CASES = {case_id("default", cohort.agent, f"question {number}"): cohort.agent for cohort in HOME for number in range(2)}
"""By the id of a case, the agent that is asked it."""


class Watched:
    """The shared store as one owner has it: every write is of an agent that is its own."""

    def __init__(self, store: MemoryGateStore, owns: Callable[[str, str], bool]) -> None:
        self._store = store
        self._owns = owns
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not name.startswith("write_") or name == "write_derived":
            return method

        async def write(rows: Any, **fields: Any) -> None:
            self.writes += 1
            for row in rows:
                assert self._owns("default", self._agent_of(row)), f"{name} of {self._agent_of(row)}"
            await method(rows, **fields)

        return write

    def _agent_of(self, row: Any) -> str:
        if isinstance(row, tuple):  # a minute: (series, when)
            return str(row[0].cohort.agent)
        if isinstance(row, Window):
            return row.series.cohort.agent
        if isinstance(row, GoldenMember):
            return CASES[row.case_id]
        return str(row.agent if isinstance(row, Notification | GoldenCase) else row.cohort.agent)


class Nodes:
    """As many gate nodes as an assignment has, over one store; a new assignment starts all of them anew."""

    def __init__(self) -> None:
        self.store = MemoryGateStore()
        self.log = Log(TOUCHED, AGENTS)
        self.committed = dict.fromkeys(range(AGENTS), 0)
        self.worlds: list[GateWorld] = []
        self._nodes: list[tuple[Node, frozenset[int]]] = []
        self._taken: dict[int, int] = {}
        self.now = START

    async def assign(self, *shares: frozenset[int]) -> None:
        """Give each share of the partitions to a new node; what is not acknowledged is delivered again."""
        self._nodes = []
        self._taken = dict(self.committed)
        for share in shares:
            owns = _owner_of(share)
            world = GateWorld(store=cast("MemoryGateStore", Watched(self.store, owns)), owns=owns, partitions=share)
            self.worlds.append(world)
            node = Node(world.new_owner(), self.store)
            node.now = self.now
            self._nodes.append((node, share))
            await node.gating.recover()

    async def write(self, *versions: TraceVersion) -> None:
        """What owners of traces do."""
        await self.store.write(versions)
        self.log.append([one for version in versions for one in sorted(touched_by(version))], self.now)

    async def step(self) -> None:
        """Let every node take what there is, and do what is due."""
        for node, share in self._nodes:
            await node.gating.take(
                [one for partition in share for one in self.log.partitions[partition][self._taken[partition] :]]
            )
            self._taken |= {partition: len(self.log.partitions[partition]) for partition in share}
            node.now, node.clocks = self.now, dict.fromkeys(range(PARTITIONS), self.now)
            await node.tick(0)
            self.committed |= {partition: offset + 1 for partition, offset in node.acknowledged}

    def seen(self) -> Seen:
        """All that can be seen, whichever node told it."""
        told = [seen(world) for world in self.worlds]
        return told[0]._replace(pager=set().union(*(one.pager for one in told)), chat=set().union(*(one.chat for one in told)))


def _owner_of(share: frozenset[int]) -> Callable[[str, str], bool]:
    return lambda project, agent: bucket_of_agent(project, agent) % AGENTS in share


async def told_by(assignments: Sequence[frozenset[int]]) -> Nodes:
    """The story, with the first node's share of the partitions by chapter."""
    nodes = Nodes()
    everywhere = frozenset(range(AGENTS))
    before: frozenset[int] | None = None
    for (minute, versions), share in zip(story(), assignments, strict=True):
        nodes.now = START + minute * MINUTE
        if share != before:
            await nodes.assign(share, everywhere - share)
            before = share
        await nodes.step()
        await nodes.write(*versions)
        await nodes.step()
    for _ in range(4):
        nodes.now += 10 * MINUTE
        await nodes.step()
    return nodes


shares = st.sets(st.sampled_from(sorted(HOME.values()))).map(lambda some: frozenset({0, 3, *some}))


def assert_two_nodes_are_one(assignments: Sequence[frozenset[int]]) -> None:
    """The law of owners of agents: two nodes give together what one gives, and write nothing of each other's agents."""
    plain = asyncio.run(tell(GateWorld(), story()))
    nodes = asyncio.run(told_by(assignments))
    assert_same(nodes.seen()._asdict(), seen(plain)._asdict())
    assert nodes.committed == {partition: len(held) for partition, held in enumerate(nodes.log.partitions)}


@settings(deadline=None, max_examples=40)
@given(st.lists(shares, min_size=len(story()), max_size=len(story())))
def test_two_nodes_give_together_what_one_gives_and_write_nothing_of_each_others_agents(
    assignments: list[frozenset[int]],
) -> None:
    assert_two_nodes_are_one(assignments)


def test_the_agents_of_the_story_can_be_owned_apart() -> None:
    assert len(set(HOME.values())) == len(HOME)
    nodes = asyncio.run(told_by([frozenset({HOME[SHOP]})] * len(story())))
    assert all(world.store.writes for world in cast("list[Any]", nodes.worlds))


def _cases_of_others_are_written_too(patch: pytest.MonkeyPatch) -> None:
    async def of_anybody(store: Any, touched: Sequence[Touched], _owns: Owns) -> int:
        return await promoter.promote(store, touched)

    patch.setattr("pipeline.runtime.gate_owner.promote", of_anybody)


def _only_members_of_others_are_left_to_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(promoter, "_owned", lambda rows, *_: rows)


def _trips_of_others_are_not_asked_for(patch: pytest.MonkeyPatch) -> None:
    async def of_nobody(_self: MemoryGateStore, _run_ids: Sequence[str]) -> set[tuple[str, str, str, str]]:
        return set()

    patch.setattr(MemoryGateStore, "tripped_runs", of_nobody)


@pytest.mark.parametrize(
    "mutate",
    [
        _cases_of_others_are_written_too,
        _only_members_of_others_are_left_to_them,
        _trips_of_others_are_not_asked_for,
    ],
    ids=lambda one: one.__name__.strip("_").replace("_", " "),
)
def test_owners_that_do_not_heed_each_other_break_the_law(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = [frozenset({HOME[DESK]})] * len(story())
    assert_two_nodes_are_one(apart)
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        assert_two_nodes_are_one(apart)


async def test_touched_minutes_of_agents_that_are_owned_elsewhere_are_left_to_their_owner() -> None:
    """They come where the topic was given more partitions after they were written."""
    nodes = Nodes()
    await nodes.assign(frozenset({HOME[SHOP]}))
    await nodes.store.write([graded(1, DESK, 0), graded(2, SHOP, 0)])
    (node, _), *_ = nodes._nodes
    await node.take(Touched("default", DESK, START), Touched("default", SHOP, START))
    await node.tick()
    assert {series.cohort for series, _ in nodes.store.minutes.values()} == {SHOP}
    assert node.acknowledged == [(0, 1)]
