"""The assemble node: stored before folded, acknowledged after stored, and one bad record costs itself (promises 1, 3 and 7)."""

import asyncio
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import pytest
from assembly_law import grading
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from opentelemetry.metrics import NoOpMeter
from unit.runtime.turns import a_while, until
from worlds import T0, Log, agent, model

from collectors.dialects import read
from collectors.kafka.records import Incoming, encode
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.result import Feedback, Judgment, Outcome
from pipeline.model.span import Link, Span, seal
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.topology import ASSEMBLE, DEAD_LETTERS, TRACES, DeadLetter, Record, Topic
from pipeline.runtime import guard
from pipeline.runtime.assembling import SWEEP_EVERY, Assembling
from pipeline.runtime.clock import ManualClock, Times
from pipeline.runtime.fence import Fence, LostOwnershipError
from pipeline.runtime.handover import publisher
from pipeline.runtime.holding import DeadLetters
from pipeline.runtime.owner import TraceOwner
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.close import AssembleSettings
from pipeline.stages.turn import Assembly
from sinks.memory import MemoryStore

GRADING = grading(sampling={"rate": 0.0})
QUIET = 10 * SECOND
NOW = T0 + MINUTE


class Store(MemoryStore):
    """A store that notes what it was called for, may be in trouble, and takes no span of some names, ever."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.trouble: deque[Exception] = deque()
        self.away = False
        self.refuses = ""

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.away:
            raise TemporaryError("the store is away")
        if self.trouble:
            raise self.trouble.popleft()

    async def insert_spans(self, spans: Sequence[Span]) -> None:
        self._called("insert_spans")
        if any(span.name == self.refuses for span in spans):
            raise PermanentError("the store cannot hold this")
        await super().insert_spans(spans)

    async def insert_judgments(self, judgments: Sequence[Judgment]) -> None:
        self._called("insert_judgments")
        await super().insert_judgments(judgments)

    async def insert_feedback(self, feedback: Sequence[Feedback]) -> None:
        self._called("insert_feedback")
        await super().insert_feedback(feedback)

    async def bury(self, letters: Sequence[DeadLetter]) -> None:
        self._called("bury")
        await super().bury(letters)

    async def written(self, trace_keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        self.calls.append("written")
        return await super().written(trace_keys)

    async def write_clocks(self, clocks: Any, at_ns: int) -> None:
        self.calls.append("write_clocks")
        await super().write_clocks(clocks, at_ns)

    async def misplaced(self, *buckets: Any) -> list[tuple[str, str]]:
        self.calls.append("misplaced")
        return await super().misplaced(*buckets)


class Node:
    """The assemble node on some partitions of a log."""

    def __init__(self, partitions: int = 1, owned: Collection[int] = (0,), store: Store | None = None) -> None:
        self.log = Log(TRACES, partitions)
        self.store = Store() if store is None else store
        self.acknowledged: list[tuple[int, int]] = []
        self.published: list[tuple[str, Any]] = []
        self.publish_trouble: deque[Exception] = deque()
        self.fence = Fence()
        self.clock = ManualClock(NOW)
        self.telemetry = Telemetry(NoOpMeter("test"))
        store_seen = self.fence.around(self.store)
        publish = publisher(ASSEMBLE, self.fence.around_publish(self._publish))
        assembly = Assembly(read=read, settings=AssembleSettings(), grading_of=lambda _project, _agent: GRADING)
        self.owner = TraceOwner(store_seen, assembly, publish, self.telemetry, partitions, owned)
        letters = DeadLetters(ASSEMBLE.name, store_seen.bury, publish, self.telemetry)
        self.assembling = Assembling(store_seen, self.owner, publish, letters, self._acknowledge, self.clock)

    def _acknowledge(self, partition: int, offset: int) -> None:
        self.store.calls.append("acknowledge")
        self.acknowledged.append((partition, offset))

    async def _publish(self, topic: Topic, records: Sequence[Any]) -> None:
        if self.publish_trouble:
            raise self.publish_trouble.popleft()
        self.published += [(topic.name, record) for record in records]

    def of(self, topic: Topic) -> list[Any]:
        return [record for name, record in self.published if name == topic.name]

    async def take(self, *records: Record) -> None:
        await self.assembling.take(self.log.append(records, self.clock.now()))

    async def tick(self, seconds: float = 0, **partitions: int) -> None:
        """Let time pass; ``p1=…`` says what time it is in a partition, otherwise it is that of the wall in all of them."""
        self.clock.advance_to(self.clock.now() + int(seconds * SECOND))
        times = {int(name[1:]): at for name, at in partitions.items()}
        wall = dict.fromkeys(range(len(self.log.partitions)), self.clock.now())
        await self.assembling.tick(Times(times or wall, self.clock.now()))

    def graded(self) -> set[str]:
        return {run.run.trace_id for run in self.store.live_runs()}

    def buried(self) -> list[bytes]:
        return [body for _, _, body in self.store.dead_letters.values()]


@pytest.fixture(autouse=True)
def _no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FIRST_DELAY", 0.0)


def a_trace(number: int, **fields: Any) -> list[Span]:
    return [agent(number, 0, None, "shop", **fields), model(number, 1, 0, "refunded", **fields)]


def trace_id(number: int) -> str:
    return f"{number + 1:032x}"


def in_partition(partition: int, partitions: int, count: int = 1) -> list[int]:
    """Numbers of traces that are in a partition."""
    there = (n for n in range(1000) if TRACES.partition_of(a_trace(n)[0], partitions) == partition)
    return [next(there) for _ in range(count)]


JUDGMENT = Judgment("default", trace_id(0), "r", 4, "t", "c", "tone", Outcome.PASS, 1.0)
FEEDBACK = Feedback("default", trace_id(0), "f", 1.0, received_ns=T0)


# Stored, folded, acknowledged: in this order


async def test_facts_are_stored_then_folded_then_acknowledged() -> None:
    node = Node()
    await node.take(*a_trace(0), JUDGMENT, FEEDBACK)
    assert node.store.calls == ["insert_spans", "insert_judgments", "insert_feedback", "written", *["acknowledge"] * 4]
    assert node.acknowledged == [(0, 0), (0, 1), (0, 2), (0, 3)]
    key = ("default", trace_id(0))
    assert len(node.store.spans[key]) == 2
    assert (len(node.store.judgments[key]), len(node.store.feedback[key])) == (1, 1)
    await node.tick(10)
    assert node.graded() == {trace_id(0)}


async def test_a_record_of_many_spans_is_one_fact_each() -> None:
    node = Node()
    (record,) = encode(TRACES, [*a_trace(0), *a_trace(1)], 1)
    await node.assembling.take([node.log.append_raw(record.value, dict(record.headers), NOW)])
    await node.tick(10)
    assert node.graded() == {trace_id(0), trace_id(1)}
    assert node.acknowledged == [(0, 0)]


async def test_nothing_is_acknowledged_while_the_store_is_away_and_all_of_it_once_it_is_back() -> None:
    node = Node()
    node.store.away = True
    taking = asyncio.create_task(node.take(*a_trace(0)))
    await until(lambda: len(node.store.calls) > 5)
    assert (node.acknowledged, node.store.spans) == ([], {})
    node.store.away = False
    await taking
    assert node.acknowledged == [(0, 0), (0, 1)]
    assert len(node.store.spans["default", trace_id(0)]) == 2


async def test_a_partition_that_is_lost_while_the_store_is_away_is_never_acknowledged() -> None:
    node = Node()
    node.store.away = True
    taking = asyncio.create_task(node.take(*a_trace(0)))
    await until(lambda: len(node.store.calls) > 5)
    node.fence.fall()
    with pytest.raises(LostOwnershipError):
        await taking
    node.store.away = False
    await a_while()
    assert (node.acknowledged, node.store.spans) == ([], {})
    with pytest.raises(LostOwnershipError):
        await node.tick(3600)
    assert node.store.told_clocks == {}


async def test_a_bug_of_the_store_acknowledges_nothing() -> None:
    node = Node()
    node.store.trouble.append(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        await node.take(*a_trace(0))
    assert node.acknowledged == []


async def test_redelivered_records_of_a_graded_trace_change_nothing() -> None:
    node = Node()
    await node.take(*a_trace(0))
    await node.tick(10)
    before = dict(node.store.runs)
    await node.take(*a_trace(0))
    await node.tick(3600)
    assert node.store.runs == before
    assert node.acknowledged == [(0, offset) for offset in range(4)]
    assert node.owner.open_traces == 0


# Dead letters


def spans_record(number: int) -> tuple[bytes, dict[str, bytes]]:
    (record,) = encode(TRACES, a_trace(number), 1)
    return record.value, dict(record.headers)


GARBAGE = [
    (b"\xff\xff\xff", {"kind": b"spans", "project": b"default", "version": b"1"}),
    (b"[{}]", {"kind": b"judgment", "project": b"default", "version": b"1"}),
    (b"no list", {"kind": b"feedback", "project": b"default", "version": b"1"}),
    (b"[]", {"kind": b"trip", "project": b"default", "version": b"1"}),
    (spans_record(7)[0], {**spans_record(7)[1], "version": b"3"}),
    (spans_record(7)[0], {**spans_record(7)[1], "kind": b"novelty"}),
    (spans_record(7)[0], {**spans_record(7)[1], "received_at": b"yesterday"}),
    (b"whose?", {}),
    (b"", {"kind": b"\xff", "project": b"\xff", "version": b"\xff"}),
]


@pytest.mark.parametrize(("value", "headers"), GARBAGE)
async def test_what_cannot_be_read_is_kept_and_costs_nothing_else(value: bytes, headers: dict[str, bytes]) -> None:
    node = Node()
    before = node.log.append(a_trace(0), NOW)
    poison = node.log.append_raw(value, headers, NOW)
    after = node.log.append(a_trace(1), NOW)
    await node.assembling.take([*before, poison, *after])
    await node.tick(10)
    assert node.graded() == {trace_id(0), trace_id(1)}
    assert node.acknowledged == [(0, offset) for offset in range(5)]
    assert node.buried() == [value]
    (letter,) = node.of(DEAD_LETTERS)
    assert letter.body == value
    assert letter.origin == "assemble: tracegrade.traces[0]@2"
    assert letter.reason
    assert sum(count for name, count in node.telemetry.snapshot().items() if name.startswith("tracegrade.dead_letters")) == 1


async def test_of_a_record_that_can_be_read_in_part_that_part_counts() -> None:
    node = Node()
    value = b"[" + msgspec.json.encode(FEEDBACK) + b",{}]"
    await node.assembling.take([node.log.append_raw(value, {"kind": b"feedback", "project": b"default", "version": b"2"}, NOW)])
    assert list(node.store.feedback["default", trace_id(0)].values()) == [FEEDBACK]
    assert node.buried() == [value]
    assert node.acknowledged == [(0, 0)]


async def test_a_dead_letter_is_kept_and_told_of_before_its_record_is_acknowledged() -> None:
    node = Node()
    node.store.trouble.extend([TemporaryError("busy")] * 3)
    node.publish_trouble.extend([TemporaryError("the broker is away")] * 3)
    await node.assembling.take([node.log.append_raw(b"?", {}, NOW)])
    assert node.store.calls == [*["bury"] * 4, "acknowledge"]
    assert [type(one) for one in node.of(DEAD_LETTERS)] == [DeadLetter]


async def test_a_dead_letter_that_cannot_be_kept_holds_its_record() -> None:
    node = Node()
    node.store.away = True
    taking = asyncio.create_task(node.assembling.take([node.log.append_raw(b"?", {}, NOW)]))
    await until(lambda: len(node.store.calls) > 5)
    node.fence.fall()
    with pytest.raises(LostOwnershipError):
        await taking
    assert (node.acknowledged, node.of(DEAD_LETTERS)) == ([], [])


async def test_a_record_that_the_store_will_never_take_costs_only_itself() -> None:
    node = Node()
    node.store.refuses = "chat poison"
    poison = replace(model(1, 2, 0, "x"), name="chat poison")
    await node.take(*a_trace(0), poison, *a_trace(1), FEEDBACK)
    await node.tick(10)
    assert node.graded() == {trace_id(0), trace_id(1)}
    assert node.acknowledged == [(0, offset) for offset in range(6)]
    assert node.buried() == [node.log.partitions[0][2].value]
    assert [letter.reason for letter in node.of(DEAD_LETTERS)] == ["the store cannot hold this"]
    assert len(node.store.feedback) == 1
    assert all(step.name != "chat poison" for run in node.store.live_runs() for step in run.run.steps), "it is not folded either"


headers = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from([b"spans", b"judgment", b"feedback", b"touched"]) | st.binary(max_size=4),
        "project": st.sampled_from([b"default", b"", b"\xff"]),
        "version": st.sampled_from([b"1", b"2", b"0", b"3"]),
        "received_at": st.sampled_from([b"1", b"-1", b"", b"9" * 30]),
    },
)
bodies = st.one_of(
    st.binary(max_size=20),
    st.just(spans_record(3)[0]),
    st.builds(lambda raw, at: raw[:at], st.just(spans_record(3)[0]), st.integers(0, 400)),
    st.sampled_from([b"[" * 5000, b'[{"project":"default","trace_id":"\\ud800","id":"f","value":1}]', b"[null]", b"[1e999]"]),
)


@settings(deadline=None)
@given(st.lists(st.tuples(bodies, headers), min_size=1, max_size=4))
def test_nothing_that_anybody_writes_to_the_topic_stops_it(garbage: list[tuple[bytes, dict[str, bytes]]]) -> None:
    async def play() -> None:
        node = Node()
        poison = [node.log.append_raw(value, said, NOW) for value, said in garbage]
        await node.assembling.take([*node.log.append(a_trace(0), NOW), *poison])
        await node.tick(3600)
        assert trace_id(0) in node.graded()
        assert len(node.acknowledged) == 2 + len(garbage)

    asyncio.run(play())


# Strays


async def test_records_of_traces_that_are_owned_elsewhere_are_sent_on_and_not_kept() -> None:
    """They come where the topic was given more partitions after they were written."""
    (own,), (other,) = in_partition(0, 2), in_partition(1, 2)
    node = Node(partitions=2, owned=(0,))
    (record,) = encode(TRACES, [*a_trace(own), *a_trace(other)], 1)
    await node.assembling.take([node.log.append_raw(record.value, dict(record.headers), NOW)])
    sent = node.of(TRACES)
    assert {span.content_hash for span in sent} == {span.content_hash for span in a_trace(other)}
    assert node.store.spans.keys() == {("default", trace_id(own))}
    assert node.acknowledged == [(0, 0)]
    await node.tick(10)
    assert node.graded() == {trace_id(own)}


async def test_what_a_carrier_says_of_another_trace_goes_to_the_owner_of_that_one_before_it_is_acknowledged() -> None:
    (carrying,), (near,), (far,) = in_partition(0, 2), in_partition(0, 2, 2)[1:], in_partition(1, 2)
    said = {"annotations.0.annotation.name": "tone", "annotations.0.annotation.label": "thumbs_down"}
    carriers = [
        replace(
            a_trace(carrying)[0], span_id=f"{number + 10:016x}", links=(Link(trace_id(number), f"{1:016x}"),), attributes=said
        )
        for number in (near, far)
    ]
    node = Node(2, owned=(0,))
    node.publish_trouble.append(TemporaryError("the brokers are away"))
    await node.take(*map(seal, carriers))
    assert [one.trace_id for one in node.store.feedback["default", trace_id(near)].values()] == [trace_id(near)]
    assert ("default", trace_id(far)) not in node.store.feedback
    assert [(topic, one.trace_id, one.value) for topic, one in node.published] == [(TRACES.name, trace_id(far), -1.0)]
    assert node.acknowledged[-1][0] == 0


async def test_a_stray_is_acknowledged_after_it_was_sent_on() -> None:
    (other,) = in_partition(1, 2)
    node = Node(partitions=2, owned=(0,))
    node.publish_trouble.extend([TemporaryError("the broker is away")] * 3)
    (record,) = encode(TRACES, a_trace(other), 1)
    stray = node.log.append_raw(record.value, dict(record.headers), NOW)
    await node.assembling.take([stray])
    assert len(node.of(TRACES)) == 2
    assert node.acknowledged == [(0, 0)]
    node.fence.fall()
    with pytest.raises(LostOwnershipError):
        await node.assembling.take([stray])
    assert node.acknowledged == [(0, 0)]


# Time


async def test_a_partition_that_lags_closes_nothing_while_one_that_caught_up_does() -> None:
    (lagging,), (caught_up,) = in_partition(0, 2), in_partition(1, 2)
    node = Node(partitions=2, owned=(0, 1))
    await node.take(*a_trace(lagging), *a_trace(caught_up))
    await node.tick(3600, p0=T0 + 25 * SECOND, p1=NOW + 3600 * SECOND)
    assert node.graded() == {trace_id(caught_up)}
    await node.tick(0, p0=T0 + 20 * SECOND + QUIET, p1=node.clock.now())
    assert node.graded() == {trace_id(caught_up), trace_id(lagging)}


async def test_a_partition_whose_time_nobody_knows_closes_nothing_and_tells_no_clock() -> None:
    (silent,), (caught_up,) = in_partition(0, 2), in_partition(1, 2)
    node = Node(partitions=2, owned=(0, 1))
    await node.take(*a_trace(silent), *a_trace(caught_up))
    await node.tick(3600, p1=NOW + 3600 * SECOND)
    assert node.graded() == {trace_id(caught_up)}
    assert node.store.told_clocks.keys() == {1}


async def test_clocks_are_told_once_a_second_and_say_no_more_than_is_written() -> None:
    (waiting,), (other,) = in_partition(0, 2), in_partition(1, 2)
    node = Node(partitions=2, owned=(0, 1))
    for _ in range(8):
        await node.tick(0.25)
    assert node.store.calls.count("write_clocks") == 2
    await node.take(*a_trace(waiting, received=node.clock.now() - SECOND), *a_trace(other))
    await node.tick(8)
    assert await node.store.clocks() == {0: node.clock.now(), 1: node.clock.now()}
    await node.tick(3600, p0=T0, p1=node.clock.now() + 1800 * SECOND)
    clocks = await node.store.clocks()
    assert clocks == {0: T0, 1: node.clock.now() - 1800 * SECOND}, "the partition's time, and not the wall's"


async def test_a_trace_that_is_due_and_could_not_be_written_holds_the_clock_of_its_partition() -> None:
    (number,) = in_partition(0, 2)
    node = Node(partitions=2, owned=(0, 1))
    await node.take(*a_trace(number))
    due = T0 + 20 * SECOND + QUIET
    assert node.owner.done_until(Times({0: NOW, 1: NOW}, NOW)) == {0: due, 1: NOW}


async def test_rows_at_a_former_place_are_swept_up_every_five_minutes() -> None:
    node = Node()
    await node.tick()
    await node.tick((SWEEP_EVERY // SECOND) - 1)
    assert node.store.calls.count("misplaced") == 1
    await node.tick(1)
    assert node.store.calls.count("misplaced") == 2


# Assignments


async def test_what_was_open_is_read_back_with_its_partition_and_not_without() -> None:
    (own,), (other,) = in_partition(0, 2), in_partition(1, 2)
    former = Node(partitions=2, owned=(0, 1))
    await former.take(*a_trace(own), *a_trace(other))
    node = Node(partitions=2, owned=(0,), store=former.store)
    await node.assembling.recover()
    assert node.owner.open_traces == 1
    await node.tick()
    await node.tick(10)
    assert node.graded() == {trace_id(own)}


async def test_a_worker_with_no_partition_at_all_waits_for_one() -> None:
    node = Node(partitions=2, owned=())
    await node.assembling.recover()
    await node.assembling.take([])
    await node.assembling.tick(Times({}, NOW))
    await node.assembling.tick(Times({}, NOW + SWEEP_EVERY))
    assert node.store.calls == []
    assert node.owner.next_wake is None
    await node.assembling.close()


async def test_a_poison_record_comes_back_to_no_one() -> None:
    """It was acknowledged: the next owner begins behind it."""
    node = Node()
    poison: Incoming = node.log.append_raw(b"?", {}, NOW)
    await node.assembling.take([poison])
    await node.assembling.take([poison])  # and if it is redelivered all the same, it is the same letter
    assert node.buried() == [b"?"]
