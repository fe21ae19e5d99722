"""`tracegrade bridge` as a process on a real broker: what others wrote to Kafka is on tracegrade's topic, and nothing is acknowledged before.

The Collector itself takes part in ``test_otel_collector.py``; here other clients write what it would.
"""

import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clickhouse_front import Front
from cluster import Cluster, Process
from confluent_kafka import Consumer, KafkaException, TopicPartition
from foreign_writers import carried, write
from kafka_broker import Broker
from serving import eventually, tracegrade
from unit.kafka.foreign import BAD_SPANS, GOOD, POISON, otlp, otlp_json, request_of

from collectors.kafka.dead_letters import TopicLetters
from collectors.kafka.lag import BRIDGES
from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import KafkaPublisher
from collectors.kafka.topics import create, partitions
from pipeline.model.topology import DEAD_LETTERS, DeadLetter

pytestmark = pytest.mark.kafka

TOPIC = "otlp_spans"
OTHERS = "otlp_others"
MORE = f"""
bridge: {{topics: {{{TOPIC}: cluster, {OTHERS}: other}}, http_port: 0}}
"""
PARTITIONS = 4


@pytest.fixture
def cluster(empty_broker: Broker, front: Front, tmp_path: Path) -> Cluster:
    made = Cluster(empty_broker, front, tmp_path, more=MORE, database="bridge", partitions=PARTITIONS)
    create(made.kafka, os.environ, made.settings.bridge.topics)
    return made


@contextmanager
def a_bridge(cluster: Cluster) -> Iterator[Process]:
    with Process("bridge", "-c", str(cluster.config)) as process:
        process.says("bridging")
        yield process


def acknowledged(cluster: Cluster, topic: str = TOPIC) -> int:
    """How many records of the topic the bridges have acknowledged."""
    asking = Consumer({"bootstrap.servers": cluster.broker.address, "group.id": BRIDGES})
    try:
        places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        return sum(one.offset for one in asking.committed(places, timeout=10) if one.offset > 0)
    except KafkaException:  # the group is new, and nobody coordinates it yet
        return -1
    finally:
        asking.close()


def kept(cluster: Cluster) -> list[DeadLetter]:
    """The dead letters of the brokers."""
    with TopicLetters(cluster.kafka, os.environ) as letters:
        return [letter for name in letters.summaries if (letter := letters.letter(name)) is not None]


def spans(cluster: Cluster) -> list[tuple[str, str]]:
    return sorted((span.project, span.name) for span in carried(cluster.broker.address, PARTITIONS))


def test_both_encodings_keyed_or_not_are_carried_to_the_project_of_their_topic(cluster: Cluster) -> None:
    address = cluster.broker.address
    write(address, TOPIC, [otlp("proto", trace=one) for one in range(1, 9)], keys=[None, b"k1", b"k2"])
    write(address, OTHERS, [otlp_json("json")], partitioner="fnv1a_random", keys=[b"ab" * 16])
    with a_bridge(cluster) as bridge:
        eventually(lambda: acknowledged(cluster) == 8 and acknowledged(cluster, OTHERS) == 1)
        assert spans(cluster) == [*[("cluster", "proto")] * 8, ("other", "json")]
        assert bridge.stop() == 0
    assert acknowledged(cluster) == 8


def test_a_bridge_that_is_killed_carries_again_what_it_had_not_acknowledged_and_loses_nothing(cluster: Cluster) -> None:
    address = cluster.broker.address
    expected = {f"{number:032x}" for number in range(1, 401)}
    values = [otlp("one", trace=number) for number in range(1, 401)]
    write(address, TOPIC, values[:200])
    with a_bridge(cluster) as first:
        eventually(lambda: len(carried(address, PARTITIONS)) > 20)
        first.kill()
    write(address, TOPIC, values[200:])
    with a_bridge(cluster) as second:
        eventually(lambda: acknowledged(cluster) == 400)
        assert {span.trace_id for span in carried(address, PARTITIONS)} == expected
        assert second.stop() == 0


def test_poison_is_kept_shown_and_sent_back_and_costs_nobody_else_a_span(cluster: Cluster) -> None:
    address = cluster.broker.address
    bad = BAD_SPANS["no ids"]
    write(address, TOPIC, [*POISON.values(), request_of(GOOD, bad), otlp("good")], headers=[("codec", b"unknown")])
    with a_bridge(cluster) as bridge:
        eventually(lambda: acknowledged(cluster) == len(POISON) + 2)
        assert spans(cluster) == [("cluster", "good"), ("cluster", "odd")]
        letters = kept(cluster)
        assert len(letters) == len(POISON) + 1
        assert {letter.headers for letter in letters} == {(("codec", b"unknown"),)}
        assert all(letter.origin.startswith(f"bridge: {TOPIC}[") and letter.reason for letter in letters)
        assert bridge.stop() == 0

    listed = tracegrade("dead-letters", "list", "-c", cluster.config, "--json")
    assert (listed.code, listed.json["total"]) == (0, len(letters))
    shown = tracegrade("dead-letters", "show", listed.json["letters"][0]["id"], "-c", cluster.config)
    assert shown.code == 0, shown.err
    again = tracegrade("dead-letters", "replay", "--all", "-c", cluster.config, "--json")
    assert {one["outcome"] for one in again.json} == {"failed"}
    assert again.code == 1
    assert spans(cluster) == [("cluster", "good"), ("cluster", "odd")], "what fails again must send nothing"


