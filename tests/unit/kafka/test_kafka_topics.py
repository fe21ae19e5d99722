"""Topics: declared once, brought to what is wanted ever after, and never repartitioned under records."""

import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import ConfigResource, NewPartitions, ResourceType
from kafka_broker import Broker

from collectors.kafka import cluster
from collectors.kafka.records import LARGEST_RECORD
from collectors.kafka.topics import create, partitions, retention_of
from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.model.time import DAY
from pipeline.model.topology import DEAD_LETTERS, TOPICS, TRACES

NAMES = [topic.name for topic in TOPICS]


def of(broker: Broker, **more: Any) -> KafkaSettings:
    return KafkaSettings.model_validate({"brokers": [broker.address], "partitions": 4, **more})


def until(true: Callable[[], bool]) -> None:
    """Wait for what the controller has decided to get around to the broker."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def configuration(broker: Broker, topic: str) -> Mapping[str, str | None]:
    admin = broker.admin()  # the answer comes only while its client lives
    (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in future.result(10).items()}


@pytest.mark.kafka
def test_every_topic_of_the_topology_is_declared_with_what_the_design_asks_for(empty_broker: Broker) -> None:
    report = create(of(empty_broker, retention="14d"), {})
    assert [(one.topic, one.outcome, one.partitions, one.warning) for one in report] == [
        (name, "created", 4, "") for name in NAMES
    ]
    for name in NAMES:
        has = configuration(empty_broker, name)
        assert has["message.timestamp.type"] == "LogAppendTime"
        assert has["retention.ms"] == ("604800000" if name == DEAD_LETTERS.name else "1209600000")
        assert has["cleanup.policy"] == "delete"
        assert has["compression.type"] == "producer"
        assert has["min.insync.replicas"] == "1"
    assert partitions(of(empty_broker), {}) == dict.fromkeys(NAMES, 4)


@pytest.mark.kafka
def test_the_largest_record_fits_and_a_larger_one_is_refused(empty_broker: Broker) -> None:
    create(of(empty_broker), {})
    refused: list[object] = []
    producer = Producer({"bootstrap.servers": empty_broker.address, "message.max.bytes": 4 * LARGEST_RECORD})
    for size in (LARGEST_RECORD - 1024, 2 * LARGEST_RECORD):
        producer.produce(TRACES.name, bytes(size), partition=0, on_delivery=lambda error, _: refused.append(error))
        assert producer.flush(30) == 0
    assert [error is None for error in refused] == [True, False]


@pytest.mark.kafka
def test_declaring_again_changes_nothing(empty_broker: Broker) -> None:
    create(of(empty_broker), {})
    before = {name: configuration(empty_broker, name) for name in NAMES}
    assert {(one.outcome, one.altered, one.warning) for one in create(of(empty_broker), {})} == {("unchanged", (), "")}
    assert {name: configuration(empty_broker, name) for name in NAMES} == before


@pytest.mark.kafka
def test_a_topic_that_others_write_is_made_where_it_is_missing_and_left_as_it_is_where_it_exists(empty_broker: Broker) -> None:
    made = create(of(empty_broker), {}, ["otlp_spans"])
    assert (made[-1].topic, made[-1].outcome, made[-1].partitions) == ("otlp_spans", "created", 4)
    assert configuration(empty_broker, "otlp_spans")["max.message.bytes"] == str(LARGEST_RECORD)
    assert retention_of(of(empty_broker), {}, ["otlp_spans"]) == 7 * DAY
    again = create(of(empty_broker, retention="9d", partitions=8), {}, ["otlp_spans"])
    assert (again[-1].outcome, again[-1].partitions, again[-1].warning) == ("unchanged", 4, "")
    assert configuration(empty_broker, "otlp_spans")["retention.ms"] == "604800000"


@pytest.mark.kafka
def test_a_changed_setting_is_brought_to_the_topics_that_exist_and_said(empty_broker: Broker) -> None:
    create(of(empty_broker), {})
    report = create(of(empty_broker, retention="8d"), {})
    altered = ("altered", ("retention.ms: 604800000 -> 691200000",))
    assert {one.topic: (one.outcome, one.altered) for one in report} == {
        name: altered if name != DEAD_LETTERS.name else ("unchanged", ()) for name in NAMES
    }
    until(lambda: configuration(empty_broker, TRACES.name)["retention.ms"] == "691200000")


@pytest.mark.kafka
def test_a_topic_that_was_deleted_is_made_again_beside_those_that_exist(empty_broker: Broker) -> None:
    create(of(empty_broker), {})
    admin = empty_broker.admin()
    admin.delete_topics([TRACES.name], operation_timeout=10)[TRACES.name].result(15)
    outcomes = {one.topic: one.outcome for one in create(of(empty_broker), {})}
    assert outcomes == {**dict.fromkeys(NAMES, "unchanged"), TRACES.name: "created"}


@pytest.mark.kafka
def test_partitions_and_copies_that_differ_are_kept_and_warned_of(empty_broker: Broker) -> None:
    create(of(empty_broker), {})
    admin = empty_broker.admin()
    admin.create_partitions([NewPartitions(TRACES.name, 6)])[TRACES.name].result(10)
    until(lambda: partitions(of(empty_broker), {})[TRACES.name] == 6)
    wanted = of(empty_broker, replication=3)
    warnings = {one.topic: one.warning for one in create(wanted, {})}
    assert warnings[TRACES.name].startswith(
        "it exists with partitions 6 (asked: 4) and replication 1 (asked: 3), and keeps that; "
    )
    assert warnings["tracegrade.trips"].startswith("it exists with replication 1 (asked: 3), and keeps that; ")
    assert partitions(wanted, {}) == {**dict.fromkeys(NAMES, 4), TRACES.name: 6}
    assert configuration(empty_broker, TRACES.name)["min.insync.replicas"] == "1", "2 of 1 copies would refuse every record"


@pytest.mark.kafka
def test_more_copies_than_brokers_are_refused_in_a_sentence(empty_broker: Broker) -> None:
    with pytest.raises(ConfigurationError, match=r"only 1 broker.*; write a smaller kafka\.replication$"):
        create(of(empty_broker, replication=3), {})


def test_brokers_that_are_not_unfenced_yet_are_waited_for_and_are_nobodys_mistake() -> None:
    asked = cluster.Cluster(KafkaSettings(brokers=("127.0.0.1:1",), replication=1), {})
    fenced = KafkaError(KafkaError.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced")
    answers: list[Future[str]] = [Future(), Future()]
    answers[0].set_exception(KafkaException(fenced))
    answers[1].set_result("made")
    told = iter(answers)
    assert asked.answers(lambda: {"topic": next(told)}) == {"topic": "made"}
    assert isinstance(asked.error(fenced), TemporaryError)


@pytest.mark.kafka
def test_missing_topics_are_named_with_the_command_that_makes_them(empty_broker: Broker) -> None:
    with pytest.raises(ConfigurationError, match=r"no topic tracegrade\.traces, .*; run tracegrade topics create$"):
        partitions(of(empty_broker), {})


@pytest.mark.kafka
def test_a_user_whom_the_brokers_do_not_take_is_told_so_at_once(broker: Broker) -> None:
    """This broker takes no user at all."""
    refused = {"protocol": "sasl_plaintext", "username": "u", "password_env": "P"}
    with pytest.raises(ConfigurationError, match=r"refuse: .*; check protocol, mechanism, username, password_env and ca_file"):
        partitions(of(broker, **refused), {"P": "secret"})


@pytest.mark.kafka
def test_a_protocol_that_the_brokers_do_not_speak_is_in_the_sentence(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_S", 1.0)
    with pytest.raises(TemporaryError, match=r"SSL (handshake failed.*PLAINTEXT broker listener|connection closed by peer)"):
        partitions(of(broker, protocol="ssl"), {})


def test_brokers_that_do_not_answer_are_named_and_waited_for_no_longer_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_S", 1.0)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(TemporaryError, match=rf"the brokers of kafka\.brokers \(127\.0\.0\.1:{port}\) do not answer"):
            partitions(KafkaSettings(brokers=(f"127.0.0.1:{port}",)), {})
