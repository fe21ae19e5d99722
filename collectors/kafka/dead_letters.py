"""The topic of dead letters, read from its beginning to its present end."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from collectors.kafka.client import client_options
from collectors.kafka.cluster import Cluster
from collectors.kafka.records import Incoming, decode
from collectors.kafka.topics import partitions_of
from pipeline.config.kafka import KafkaSettings
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.dead_letter import LetterSummary, summary
from pipeline.model.topology import DEAD_LETTERS, DeadLetter

PATIENCE_S: Final = 30.0
"""For the next record, where the brokers say that there is one."""
FETCH_WAIT_MS: Final = 20
"""All that is read is there: a fetch that waits for more holds up the next letter, which is elsewhere, by half a second."""

log = structlog.get_logger(__name__)


class _Place(NamedTuple):
    """Where a letter lies."""

    partition: int
    offset: int


class TopicLetters:
    """What is on the topic when it is opened. Lists are in memory; bytes are read again when they are asked for."""

    def __init__(self, settings: KafkaSettings, environment: Mapping[str, str]) -> None:
        """Read the topic once.

        Raises:
            ConfigurationError: the topic is not there, or not to be read.
            TemporaryError: the brokers do not answer.
        """
        count = partitions_of(Cluster(settings, environment))[DEAD_LETTERS.name]
        options = {
            "group.id": f"tracegrade.dead-letters.{uuid4().hex}",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": FETCH_WAIT_MS,
        }
        self._consumer: Any = Consumer(client_options(settings, environment) | options)
        self.summaries: dict[str, LetterSummary] = {}
        """By id: a letter that was published twice is one."""
        self._places: dict[str, _Place] = {}
        try:
            for partition in range(count):
                for place, letter in self._of_partition(partition):
                    self.summaries[letter.id] = summary(letter)
                    self._places[letter.id] = place
        except BaseException:
            self._consumer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._consumer.close()

    def letter(self, letter_id: str) -> DeadLetter | None:
        """Return a letter with its bytes; None where it is not on the topic, or no more."""
        place = self._places.get(letter_id)
        if place is None:
            return None
        found = self._read(place.partition, place.offset, place.offset + 1)
        return next((letter for _, letter in found if letter.id == letter_id), None)

    def _of_partition(self, partition: int) -> Iterator[tuple[_Place, DeadLetter]]:
        where = TopicPartition(DEAD_LETTERS.name, partition)
        try:
            first, end = self._consumer.get_watermark_offsets(where, timeout=PATIENCE_S)
        except KafkaException as error:
            raise TemporaryError(f"the dead letters cannot be read: {error}") from error
        return self._read(partition, first, end)

    def _read(self, partition: int, at: int, end: int) -> Iterator[tuple[_Place, DeadLetter]]:
        self._consumer.assign([TopicPartition(DEAD_LETTERS.name, partition, at)])
        while at < end:
            message = self._consumer.poll(PATIENCE_S)
            if message is None or message.error() is not None:
                why = f"no record within {PATIENCE_S:.0f} s" if message is None else message.error().str()
                raise TemporaryError(f"the dead letters cannot be read: {why}")
            at = message.offset() + 1
            for letter in _letters(message):
                yield _Place(partition, message.offset()), letter


def _letters(message: Any) -> Iterator[DeadLetter]:
    headers = tuple((name, value or b"") for name, value in message.headers() or ())
    incoming = Incoming(message.topic(), message.partition(), message.offset(), 0, message.value() or b"", headers)
    try:
        yield from decode(incoming).records
    except PermanentError as error:  # somebody else wrote there
        log.warning("not a dead letter", partition=message.partition(), offset=message.offset(), reason=str(error))
