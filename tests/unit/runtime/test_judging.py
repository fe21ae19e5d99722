"""The judge node: many at once, acknowledged in order, and nothing in the name of partitions that are gone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.metrics import NoOpMeter
from unit.runtime.turns import a_while, until
from worlds import T0, Log, verdict_of

from collectors.kafka.records import Incoming, encode
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.result import JudgeRequest, Judgment
from pipeline.model.time import MINUTE
from pipeline.model.topology import DEAD_LETTERS, JUDGE, JUDGING, TRACES, Topic
from pipeline.runtime import desk, judging
from pipeline.runtime.clock import ManualClock, Times
from pipeline.runtime.desk import JudgeDesk
from pipeline.runtime.fence import Fence, LostOwnershipError
from pipeline.runtime.handover import publisher
from pipeline.runtime.holding import DeadLetters
from pipeline.runtime.judging import Judging
from pipeline.runtime.telemetry import Telemetry
from sinks.memory import MemoryStore

PARTITIONS = 2


def a_request(number: int, **fields: Any) -> JudgeRequest:
    request = JudgeRequest(
        project="default",
        trace_id=f"{number:032x}",
        run_id=f"{number:032x}",
        agent="shop",
        run_version=4,
        transcript_hash="t",
        transcript="…",
        dimensions=(("tone", "c"),),
        plan="rate:1:1",
        inclusion_probability=1.0,
        requested_ns=T0,
        deadline_ns=T0 + 10 * MINUTE,
    )
    return replace(request, **fields)


def of_partition(partition: int, count: int) -> list[JudgeRequest]:
    """Requests that are in one partition."""
    every = (a_request(number) for number in range(1000))
    return [one for one in every if JUDGE.partition_of(one, PARTITIONS) == partition][:count]


class Node:
    """The judge node on two partitions, with a judge that answers a run when it is let."""

    def __init__(self, concurrency: int = 1000) -> None:
        self.log = Log(JUDGE, PARTITIONS)
        self.acknowledged: list[tuple[int, int]] = []
        self.given_back: list[Judgment] = []
        self.letters: list[Any] = []
        self.asked: list[str] = []
        self.answers: dict[str, asyncio.Event] = {}
        """Runs whose answer is held back."""
        self.trouble: dict[str, Exception] = {}
        self.publish_trouble: Exception | None = None
        self.store = MemoryStore()
        self.fence = Fence()
        self.clock = ManualClock(T0)
        telemetry = Telemetry(NoOpMeter("test"))
        publish = publisher(JUDGING, self.fence.around_publish(self._publish))
        dead_letters = DeadLetters("judge", self.fence.around(self.store).bury, publish, telemetry)
        self.desk = JudgeDesk(self._ask, publish, self.clock, telemetry, concurrency)
        self.judging = Judging(self.desk, dead_letters, lambda *done: self.acknowledged.append(done), self.fence)

    async def _ask(self, request: JudgeRequest, dimension: str, contract: str) -> Judgment:
        self.asked.append(request.run_id)
        if request.run_id in self.answers:
            await self.answers[request.run_id].wait()
        if request.run_id in self.trouble:
            raise self.trouble[request.run_id]
        return verdict_of(request, dimension, contract)

    async def _publish(self, topic: Topic, records: Sequence[Any]) -> None:
        assert topic in (TRACES, DEAD_LETTERS)
        if self.publish_trouble is not None:
            raise self.publish_trouble
        (self.letters if topic is DEAD_LETTERS else self.given_back).extend(records)

    def hold(self, *requests: JudgeRequest) -> None:
        self.answers |= {request.run_id: asyncio.Event() for request in requests}

    def let(self, request: JudgeRequest) -> None:
        self.answers[request.run_id].set()

    def incoming(self, *requests: JudgeRequest) -> list[Incoming]:
        return self.log.append(requests, T0)

    async def idle(self) -> None:
        await until(lambda: not self.desk.busy)


@asynccontextmanager
async def a_node(**settings: Any) -> AsyncIterator[Node]:
    """A node that is closed in the end."""
    node = Node(**settings)
    yield node
    await node.judging.close()


async def test_a_request_is_acknowledged_after_its_judgments_are_given_back() -> None:
    async with a_node() as node:
        (one,) = of_partition(1, 1)
        node.hold(one)
        await node.judging.recover()
        await node.judging.take(node.incoming(one))
        await a_while()
        assert (node.acknowledged, node.given_back) == ([], [])
        node.let(one)
        await node.idle()
        assert node.acknowledged == [(1, 0)]
        assert [judgment.run_id for judgment in node.given_back] == [one.run_id]


async def test_what_is_judged_sooner_is_acknowledged_in_order_all_the_same() -> None:
    async with a_node() as node:
        first, second, third = of_partition(0, 3)
        (other,) = of_partition(1, 1)
        node.hold(first)
        await node.judging.take(node.incoming(first, second, third, other))
        await until(lambda: len(node.given_back) == 3)
        await a_while()
        assert node.acknowledged == [(1, 0)], "another partition does not wait"
        node.let(first)
        await node.idle()
        assert node.acknowledged == [(1, 0), (0, 0), (0, 1), (0, 2)]


async def test_a_record_of_many_requests_is_done_when_all_of_them_are() -> None:
    async with a_node() as node:
        some = of_partition(0, 3)
        (record,) = encode(JUDGE, some, PARTITIONS)
        node.hold(some[1])
        await node.judging.take([node.log.append_raw(record.value, dict(record.headers), T0, record.partition)])
        await until(lambda: len(node.given_back) == 2)
        await a_while()
        assert node.acknowledged == []
        node.let(some[1])
        await node.idle()
        assert node.acknowledged == [(0, 0)]


async def test_a_redelivered_request_is_not_judged_twice_and_not_acknowledged_before_the_first() -> None:
    async with a_node() as node:
        (one,) = of_partition(0, 1)
        node.hold(one)
        await node.judging.take(node.incoming(one, one))
        await a_while()
        assert node.asked == [one.run_id]
        assert node.acknowledged == []
        node.let(one)
        await node.idle()
        assert node.acknowledged == [(0, 0), (0, 1)]


async def test_what_the_judge_cannot_answer_until_the_deadline_is_acknowledged() -> None:
    async with a_node() as node:
        away, fine = of_partition(0, 2)
        node.trouble[away.run_id] = TemporaryError("503", retry_after=3600.0)
        await node.judging.take(node.incoming(away, fine))
        await node.idle()
        assert node.acknowledged == [(0, 0), (0, 1)]
        assert [judgment.run_id for judgment in node.given_back] == [fine.run_id]


async def test_a_judge_in_trouble_is_asked_again_and_nothing_is_acknowledged_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "backoff", lambda *_: 0.0)
    async with a_node() as node:
        (away,) = of_partition(0, 1)
        node.trouble[away.run_id] = TemporaryError("503")
        await node.judging.take(node.incoming(away))
        await until(lambda: len(node.asked) > 5)
        assert node.acknowledged == []
        node.clock.advance_to(away.deadline_ns)
        await node.idle()
        assert node.acknowledged == [(0, 0)]
        assert node.given_back == []


@pytest.mark.parametrize("trouble", [PermanentError("refused"), RuntimeError("a bug")])
async def test_a_request_that_can_never_be_answered_stops_nothing(trouble: Exception) -> None:
    async with a_node() as node:
        poison, fine = of_partition(0, 2)
        node.trouble[poison.run_id] = trouble
        await node.judging.take(node.incoming(poison, fine))
        await node.idle()
        assert node.acknowledged == [(0, 0), (0, 1)]
        assert len(node.given_back) == 1


async def test_what_cannot_be_read_is_buried_and_acknowledged_in_its_turn() -> None:
    async with a_node() as node:
        first, second = of_partition(0, 2)
        node.hold(first)
        await node.judging.take(node.incoming(first))
        await node.judging.take([node.log.append_raw(b"garbage", {"kind": b"judge_request"}, T0)])
        await node.judging.take(node.incoming(second))
        await until(lambda: len(node.given_back) == 1)
        await a_while()
        assert node.acknowledged == []
        assert [body for _, _, body in node.store.dead_letters.values()] == [b"garbage"]
        assert [letter.body for letter in node.letters] == [b"garbage"]
        node.let(first)
        await node.idle()
        assert node.acknowledged == [(0, 0), (0, 1), (0, 2)]


async def test_no_more_is_begun_than_may_be_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "IN_FLIGHT", 3)
    async with a_node() as node:
        requests = of_partition(0, 5)
        node.hold(*requests)
        taking = asyncio.create_task(node.judging.take(node.incoming(*requests)))
        await until(lambda: len(node.asked) == 3)
        await a_while()
        assert len(node.asked) == 3
        assert not taking.done()
        node.let(requests[1])
        await until(lambda: len(node.asked) == 4)
        await a_while()
        assert len(node.asked) == 4
        assert not taking.done()
        for request in requests:
            node.let(request)
        await taking
        await node.idle()
        assert node.acknowledged == [(0, offset) for offset in range(5)]


async def test_once_the_fence_falls_nobody_waits_begins_or_acknowledges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "IN_FLIGHT", 2)
    async with a_node() as node:
        requests = of_partition(0, 5)
        node.hold(*requests)
        taking = asyncio.create_task(node.judging.take(node.incoming(*requests)))
        await until(lambda: len(node.asked) == 2)
        node.fence.fall()
        node.let(requests[0])
        with pytest.raises(LostOwnershipError):
            await taking
        node.let(requests[1])
        await node.idle()
        assert len(node.asked) == 2
        assert (node.acknowledged, node.given_back) == ([], [])


async def test_who_waits_for_room_while_nothing_is_answered_sees_that_the_fence_fell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "IN_FLIGHT", 1)
    async with a_node() as node:
        requests = of_partition(0, 2)
        node.hold(*requests)
        taking = asyncio.create_task(node.judging.take(node.incoming(*requests)))
        await until(lambda: node.asked)
        node.fence.fall()
        with pytest.raises(LostOwnershipError):
            await asyncio.wait_for(taking, 10)
        assert node.asked == [requests[0].run_id]


async def test_a_judgment_that_comes_when_the_partition_is_gone_is_not_given_back() -> None:
    async with a_node() as node:
        (one,) = of_partition(0, 1)
        node.hold(one)
        await node.judging.take(node.incoming(one))
        await until(lambda: node.asked)
        node.fence.fall()
        node.let(one)
        await node.idle()
        assert (node.acknowledged, node.given_back) == ([], [])


async def test_closing_cancels_what_is_asked_and_acknowledges_none_of_it() -> None:
    async with a_node() as node:
        done, asked = of_partition(0, 2)
        node.hold(asked)
        await node.judging.take(node.incoming(done, asked))
        await until(lambda: node.acknowledged)
        await node.judging.close()
        assert not node.desk.busy
        assert node.acknowledged == [(0, 0)]
        node.let(asked)
        await a_while()
        assert len(node.given_back) == 1


async def test_closing_ends_a_take_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "IN_FLIGHT", 1)
    async with a_node() as node:
        requests = of_partition(0, 3)
        node.hold(*requests)
        taking = asyncio.create_task(node.judging.take(node.incoming(*requests)))
        await until(lambda: node.asked)
        await node.judging.close()
        with pytest.raises(LostOwnershipError):
            await taking
        await a_while()
        assert not node.desk.busy
        assert node.asked == [requests[0].run_id]


async def test_time_alone_does_nothing() -> None:
    async with a_node() as node:
        await node.judging.tick(Times.single(T0 + MINUTE))
        assert (node.acknowledged, node.asked) == ([], [])
