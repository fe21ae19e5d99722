"""Faults of records: they come twice, late, from foreign writers, or are nothing that anybody can read."""

import json
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from faults.lasting import lasting
from faults.ledger import HEAD, PROJECT, Sent, request
from faults.load import WHOLE
from faults.rig import Rig
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from serving import eventually

from pipeline.model.topology import DEAD_LETTERS, TRACES

GOOD: Final = {"kind": b"spans", "project": PROJECT.encode(), "version": b"1"}
POISONS: Final[Sequence[tuple[bytes, Mapping[str, bytes]]]] = (
    (b"\xff\xfenothing that anybody wrote", {}),
    (b"\x0a\xff\xff\xff\xff\x7f cut", GOOD),
    (b"[]", {**GOOD, "version": b"99"}),
    (b"not JSON", {**GOOD, "kind": b"judgment"}),
    (b"[" * 100_000, {**GOOD, "kind": b"judgment"}),
    (b"[]", {**GOOD, "kind": b"judge_request"}),
    (b"", {**GOOD, "kind": b"judgment"}),
    (b"\x0a\x00", {**GOOD, "project": b"\xff\xfe"}),
)
"""Values and headers of which nothing can be read."""
FOREIGN: Final = "otlp_spans"
FOREIGN_PARTITIONS: Final = 6
FOREIGN_POISONS: Final = (
    b"\xff\xfenothing that anybody wrote",
    b'{"resourceSpans": [',
    b"\x0a" * 200,
    b'{"resourceSpans": ' + b"[" * 50_000,
    b"PK\x03\x04" + b"\0" * 1000,
    b"\x0a\xff\xff\xff\xff\x7f cut",
)
"""The same for a topic of OTLP."""
ANYWHERE: Final = -1
"""Where the partitioner says."""
PARTITIONERS: Final = ("fnv1a_random", "murmur2_random", None)
"""How Go's, Java's and careless writers place a record: by hashes that differ, or without a key anywhere."""


def poison(rig: Rig, count: int, topic: str = TRACES.name) -> None:
    """F17: write records that nobody can read; each is one dead letter, and stops nothing."""
    writer = Writer(rig, None)
    for (value, headers), partition in zip(_endless(rig, count), cycle(range(rig.cluster.kafka.partitions)), strict=False):
        writer.put(topic, value, headers, partition=partition)
    writer.close()
    rig.ledger.poisons += count
    rig.done["poison"] += count


def _endless(rig: Rig, count: int) -> list[tuple[bytes, Mapping[str, bytes]]]:
    first = rig.ledger.poisons
    return [POISONS[(first + one) % len(POISONS)] for one in range(count)]


