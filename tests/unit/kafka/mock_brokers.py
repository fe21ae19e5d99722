"""librdkafka's own mock cluster: a broker in this process that can be taken away and told to refuse."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from collectors.kafka.records import Incoming
from pipeline.config.kafka import KafkaSettings

_PRODUCE = 0
_PRODUCER = 0
_BROKER = 1
_ANSWER_S = 30


def _library() -> Any:
    """The library that confluent_kafka has already loaded; the mock is part of it."""
    (path,) = (Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs").glob("librdkafka*")
    library = ctypes.CDLL(str(path))
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    for name, result, arguments in (
        ("rd_kafka_conf_new", pointer, []),
        ("rd_kafka_conf_set", number, [pointer, text, text, text, ctypes.c_size_t]),
        ("rd_kafka_new", pointer, [number, pointer, text, ctypes.c_size_t]),
        ("rd_kafka_destroy", None, [pointer]),
        ("rd_kafka_mock_cluster_new", pointer, [pointer, number]),
        ("rd_kafka_mock_cluster_destroy", None, [pointer]),
        ("rd_kafka_mock_cluster_bootstraps", text, [pointer]),
        ("rd_kafka_mock_topic_create", number, [pointer, text, number, number]),
        ("rd_kafka_mock_topic_set_error", None, [pointer, text, number]),
        ("rd_kafka_mock_broker_set_down", number, [pointer, number]),
        ("rd_kafka_mock_broker_set_up", number, [pointer, number]),
        ("rd_kafka_mock_broker_set_rtt", number, [pointer, number, number]),
        ("rd_kafka_mock_group_initial_rebalance_delay_ms", None, [pointer, ctypes.c_int32]),
        ("rd_kafka_test_fatal_error", number, [pointer, number, text]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_lib = _library()


class MockBrokers:
    """One broker. Topics are there when they are made, or first written to (with four partitions)."""

    def __init__(self, cluster: int) -> None:
        self._cluster = cluster
        servers: bytes = _lib.rd_kafka_mock_cluster_bootstraps(cluster)
        self.settings = KafkaSettings(brokers=(servers.decode(),))

    def topic(self, name: str, partitions: int) -> None:
        """Make a topic."""
        assert _lib.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1) == 0

    def deny(self, name: str, code: int) -> None:
        """Answer everything about a topic with an error."""
        _lib.rd_kafka_mock_topic_set_error(self._cluster, name.encode(), code)

    def refuse(self, *codes: int) -> None:
        """Answer the next produce requests with these errors."""
        _lib.rd_kafka_mock_push_request_errors(
            ctypes.c_void_p(self._cluster), ctypes.c_int16(_PRODUCE), ctypes.c_size_t(len(codes)), *map(ctypes.c_int, codes)
        )

    def delay(self, milliseconds: int) -> None:
        """Answer no sooner than this."""
        assert _lib.rd_kafka_mock_broker_set_rtt(self._cluster, _BROKER, milliseconds) == 0

    def down(self) -> None:
        """Close every connection and take no new one."""
        assert _lib.rd_kafka_mock_broker_set_down(self._cluster, _BROKER) == 0

    def up(self) -> None:
        """Be back."""
        assert _lib.rd_kafka_mock_broker_set_up(self._cluster, _BROKER) == 0

    def stored(self, topic: str, partitions: int) -> list[Incoming]:
        """Everything that is stored on a topic."""
        consumer = Consumer({"bootstrap.servers": self.settings.brokers[0], "group.id": "tests"})
        places = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
        try:
            ends = {place.partition: consumer.get_watermark_offsets(place, timeout=_ANSWER_S)[1] for place in places}
            consumer.assign(places)
            found: list[Incoming] = []
            while len(found) < sum(ends.values()):
                message = consumer.poll(_ANSWER_S)
                assert message is not None
                assert message.error() is None
                found.append(_incoming(message))
            return found
        finally:
            consumer.close()


def _incoming(message: Any) -> Incoming:
    taken_ns = message.timestamp()[1] * 1_000_000
    return Incoming(message.topic(), message.partition(), message.offset(), taken_ns, message.value(), tuple(message.headers()))


@contextmanager
def mock_brokers() -> Iterator[MockBrokers]:
    """Start one and end it."""
    problem = ctypes.create_string_buffer(512)
    conf = _lib.rd_kafka_conf_new()
    _lib.rd_kafka_conf_set(conf, b"log_level", b"0", problem, len(problem))
    handle = _lib.rd_kafka_new(_PRODUCER, conf, problem, len(problem))
    assert handle, problem.value
    cluster = _lib.rd_kafka_mock_cluster_new(handle, 1)
    _lib.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 100)
    try:
        yield MockBrokers(cluster)
    finally:
        _lib.rd_kafka_mock_cluster_destroy(cluster)
        _lib.rd_kafka_destroy(handle)


def break_for_good(producer: Producer) -> None:
    """Put a producer into the state from which librdkafka does not recover."""
    # The first thing in confluent_kafka's object, after what every Python object has, is librdkafka's.
    handle = ctypes.c_void_p.from_address(id(producer) + object.__basicsize__)
    _lib.rd_kafka_test_fatal_error(handle, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, b"for a test")
