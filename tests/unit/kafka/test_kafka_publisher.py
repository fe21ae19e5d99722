"""Publishing through the brokers: every topic's nouns arrive in the partition of their owner."""

from typing import Any

import pytest
from builders import a_span
from unit.kafka.mock_brokers import mock_brokers
from unit.kafka.test_kafka_versions import NOUNS, TOPIC_OF

from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import KafkaPublisher
from collectors.kafka.records import decode
from pipeline.errors import ConfigurationError, PermanentError
from pipeline.model.topology import DEAD_LETTERS, JUDGE, TOPICS, TRACES, DeadLetter, Publish


async def test_every_topic_arrives() -> None:
    nouns: dict[str, list[Any]] = {topic.name: [] for topic in TOPICS}
    for kind, some in NOUNS.items():
        nouns[TOPIC_OF.get(kind, TRACES).name] += some
    partitions = {topic.name: 3 + index for index, topic in enumerate(TOPICS)}
    with mock_brokers() as brokers:
        for name, count in partitions.items():
            brokers.topic(name, count)
        async with KafkaProducer(brokers.settings, {}) as producer:
            publish: Publish = KafkaPublisher(producer, partitions)
            for topic in TOPICS:
                await publish(topic, nouns[topic.name])
                records = brokers.stored(topic.name, partitions[topic.name])
                found = [noun for record in records for noun in decode(record).records]
                assert sorted(map(repr, found)) == sorted(map(repr, nouns[topic.name]))


async def test_many_nouns_arrive_too_and_none_is_no_error() -> None:
    with mock_brokers() as brokers:
        brokers.topic(TRACES.name, 4)
        async with KafkaProducer(brokers.settings, {}) as producer:
            publish = KafkaPublisher(producer, {TRACES.name: 4})
            await publish(TRACES, [])
            await publish(TRACES, [a_span(f"{n:016x}") for n in range(1, 1001)])
        found = [noun for record in brokers.stored(TRACES.name, 4) for noun in decode(record).records]
    assert len({span.span_id for span in found}) == len(found) == 1000


class _Nobody:
    async def send(self, outgoing: object) -> None:
        raise AssertionError(outgoing)


async def test_a_topic_that_is_not_there_is_a_mistake_of_a_person() -> None:
    publish = KafkaPublisher(_Nobody(), {TRACES.name: 4})
    with pytest.raises(ConfigurationError, match=r"no topic tracegrade.dead-letters; make it with `tracegrade topics create`"):
        await publish(DEAD_LETTERS, [DeadLetter("p", "o", "r", b"")])


async def test_of_what_can_never_be_sent_nothing_is() -> None:
    publish = KafkaPublisher(_Nobody(), {JUDGE.name: 4})
    with pytest.raises(PermanentError, match="does not travel"):
        await publish(JUDGE, [a_span()])
