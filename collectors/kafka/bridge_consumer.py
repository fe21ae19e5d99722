"""The bridge's consumer: reads foreign topics as a member of a group, and commits what is done.

One thread polls, always: so the member keeps its partitions however long brokers or store are away. What it must not read yet it pauses.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from collectors.kafka.aside import Aside
from collectors.kafka.bridge_offsets import Committable, Offsets, Place, Taken
from collectors.kafka.bridge_records import ForeignRecord
from collectors.kafka.bridge_share import BadShare
from collectors.kafka.client import client_options
from collectors.kafka.cluster import REFUSALS
from collectors.kafka.lag import BRIDGES
from pipeline.config.bridge import BridgeSettings
from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError, TemporaryError

POLL_S: Final = 0.1
COMMIT_S: Final = 1.0
"""Seconds between commits: what was carried in between is carried again after a kill, and stored once."""
CLOSE_S: Final = 5.0
MOST: Final = 200
"""Records of one look."""
LOOK_BYTES: Final = 4 * 1024 * 1024
"""Bytes after which a look ends; one record more than that can come."""
_MS_NS: Final = 1_000_000
_REMEMBER_S: Final = 10.0

log = structlog.get_logger(__name__)


class Arrived(NamedTuple):
    """A record, its place in the order of its partition, and what is known of the records before it."""

    record: ForeignRecord
    taken: Taken
    share: BadShare


def _count_nothing(deleted: int) -> None:
    """Take the place of a counter where nobody counts."""


class BridgeConsumer:
    """One member of the bridges' group."""

    def __init__(
        self,
        settings: KafkaSettings,
        bridge: BridgeSettings,
        topics: Iterable[str],
        environment: Mapping[str, str],
        *,
        on_deleted: Callable[[int], None] = _count_nothing,
    ) -> None:
        """Connect to nothing yet. ``on_deleted`` hears how many records the brokers had deleted before they were read.

        Raises:
            ConfigurationError: see :func:`~collectors.kafka.client.client_options`, or librdkafka does not take these settings.
        """
        self._on_deleted = on_deleted
        self._bad_share = bridge.bad_share
        self._topics = list(topics)
        self._offsets = Offsets()
        self._shares: dict[Place, BadShare] = {}
        self._next: dict[Place, int] = {}
        """The offset that each assigned partition is to give next, where that is known."""
        self._due: dict[Place, Committable] = {}
        """What can be committed and is not confirmed."""
        self._committed_at = 0.0
        self._held = False
        self._aside = Aside("bridge-consumer")
        self.lag: dict[Place, int] = {}
        """Records that are there and not committed, by assigned partition."""
        self.oldest_unread: dict[Place, int] = {}
        """When the first record under way was written, in ns, by partition that has one."""
        self.joined = False
        """Whether the group has assigned partitions, of which there may be none."""
        try:
            self._consumer: Any = Consumer(client_options(settings, environment) | self._options(settings))
        except KafkaException as error:
            raise ConfigurationError(f"kafka: these settings do not work together: {error.args[0]}") from error

    def _options(self, settings: KafkaSettings) -> dict[str, Any]:
        return {
            "group.id": BRIDGES,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",  # a new bridge reads what waits for it, and one that comes too late what is left
            "session.timeout.ms": settings.session_timeout // _MS_NS,
            "queued.max.messages.kbytes": 16 * 1024,
            "fetch.message.max.bytes": 8 * 1024 * 1024,
            "reconnect.backoff.max.ms": 1000,
            "socket.keepalive.enable": True,
            "error_cb": self._hear,
            "on_commit": self._confirmed,
        }

    @property
    def owned(self) -> int:
        """How many partitions are assigned."""
        return len(self._shares)

    # For the event loop

    async def start(self) -> None:
        """Join the group."""
        await self._aside.call(
            self._consumer.subscribe, self._topics, on_assign=self._gained, on_revoke=self._losing, on_lost=self._lost
        )

    async def take(self, *, hold: bool) -> list[Arrived]:
        """Return what is there, after a tenth of a second where nothing is. While ``hold``, nothing new is, and the membership stays.

        Raises:
            ConfigurationError: a topic must not be read, or is not there.
            TemporaryError: the client gives up; another one may not have to.
        """
        return await self._aside.call(self._take, hold)

    async def close(self) -> None:
        """Commit what is done, and leave the group; brokers that do not answer notice by themselves that the member is gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._aside.call(self._close)

    # In the thread that polls

    def _take(self, hold: bool) -> list[Arrived]:
        if time.monotonic() - self._committed_at >= COMMIT_S:
            self._commit(wait=False)
        self._hold(hold)
        arrived: list[Arrived] = []
        size = 0
        while len(arrived) < MOST and size < LOOK_BYTES:
            message = self._consumer.poll(0 if arrived else POLL_S)
            if message is None:
                break
            if message.error() is not None:
                self._refuse(message.error())
                continue
            arrived.append(self._arrived(message))
            size += arrived[-1].record.size
        return arrived

    def _hold(self, hold: bool) -> None:
        """Pause what is assigned, or go on; partitions that came in between are told too."""
        if hold:
            self._consumer.pause(self._consumer.assignment())
        elif self._held:
            self._consumer.resume(self._consumer.assignment())
        self._held = hold

    def _arrived(self, message: Message) -> Arrived:
        record = _record(message)
        place = record.topic, record.partition
        self._look_for_a_gap(place, record.offset)
        self._next[place] = record.offset + 1
        taken = Taken(record.offset, record.timestamp_ns)
        self._offsets.took(place, taken)
        return Arrived(record, taken, self._shares.setdefault(place, BadShare(self._bad_share)))

    def _look_for_a_gap(self, place: Place, offset: int) -> None:
        """Tell of records that were deleted before anybody read them (reliability R76). Other gaps are of transactions."""
        expected = self._next.get(place, offset)
        if offset <= expected:
            return
        earliest, _ = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
        if earliest > expected:
            gone = min(earliest, offset) - expected
            self._on_deleted(gone)
            log.error("records were deleted unread", topic=place[0], partition=place[1], count=gone)

    def _refuse(self, error: KafkaError) -> None:
        said = f"{error.str()} ({error.name()})"
        if error.name() in REFUSALS:
            raise ConfigurationError(
                f"the brokers refuse: {said}; allow READ on the topics of bridge.topics and on the group {BRIDGES}"
            )
        if error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART):  # noqa: SLF001
            raise ConfigurationError(f"a topic of bridge.topics is not there: {said}; make it, or write another")
        if error.fatal():
            raise TemporaryError(f"the client of the brokers has given up: {said}")
        log.warning("brokers", code=error.name(), reason=error.str())

    def _hear(self, error: KafkaError) -> None:
        log.warning("brokers", code=error.name(), reason=error.str())

    # What the group says

    def _gained(self, consumer: Any, partitions: Sequence[TopicPartition]) -> None:
        try:
            known = consumer.committed(partitions, timeout=_REMEMBER_S)
        except KafkaException as error:
            log.warning("what was remembered is not known", reason=str(error))
            known = partitions
        for one in known:
            place = one.topic, one.partition
            self._shares[place] = BadShare(self._bad_share, one.metadata or "")
            if one.offset >= 0:
                self._next[place] = one.offset
        self.joined = True
        log.info("partitions owned", partitions=sorted(f"{one.topic}[{one.partition}]" for one in partitions))

    def _losing(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        """Commit before others begin to read there; what is under way they read again."""
        self._commit(wait=True)
        self._lost(_, partitions)

    def _lost(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        places = [(one.topic, one.partition) for one in partitions]
        self._offsets.forget(places)
        for place in places:
            for known in (self._shares, self._next, self._due, self.lag, self.oldest_unread):
                known.pop(place, None)

    def _commit(self, *, wait: bool) -> None:
        self._committed_at = time.monotonic()
        self._due |= self._offsets.committable()
        self._look()
        if not self._due:
            return
        offsets = [TopicPartition(*place, due.offset, due.mark) for place, due in self._due.items()]
        try:
            confirmed = self._consumer.commit(offsets=offsets, asynchronous=not wait)
        except KafkaException as error:
            log.warning("not committed", reason=str(error))
        else:
            self._confirmed(None, confirmed or ())  # an answer that is not waited for comes with a later poll

    def _confirmed(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        """What was not confirmed is committed again, with what has come to it."""
        if error is not None:
            log.warning("not committed", reason=error.str())
            return
        for one in offsets:
            due = self._due.get((one.topic, one.partition))
            if one.error is None and due is not None and due.offset <= one.offset:
                del self._due[one.topic, one.partition]

    def _look(self) -> None:
        """See how far behind the partitions are."""
        lag: dict[Place, int] = {}
        for place, position in self._next.items():
            _, end = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
            lag[place] = max(0, end - position) + self._offsets.under_way(place)
        self.lag = lag
        self.oldest_unread = self._offsets.oldest()

    def _close(self) -> None:
        self._commit(wait=True)
        self._consumer.close()


def _record(message: Message) -> ForeignRecord:
    kind, timestamp = message.timestamp()
    return ForeignRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp_ns=timestamp * _MS_NS if kind else 0,
        value=message.value(),
        key=message.key(),
        headers=tuple((name, value or b"") for name, value in message.headers() or ()),
    )