async def test_a_letter_that_can_be_read_now_goes_where_it_was_meant_to_go_and_is_not_listed_again(cluster: Cluster) -> None:
    letters = [
        DeadLetter(
            "cluster", f"bridge: {TOPIC}[0]@7", "of another release", otlp("foreign"), received_ns=1_790_000_000_000_000_000
        ),
        DeadLetter(
            "cluster", "collector: /v1/traces", "of another release", otlp_json("refused"), received_ns=1_790_000_000_000_000_001
        ),
    ]
    async with KafkaProducer(cluster.kafka, os.environ) as producer:
        await KafkaPublisher(producer, partitions(cluster.kafka, os.environ))(DEAD_LETTERS, letters)
    for _ in range(2):
        sent = tracegrade("dead-letters", "replay", *(letter.id for letter in letters), "-c", cluster.config, "--json")
        assert (sent.code, {one["outcome"] for one in sent.json}) == (0, {"sent"}), sent.err
    assert set(spans(cluster)) == {("cluster", "foreign"), ("cluster", "refused")}
    assert {span.received_ns for span in carried(cluster.broker.address, PARTITIONS)} == {
        letter.received_ns for letter in letters
    }
    assert tracegrade("dead-letters", "list", "-c", cluster.config, "--json").json["total"] == 0
    assert tracegrade("dead-letters", "list", "--all", "-c", cluster.config, "--json").json["total"] == 2


def test_what_a_collector_refuses_is_kept_on_the_topic(cluster: Cluster) -> None:
    with cluster.collector() as (process, http, _):
        request = urllib.request.Request(f"{http}/v1/traces", b"garbage", {"Content-Type": "application/x-protobuf"})  # noqa: S310 - ours
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)  # noqa: S310
        refused.value.close()
        assert refused.value.code == 400
        (letter,) = eventually(lambda: kept(cluster))
        assert (letter.origin, letter.body, letter.project) == ("collector: /v1/traces", b"garbage", "cluster")
        assert process.stop() == 0


def test_most_of_it_bad_ends_the_bridge_with_a_sentence_and_a_restart_buries_no_more(cluster: Cluster) -> None:
    write(cluster.broker.address, TOPIC, [b"garbage"] * 150, keys=[b"one partition"])
    before = 0
    for _ in range(2):
        ended = tracegrade("bridge", "-c", cluster.config)
        assert ended.code == 2
        assert "could not be read" in ended.err
        with TopicLetters(cluster.kafka, os.environ) as topic:
            letters = len(topic.summaries)
        assert letters == 100
        assert acknowledged(cluster) == 100
        assert before in (0, letters)
        before = letters


def test_it_says_that_it_is_well_and_how_far_it_is(cluster: Cluster) -> None:
    with Process("bridge", "-c", str(cluster.config)) as process:
        url = process.says("health")["url"]

        def ready() -> bool:
            try:
                with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:  # noqa: S310 - the bridge's own
                    checks = json.load(answer)["checks"]
            except OSError:
                return False
            return bool(checks["bridge"]["ok"] and "8 partitions, 0 records behind" in checks["bridge"]["detail"])

        eventually(ready)
        assert process.stop() == 0


def test_topics_that_are_not_there_are_told_with_what_to_do(cluster: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "missing.yaml"
    config.write_text(cluster.config.read_text().replace(OTHERS, "not_there"))
    ended = tracegrade("bridge", "-c", config)
    assert ended.code == 2
    assert "not_there" in ended.err


@pytest.mark.real
@pytest.mark.parametrize("seed", range(3))
def test_bridges_that_come_and_go_while_others_write_lose_nothing(cluster: Cluster, seed: int) -> None:
    """Some are killed, some are stopped, some join; what was written is carried, and in the end all of it is acknowledged."""
    chance = random.Random(seed)
    address = cluster.broker.address
    expected: set[str] = set()
    running: list[Process] = []
    try:
        for step in range(8):
            numbers = range(step * 300 + 1, step * 300 + 301)
            write(address, TOPIC, [otlp("one", trace=number) for number in numbers], keys=[None, b"k%d" % step])
            expected |= {f"{number:032x}" for number in numbers}
            if len(running) < 3 and (not running or chance.random() < 0.6):
                running.append(Process("bridge", "-c", str(cluster.config)))
                running[-1].says("bridging")
            elif chance.random() < 0.5:
                running.pop(chance.randrange(len(running))).kill()
            else:
                assert running.pop(chance.randrange(len(running))).stop() == 0
            time.sleep(chance.random() * 3)
        running.append(Process("bridge", "-c", str(cluster.config)))
        eventually(lambda: acknowledged(cluster) == len(expected))
        found = [span.trace_id for span in carried(address, PARTITIONS)]
        assert set(found) == expected
        sys.stderr.write(f"seed {seed}: {len(expected)} records, {len(found) - len(expected)} carried twice, 0 lost\n")
    finally:
        for process in running:
            process.kill()