class Writer:
    """A foreign writer: its own producer, and its own idea of which partition a trace belongs in."""

    def __init__(self, rig: Rig, partitioner: str | None) -> None:
        """None writes without a key."""
        options = {"bootstrap.servers": rig.cluster.broker.address, "acks": "all", "linger.ms": 0, "log_level": 0}
        self._producer = Producer(options | ({"partitioner": partitioner} if partitioner else {}))
        self._keyed = partitioner is not None
        self._failed: list[KafkaError] = []

    def put(self, topic: str, value: bytes, headers: Mapping[str, bytes], *, key: str = "", partition: int | None = None) -> None:
        """Write a record where the partitioner says, or there."""
        named = key if key and self._keyed else None
        at = ANYWHERE if partition is None else partition
        self._producer.produce(topic, value, named, at, on_delivery=self._heard, headers=list(headers.items()))

    def _heard(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def close(self) -> None:
        """Return when all of it is acknowledged."""
        assert self._producer.flush(30) == 0
        assert not self._failed, self._failed


def otlp(sent: Sent, numbers: Sequence[int]) -> bytes:
    """Return these spans of a trace in protobuf, by nothing of the product's own."""
    said = request(sent, tuple(numbers))
    for span in said["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            span[name] = b64encode(bytes.fromhex(span[name])).decode()
    written: bytes = ParseDict(said, TracesData()).SerializeToString()
    return written


def foreign_topic(rig: Rig) -> None:
    """Make the topic that OpenTelemetry Collectors write, as their operator would."""
    admin = rig.cluster.broker.admin()
    for done in admin.create_topics([NewTopic(FOREIGN, FOREIGN_PARTITIONS, 1)], operation_timeout=10).values():
        done.result(30)


def mixed_writers(rig: Rig, traces: int, pause_s: float, topic: str = TRACES.name) -> None:
    """F18: each trace in three pieces: by a writer that places by FNV, by one that places by murmur2, and by a collector.

    Every tenth is written without keys. On the product's own topic that is what a change of the number of partitions looks like.
    """
    writers = {name: Writer(rig, name) for name in PARTITIONERS}
    written: list[Sent] = []
    with rig.load():
        for number in range(traces):
            sent = rig.ledger.trace(f"mixed-{number % 2}")
            written.append(sent)
            for at, one in enumerate((HEAD, 2)):
                name = None if number % 10 == 9 else PARTITIONERS[(number + at) % 2]
                writers[name].put(topic, otlp(sent, [one]), GOOD if topic == TRACES.name else {}, key=sent.trace_id)
            rig.sender.send(sent, 3)
            lasting(pause_s)
        for writer in writers.values():
            writer.close()
        for sent in written:
            sent.acknowledged.update(WHOLE)
    rig.done[f"traces of mixed writers on {topic}"] += traces


def foreign_traces(rig: Rig, count: int) -> None:
    """Write whole traces to the foreign topic; what its brokers acknowledge is owed, whoever carries it on."""
    writer = Writer(rig, PARTITIONERS[0])
    written = [rig.ledger.trace("foreign") for _ in range(count)]
    for sent in written:
        writer.put(FOREIGN, otlp(sent, WHOLE), {}, key=sent.trace_id)
    writer.close()
    for sent in written:
        sent.acknowledged.update(WHOLE)


def letters(rig: Rig, node: str) -> set[tuple[str, str]]:
    """Return (origin, reason) of the dead letters that a part of the product has put on their topic."""
    consumer = Consumer({"bootstrap.servers": rig.cluster.broker.address, "group.id": "reader", "log_level": 0})
    parts = [TopicPartition(DEAD_LETTERS.name, at, 0) for at in range(rig.cluster.kafka.partitions)]
    ends = {one.partition: consumer.get_watermark_offsets(one, 10)[1] for one in parts}
    consumer.assign(parts)
    found: set[tuple[str, str]] = set()
    while any(one.offset < ends[one.partition] for one in consumer.position(parts) if ends[one.partition]):
        for message in consumer.consume(500, 1.0):
            found.update((one["origin"], one["reason"]) for one in json.loads(message.value() or b"[]"))
    consumer.close()
    return {(origin, reason) for origin, reason in found if origin.startswith(f"{node}: ")}


def foreign_poison(rig: Rig, count: int) -> None:
    """F17: write to the foreign topic what no Collector would, one record after another among good ones."""
    writer, before = Writer(rig, None), len(letters(rig, "bridge"))
    with rig.load():
        rig.alert()
        for number in range(count):
            writer.put(FOREIGN, FOREIGN_POISONS[number % len(FOREIGN_POISONS)], {}, partition=number % FOREIGN_PARTITIONS)
            writer.close()
            foreign_traces(rig, 1)
            lasting(0.2)
    rig.done["foreign poison"] += count
    eventually(lambda: len(letters(rig, "bridge")) == before + count)


def everything_comes_again(rig: Rig, seconds: float, after_s: Sequence[float], share: float = 0.2) -> None:
    """F14: a share of all requests is sent again, so many seconds later each time."""
    with rig.load():
        lasting(seconds)
        requests = list(rig.sender.requests)
        chosen = rig.chance.sample(requests, max(1, int(len(requests) * share)))
        began = time.monotonic()
        for after in after_s:
            lasting(began + after - time.monotonic())
            for sent, numbers in chosen:
                rig.sender.send(sent, *numbers)
            rig.done["requests sent again"] += len(chosen)


def late_data(rig: Rig, head_after_s: float) -> None:
    """F16: a head that comes long after its children were a run of their own, and a span after its run was scored."""
    headless, scored = rig.ledger.trace("late"), rig.ledger.trace("late")
    with rig.load():
        rig.sender.send(headless, 2, 3)
        rig.sender.send(scored, *WHOLE)
        eventually(lambda: rig.graded(scored.run_id, "no_escalation") == "pass")
        rig.sender.send(scored, 4)
        eventually(lambda: rig.graded(scored.run_id, "no_escalation") == "fail")
        lasting(head_after_s)
        assert rig.graded(headless.run_id, "no_escalation") is None
        rig.sender.send(headless, HEAD)
        eventually(lambda: rig.graded(headless.run_id, "no_escalation") == "pass")
    rig.done["late head"] += 1
