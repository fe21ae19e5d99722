"""The producer against librdkafka's mock cluster: acknowledged, or an error that says who acts."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import KafkaError
from unit.kafka.mock_brokers import MockBrokers, break_for_good, mock_brokers

from collectors.kafka.producer import KafkaProducer, failure
from collectors.kafka.records import LARGEST_RECORD, Incoming, Outgoing
from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError

TOPIC = "some.topic"
PARTITIONS = 4
DELIVERY_S = 20.0
PATIENCE_S = 30.0


@pytest.fixture
def brokers() -> Iterator[MockBrokers]:
    with mock_brokers() as some:
        some.topic(TOPIC, PARTITIONS)
        yield some


def _producer(brokers: MockBrokers, delivery_s: float = DELIVERY_S) -> KafkaProducer:
    return KafkaProducer(brokers.settings, {}, delivery_s=delivery_s)


def _record(value: bytes, partition: int = 0, topic: str = TOPIC) -> Outgoing:
    return Outgoing(topic, partition, value, (("kind", b"feedback"), ("project", b"shop")))


async def _send_until_taken(producer: KafkaProducer, record: Outgoing) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await producer.send([record])
            except TemporaryError:
                continue


def _values(stored: list[Incoming]) -> list[bytes]:
    return sorted(record.value for record in stored)


async def test_what_is_acknowledged_is_stored_where_it_was_sent_to(brokers: MockBrokers) -> None:
    sent = [_record(b"%03d" % n, n % PARTITIONS) for n in range(200)]
    async with _producer(brokers) as producer:
        await asyncio.gather(*(producer.send(sent[n : n + 20]) for n in range(0, 200, 20)))
        stored = brokers.stored(TOPIC, PARTITIONS)
    assert {(record.partition, record.value, record.headers) for record in stored} == {
        (record.partition, record.value, record.headers) for record in sent
    }
    assert len(stored) == 200


async def test_whether_a_broker_answers_can_be_asked_at_any_time(brokers: MockBrokers, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = _producer(brokers)
    with pytest.raises(TemporaryError, match="the producer is closed"):
        await producer.ping()
    async with producer:
        assert await producer.ping() == "1 brokers"
        brokers.down()
        with monkeypatch.context() as patch:
            patch.setattr("collectors.kafka.producer._PING_S", 0.5)
            with pytest.raises(TemporaryError, match="no broker answers"):
                await producer.ping()
        brokers.up()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(TemporaryError):
                    assert await producer.ping() == "1 brokers"
                    break


async def test_nothing_to_send_is_sent() -> None:
    async with KafkaProducer(KafkaSettings(brokers=("127.0.0.1:1",)), {}) as producer:
        done, _ = await asyncio.wait({asyncio.create_task(producer.send([]))}, timeout=PATIENCE_S)
        assert [one.result() for one in done] == [None], "it does not wait for brokers that are not there"


async def test_one_record_of_almost_8_mib_is_sent(brokers: MockBrokers) -> None:
    brokers.topic("large", 1)
    async with _producer(brokers) as producer:
        with pytest.raises(PermanentError, match=f"set max.message.bytes of the topic to {LARGEST_RECORD}"):
            await producer.send([_record(bytes(LARGEST_RECORD + 1), topic="large")])
        await producer.send([_record(bytes(LARGEST_RECORD - 2048), topic="large")])


async def test_while_the_broker_is_away_sending_may_be_tried_again_and_then_works(brokers: MockBrokers) -> None:
    async with _producer(brokers, delivery_s=1) as producer:
        await _send_until_taken(producer, _record(b"before"))
        brokers.down()
        with pytest.raises(TemporaryError) as caught:
            await producer.send([_record(b"meanwhile")])
        assert caught.value.retry_after == 1.0
        brokers.up()
        await _send_until_taken(producer, _record(b"meanwhile"))
        assert set(_values(brokers.stored(TOPIC, PARTITIONS))) == {b"before", b"meanwhile"}


async def test_a_short_absence_is_not_noticed(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        await producer.send([_record(b"before")])
        brokers.down()
        sending = asyncio.ensure_future(producer.send([_record(b"%d" % n, n % PARTITIONS) for n in range(8)]))
        done, _ = await asyncio.wait([sending], timeout=0.3)
        assert not done
        brokers.up()
        await sending
        assert _values(brokers.stored(TOPIC, PARTITIONS)) == sorted([b"before", *(b"%d" % n for n in range(8))])


async def test_an_answer_that_may_be_repeated_is_repeated_and_nothing_is_doubled(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        brokers.refuse(KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.REQUEST_TIMED_OUT)
        await producer.send([_record(b"once")])
        assert _values(brokers.stored(TOPIC, PARTITIONS)) == [b"once"]


async def test_after_a_fatal_error_there_is_a_new_producer(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        await producer.send([_record(b"before")])
        first = producer._session
        assert first is not None
        brokers.delay(2000)
        waiting = asyncio.ensure_future(producer.send([_record(b"waiting")]))
        await asyncio.sleep(0)  # so that it is queued
        break_for_good(first._producer)
        with pytest.raises(TemporaryError):
            await waiting
        brokers.delay(0)
        await producer.send([_record(b"after")])
        assert producer._session is not first
        await asyncio.to_thread(first.thread.join)
        assert {b"before", b"after"} <= set(_values(brokers.stored(TOPIC, PARTITIONS)))


async def test_a_fatal_error_is_found_when_sending_too(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        assert producer._session is not None
        break_for_good(producer._session._producer)
        with pytest.raises(TemporaryError):
            await producer.send([_record(b"during")])
        await producer.send([_record(b"after")])


async def test_a_refusal_of_the_whole_producer_is_one_that_a_new_producer_gets_over(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        await producer.send([_record(b"before")])
        brokers.refuse(KafkaError.INVALID_PRODUCER_EPOCH)
        with pytest.raises(TemporaryError):
            await producer.send([_record(b"during")])
        await producer.send([_record(b"after")])


async def test_a_partition_that_is_not_there_is_a_mistake_of_a_person(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        with pytest.raises(ConfigurationError, match=r"no partition 4 of some.topic .*`tracegrade topics create`"):
            await producer.send([_record(b"x", PARTITIONS)])


async def test_a_topic_that_is_not_there_is_a_mistake_of_a_person(brokers: MockBrokers) -> None:
    brokers.topic("gone", 1)
    brokers.deny("gone", KafkaError.UNKNOWN_TOPIC_OR_PART)
    async with _producer(brokers) as producer:
        with pytest.raises(ConfigurationError, match="no partition 0 of gone"):
            await producer.send([_record(b"x", topic="gone")])


async def test_what_the_broker_finds_too_large_is_refused_for_good(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        brokers.refuse(KafkaError.MSG_SIZE_TOO_LARGE)
        with pytest.raises(PermanentError, match=f"set max.message.bytes of the topic to {LARGEST_RECORD}"):
            await producer.send([_record(b"x")])


def test_a_user_who_must_not_write_is_a_mistake_of_a_person() -> None:
    error = failure(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), TOPIC, 0)
    assert isinstance(error, ConfigurationError)
    assert "allow WRITE" in str(error)


async def test_what_may_yet_work_is_told_before_what_never_will(brokers: MockBrokers) -> None:
    async with _producer(brokers, delivery_s=1) as producer:
        await _send_until_taken(producer, _record(b"x", 1))
        brokers.refuse(KafkaError.MSG_SIZE_TOO_LARGE, *[KafkaError.REQUEST_TIMED_OUT] * 100)
        with pytest.raises(TemporaryError):
            await producer.send([_record(b"x", 1), _record(b"x", 2)])


async def test_when_there_is_no_more_room_senders_are_asked_to_wait(
    brokers: MockBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collectors.kafka.producer._CLOSE_S", 0)
    async with _producer(brokers) as producer:
        await producer.send([_record(b"x")])
        brokers.down()
        large = [_record(bytes(LARGEST_RECORD - 2048)) for _ in range(40)]
        with pytest.raises(TemporaryError, match="than there is room for"):
            await producer.send(large)


async def test_closing_waits_for_what_was_sent(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        brokers.delay(100)
        sending = asyncio.ensure_future(producer.send([_record(b"last")]))
        await asyncio.sleep(0)
    await sending
    brokers.delay(0)
    assert _values(brokers.stored(TOPIC, PARTITIONS)) == [b"last"]
    with pytest.raises(TemporaryError, match="closed"):
        await producer.send([_record(b"later")])


async def test_closing_ends_although_the_broker_is_away_and_everybody_is_answered(
    brokers: MockBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collectors.kafka.producer._CLOSE_S", 0.5)
    loop = asyncio.get_running_loop()
    async with _producer(brokers) as producer:
        brokers.down()
        sending = asyncio.ensure_future(producer.send([_record(b"lost")]))
        await asyncio.sleep(0)
        began = loop.time()
    assert loop.time() - began < DELIVERY_S / 2, "it does not wait until the record is given up"
    with pytest.raises(TemporaryError):
        await sending
    assert not [thread for thread in threading.enumerate() if thread.name == "kafka-producer"]


async def test_many_reports_wake_the_loop_few_times(brokers: MockBrokers, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    woken: list[int] = []
    wake = loop.call_soon_threadsafe
    async with _producer(brokers) as producer:
        await producer.send([_record(b"x", n) for n in range(PARTITIONS)])

        def counted(*call: Any) -> asyncio.Handle:
            woken.append(1)
            return wake(*call)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        await producer.send([_record(b"x", n % PARTITIONS) for n in range(1000)])
        monkeypatch.undo()
    assert len(woken) <= 100


async def test_a_sender_that_hangs_up_disturbs_nobody(brokers: MockBrokers) -> None:
    async with _producer(brokers) as producer:
        brokers.delay(100)
        leaving = asyncio.ensure_future(producer.send([_record(b"left")]))
        staying = asyncio.ensure_future(producer.send([_record(b"stayed")]))
        await asyncio.sleep(0)
        leaving.cancel()
        await staying
        brokers.delay(0)
        assert _values(brokers.stored(TOPIC, PARTITIONS)) == [b"left", b"stayed"]
