"""The bridge's consumer against librdkafka's own brokers: what is committed, what comes again, and what a second member changes."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from unit.kafka.mock_brokers import MockBrokers, mock_brokers

from collectors.kafka.bridge_consumer import Arrived, BridgeConsumer
from collectors.kafka.lag import BRIDGES
from pipeline.config.bridge import BridgeSettings
from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError

TOPIC = "otlp_spans"
PATIENCE_S = 30.0


@pytest.fixture
def brokers() -> Iterator[MockBrokers]:
    with mock_brokers() as made:
        made.topic(TOPIC, 2)
        yield made


def write(brokers: MockBrokers, *values: bytes | None, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": brokers.settings.brokers[0]})
    for value in values:
        producer.produce(TOPIC, value, partition=partition, key=b"k", headers=[("h", b"1")])
    assert producer.flush(10) == 0


def committed(brokers: MockBrokers) -> dict[int, tuple[int, str]]:
    asking = Consumer({"bootstrap.servers": brokers.settings.brokers[0], "group.id": BRIDGES})
    try:
        found = asking.committed([TopicPartition(TOPIC, one) for one in range(2)], timeout=10)
    finally:
        asking.close()
    return {one.partition: (one.offset, one.metadata or "") for one in found if one.offset >= 0}


@asynccontextmanager
async def a_member(brokers: MockBrokers) -> AsyncIterator[BridgeConsumer]:
    settings = KafkaSettings(brokers=brokers.settings.brokers, session_timeout=6_000_000_000)
    consumer = BridgeConsumer(settings, BridgeSettings(), [TOPIC], {})
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.close()


async def arrive(consumer: BridgeConsumer, records: int) -> list[Arrived]:
    """Poll until so many records are there."""
    found: list[Arrived] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < records:
            found += await consumer.take(hold=False)
    return found


async def test_a_record_comes_whole(brokers: MockBrokers) -> None:
    write(brokers, b"value", None)
    async with a_member(brokers) as consumer:
        first, second = await arrive(consumer, 2)
    record = first.record
    assert (record.topic, record.partition, record.offset) == (TOPIC, 0, 0)
    assert (record.value, record.key, record.headers) == (b"value", b"k", (("h", b"1"),))
    assert record.timestamp_ns > 1_700_000_000 * 1_000_000_000
    assert (second.record.value, second.record.offset) == (None, 1)


async def test_only_what_is_done_is_committed_and_the_rest_comes_again(brokers: MockBrokers) -> None:
    write(brokers, *[b"%d" % number for number in range(6)])
    async with a_member(brokers) as consumer:
        arrived = await arrive(consumer, 6)
        for one in (*arrived[:3], *arrived[4:]):
            one.taken.finish(one.share.mark)
    assert committed(brokers) == {0: (3, "1:0")}
    async with a_member(brokers) as consumer:
        assert [one.record.value for one in await arrive(consumer, 3)] == [b"3", b"4", b"5"]


async def test_nothing_is_committed_where_nothing_is_done(brokers: MockBrokers) -> None:
    write(brokers, b"a")
    async with a_member(brokers) as consumer:
        await arrive(consumer, 1)
        for _ in range(15):
            await consumer.take(hold=True)
    assert committed(brokers) == {}


async def test_what_was_bad_is_remembered_with_the_offset(brokers: MockBrokers) -> None:
    write(brokers, *[b"bad"] * 5, b"good")
    async with a_member(brokers) as consumer:
        for one in await arrive(consumer, 6):
            one.share.note(bad=one.record.value == b"bad")
            one.taken.finish(one.share.mark)
    assert committed(brokers)[0] == (6, "1:3e")
    write(brokers, b"next")
    async with a_member(brokers) as consumer:
        (one,) = await arrive(consumer, 1)
        assert one.share.bad == 5


async def test_a_commit_is_made_without_waiting_for_the_end(brokers: MockBrokers) -> None:
    write(brokers, b"a")
    async with a_member(brokers) as consumer:
        (one,) = await arrive(consumer, 1)
        one.taken.finish()
        async with asyncio.timeout(PATIENCE_S):
            while not committed(brokers):
                await consumer.take(hold=False)
        assert committed(brokers) == {0: (1, "")}


async def test_while_it_is_held_nothing_comes_and_nothing_is_lost(brokers: MockBrokers) -> None:
    write(brokers, b"a")
    async with a_member(brokers) as consumer:
        await arrive(consumer, 1)
        await consumer.take(hold=True)
        write(brokers, b"b", b"c")
        for _ in range(10):
            assert await consumer.take(hold=True) == []
        assert [one.record.value for one in await arrive(consumer, 2)] == [b"b", b"c"]


async def test_it_says_how_far_behind_it_is_and_since_when(brokers: MockBrokers) -> None:
    write(brokers, b"a", b"b", b"c")
    async with a_member(brokers) as consumer:
        first, *rest = await arrive(consumer, 3)
        async with asyncio.timeout(PATIENCE_S):
            while not consumer.lag.get((TOPIC, 0)):
                await consumer.take(hold=False)
        assert consumer.lag[TOPIC, 0] == 3
        assert consumer.oldest_unread == {(TOPIC, 0): first.record.timestamp_ns}
        for one in (first, *rest):
            one.taken.finish()
        async with asyncio.timeout(PATIENCE_S):
            while consumer.lag[TOPIC, 0]:
                await consumer.take(hold=False)
        assert consumer.oldest_unread == {}


async def test_a_second_member_takes_over_half_and_reads_again_what_was_under_way_there(brokers: MockBrokers) -> None:
    write(brokers, b"a0", b"a1", partition=0)
    write(brokers, b"b0", b"b1", partition=1)
    async with a_member(brokers) as one:
        arrived = await arrive(one, 4)
        for each in arrived:
            if each.record.offset == 0:
                each.taken.finish()
        async with asyncio.timeout(PATIENCE_S):
            while len(committed(brokers)) < 2:
                await one.take(hold=False)
        async with a_member(brokers) as other:
            again: list[Arrived] = []

            async def both() -> None:
                again.extend(itertools.chain(*await asyncio.gather(one.take(hold=False), other.take(hold=False))))

            # A partition may change hands more than once until all agree, and what is under way in it comes with each change.
            async with asyncio.timeout(PATIENCE_S):
                while len({each.record.value for each in again}) < 2:
                    await both()
            for each in arrived:
                each.taken.finish("of a partition that was taken away")
            async with asyncio.timeout(PATIENCE_S):
                while {offset for offset, _ in committed(brokers).values()} != {2}:
                    for each in again:
                        each.taken.finish()
                    await both()
            assert {each.record.value for each in again} == {b"a1", b"b1"}, "what was committed is not read again"


async def test_brokers_that_come_back_are_read_from_again(brokers: MockBrokers) -> None:
    write(brokers, b"a")
    async with a_member(brokers) as consumer:
        (one,) = await arrive(consumer, 1)
        brokers.down()
        one.taken.finish()
        for _ in range(15):
            assert await consumer.take(hold=False) == []
        brokers.up()
        write(brokers, b"b")
        (other,) = await arrive(consumer, 1)
        assert other.record.value == b"b"
        other.taken.finish()
    assert committed(brokers)[0][0] == 2


async def test_a_topic_that_must_not_be_read_is_a_person_s_to_allow(brokers: MockBrokers) -> None:
    brokers.deny(TOPIC, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    async with a_member(brokers) as consumer:
        with pytest.raises(ConfigurationError, match=r"allow READ on the topics of bridge\.topics"):
            await arrive(consumer, 1)
