"""Writers that are not ours: clients that put OTLP on a topic, and what is then on tracegrade's own."""

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from collectors.kafka.records import Incoming, decode
from pipeline.model.span import Span
from pipeline.model.topology import TRACES

PATIENCE_S: Final = 30.0


def write(
    address: str,
    topic: str,
    values: Iterable[bytes | None],
    *,
    keys: Sequence[bytes | None] = (None,),
    partitioner: str = "murmur2_random",
    headers: Sequence[tuple[str, bytes]] = (),
) -> None:
    """Write values as a client with this partitioner does; keys in turn. Returns when the broker has them."""
    producer = Producer({"bootstrap.servers": address, "partitioner": partitioner, "acks": "all", "message.max.bytes": 9_000_000})
    failed: list[Any] = []
    for at, value in enumerate(values):
        producer.produce(
            topic,
            value,
            key=keys[at % len(keys)],
            headers=list(headers),
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def on_topic(address: str, topic: str, partitions: int) -> list[Any]:
    """Everything that is on a topic now, partition by partition."""
    consumer: Any = Consumer(
        {"bootstrap.servers": address, "group.id": f"tests-{os.getpid()}", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    found: list[Any] = []
    try:
        for partition in range(partitions):
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
            consumer.assign([place])
            at = 0
            while at < end:
                message = consumer.poll(PATIENCE_S)
                assert message is not None, "the broker has records that it does not send"
                assert message.error() is None
                at = message.offset() + 1
                found.append(message)
    finally:
        consumer.close()
    return found


def carried(address: str, partitions: int) -> list[Span]:
    """The spans that are on tracegrade's topic, each at the partition that its trace has."""
    spans: list[Span] = []
    for message in on_topic(address, TRACES.name, partitions):
        incoming = Incoming(
            TRACES.name,
            message.partition(),
            message.offset(),
            message.timestamp()[1] * 1_000_000,
            message.value(),
            tuple(message.headers()),
        )
        read = decode(incoming)
        assert read.refused == ""
        assert {TRACES.partition_of(span, partitions) for span in read.records} == {message.partition()}
        spans += read.records
    return spans
