"""Lag: what the groups acknowledged, beside what is there; what nobody acknowledged is never shown as 0."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_broker import Broker
from rich.console import Console

from collectors.kafka.lag import GroupLag, PartitionLag, lag
from collectors.kafka.topics import create
from pipeline.apps.show_lag import lag as shown
from pipeline.config.kafka import KafkaSettings
from pipeline.model.topology import TRACES

GROUP = "tracegrade.assemble"


@pytest.fixture
def settings(empty_broker: Broker) -> KafkaSettings:
    made = KafkaSettings(brokers=(empty_broker.address,), partitions=3)
    create(made, {})
    return made


def write(broker: Broker, *counts: int) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all"})
    for partition, count in enumerate(counts):
        for _ in range(count):
            producer.produce(TRACES.name, b"record", partition=partition)
    assert producer.flush(10) == 0


@contextmanager
def member(broker: Broker) -> Iterator[Consumer]:
    """A worker as the cluster sees it, with every partition assigned."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": GROUP,
            "client.id": "worker-7",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TRACES.name])
    while not consumer.assignment():
        consumer.poll(0.05)
    yield consumer
    consumer.close()


@pytest.mark.kafka
def test_a_stage_that_never_ran_lags_by_all_that_is_there(empty_broker: Broker, settings: KafkaSettings) -> None:
    write(empty_broker, 5, 0, 2)
    assemble, judge, gate = lag(settings, {})
    assert assemble == GroupLag(
        node="assemble",
        group=GROUP,
        topic=TRACES.name,
        state="not started",
        lag=7,
        partitions=(
            PartitionLag(0, committed=None, end=5, lag=5, owner=""),
            PartitionLag(1, committed=None, end=0, lag=0, owner=""),
            PartitionLag(2, committed=None, end=2, lag=2, owner=""),
        ),
    )
    assert [(one.node, one.topic, one.state, one.lag) for one in (judge, gate)] == [
        ("judge", "tracegrade.judge", "not started", 0),
        ("gate", "tracegrade.touched", "not started", 0),
    ]


@pytest.mark.kafka
def test_what_is_acknowledged_is_taken_off_and_the_worker_that_has_the_partition_is_named(
    empty_broker: Broker, settings: KafkaSettings
) -> None:
    write(empty_broker, 5, 0, 2)
    with member(empty_broker) as consumer:
        consumer.commit(offsets=[TopicPartition(TRACES.name, 0, 3)], asynchronous=False)
        running = lag(settings, {})[0]
    assert (running.state, running.lag) == ("stable", 4)
    assert [(part.committed, part.lag) for part in running.partitions] == [(3, 2), (None, 0), (None, 2)]
    assert {part.owner for part in running.partitions} == {"worker-7 on 127.0.0.1"}
    left = lag(settings, {})[0]
    assert (left.state, left.lag, {part.owner for part in left.partitions}) == ("empty", 4, {""})


@pytest.mark.kafka
def test_records_that_are_gone_are_no_lag(empty_broker: Broker, settings: KafkaSettings) -> None:
    write(empty_broker, 5)
    admin = empty_broker.admin()
    for one in admin.delete_records([TopicPartition(TRACES.name, 0, 4)]).values():
        one.result(10)
    assert lag(settings, {})[0].partitions[0] == PartitionLag(0, committed=None, end=5, lag=1, owner="")


def test_a_table_for_each_stage_shows_the_unknown_as_unknown_and_the_sum_below() -> None:
    group = GroupLag(
        "assemble",
        GROUP,
        TRACES.name,
        "stable",
        lag=9,
        partitions=(
            PartitionLag(0, committed=3, end=10, lag=7, owner="w1 on h"),
            PartitionLag(1, committed=None, end=2, lag=2, owner=""),
        ),
    )
    console = Console(width=100, record=True, color_system=None)
    with console.capture() as captured:
        console.print(shown([group]))
    lines = [line.split() for line in captured.get().splitlines() if line.strip(" ─╶╴-")]
    assert lines == [
        ["assemble:", "tracegrade.traces", "(stable)"],
        ["partition", "committed", "end", "lag", "owner"],
        ["0", "3", "10", "7", "w1", "on", "h"],
        ["1", "–", "2", "2", "–"],
        ["all", "9", "1", "owner"],
    ]
