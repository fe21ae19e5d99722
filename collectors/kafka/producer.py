"""The producer: records out, and an answer only when the brokers have them all.

librdkafka reports deliveries to the thread that polls it. That thread collects what one poll reports and wakes the event loop once.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from collectors.kafka.client import client_options
from collectors.kafka.records import LARGEST_RECORD, Outgoing
from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.model.topology import TRACES

DELIVERY_S: Final = 30.0
"""How long a record may stay without an acknowledgement, retries included."""
_RETRY_AFTER_S: Final = 1.0
_POLL_S: Final = 0.1
"""How long a poll waits for something to report, and so how long a producer may take to notice that it is retired."""
_PURGE_S: Final = 1.0
_CLOSE_S: Final = 10.0
_PING_S: Final = 2.0

_OPTIONS: Final[dict[str, Any]] = {
    "enable.idempotence": True,
    "acks": "all",
    "compression.type": "lz4",
    "linger.ms": 2,  # spans were batched before; this is for the records of one tick
    "message.max.bytes": LARGEST_RECORD,
    # A broker that takes less than LARGEST_RECORD refuses all that is in a batch; so a record that is large alone travels alone.
    "batch.size": 1_000_000,
    "queue.buffering.max.kbytes": 256 * 1024,
    "topic.metadata.propagation.max.ms": 5000,  # a topic that is not known after this is not there
    "reconnect.backoff.max.ms": 1000,  # soon back, however long the brokers were away
    "socket.keepalive.enable": True,
}
_TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_MISSING: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})  # noqa: SLF001
_FATAL: Final = KafkaError._FATAL  # noqa: SLF001
_FORBIDDEN: Final = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})

log = structlog.get_logger(__name__)


class KafkaProducer:
    """An idempotent producer with acks=all. After an error from which librdkafka does not recover there is a new one in its place."""

    def __init__(self, settings: KafkaSettings, environment: Mapping[str, str], *, delivery_s: float = DELIVERY_S) -> None:
        """Connect to nothing yet. A record that is not acknowledged after ``delivery_s`` seconds has failed.

        Raises:
            ConfigurationError: see :func:`~collectors.kafka.client.client_options`.
        """
        limit = {"delivery.timeout.ms": int(delivery_s * 1000)}
        self._options: Final = client_options(settings, environment) | _OPTIONS | limit
        self._session: _Session | None = None

    async def __aenter__(self) -> Self:
        """Start.

        Raises:
            ConfigurationError: librdkafka does not take these settings.
        """
        self._session = self._new_session()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give what was sent ten seconds to be acknowledged; what is not fails with TemporaryError."""
        session, self._session = self._session, None
        if session is not None:
            session.retire(_CLOSE_S)
            await asyncio.to_thread(session.thread.join)

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Return when the brokers have acknowledged every record.

        Raises:
            TemporaryError: not all of them are acknowledged, and some of them may be stored; sending all of them again is safe.
            PermanentError: a topic never takes a record this large.
            ConfigurationError: a topic or a partition is not there, or must not be written to.
        """
        if not outgoing:
            return
        delivery = _Delivery(len(outgoing), asyncio.get_running_loop().create_future())
        for record in outgoing:
            self._produce(record, delivery)
        await delivery.done

    async def ping(self) -> str:
        """Return how many brokers there are, as one of them says now.

        Raises:
            TemporaryError: none answers.
        """
        session = self._session
        if session is None:
            raise TemporaryError("the producer is closed", _RETRY_AFTER_S)
        try:
            brokers = await asyncio.to_thread(session.brokers, _PING_S)
        except KafkaException as error:
            raise TemporaryError(f"no broker answers: {error.args[0]}", _RETRY_AFTER_S) from error
        return f"{brokers} brokers"

    def _produce(self, record: Outgoing, delivery: "_Delivery") -> None:
        session = self._session
        if session is None:
            raise TemporaryError("the producer is closed", _RETRY_AFTER_S)
        try:
            session.produce(record, delivery)
        except BufferError as error:
            raise TemporaryError("more waits for the brokers than there is room for", _RETRY_AFTER_S) from error
        except KafkaException as error:
            cause: KafkaError = error.args[0]  # type: ignore[assignment] # the stubs leave open what is always there
            if cause.fatal() or cause.code() == _FATAL:
                self._replace(session, cause)
            raise failure(cause, record.topic, record.partition) from error

    def _new_session(self) -> "_Session":
        try:
            return _Session(self._options, asyncio.get_running_loop(), self._replace)
        except KafkaException as error:
            raise ConfigurationError(f"kafka: these settings do not work together: {error.args[0]}") from error

    def _replace(self, session: "_Session", cause: KafkaError) -> None:
        """Put a new producer in the place of one that takes no more; what it has not delivered fails with TemporaryError."""
        if self._session is session:
            log.error("producer_replaced", code=cause.name(), reason=cause.str())
            self._session = self._new_session()
            session.retire(0)


class _Delivery:
    """The records of one call that are not reported on yet."""

    __slots__ = ("_error", "_left", "done")

    def __init__(self, records: int, done: "asyncio.Future[None]") -> None:
        self.done: Final = done
        self._left = records
        self._error: Exception | None = None

    def report(self, error: Exception | None) -> None:
        """Take note of one record; the call is answered after the last. What may yet work is told before what never will."""
        if error is not None and not isinstance(self._error, TemporaryError):
            self._error = error
        self._left -= 1
        if self._left or self.done.done():
            return
        if self._error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(self._error)


_Report: TypeAlias = tuple[_Delivery, Exception | None]


class _Session:
    """One librdkafka producer and the thread that polls it, until it is retired."""

    def __init__(
        self,
        options: Mapping[str, Any],
        loop: asyncio.AbstractEventLoop,
        on_fatal: "Callable[[_Session, KafkaError], None]",
    ) -> None:
        self._loop = loop
        self._on_fatal = on_fatal
        self._reports: list[_Report] = []
        """Touched by the polling thread only, which is where librdkafka calls back."""
        self._retired = threading.Event()
        self._grace_s = 0.0
        self._producer = Producer({**options, "error_cb": self._hear})
        self.thread: Final = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self.thread.start()

    def produce(self, record: Outgoing, delivery: _Delivery) -> None:
        """Queue a record."""

        def reported(error: KafkaError | None, _: Message) -> None:
            self._reports.append((delivery, None if error is None else failure(error, record.topic, record.partition)))

        self._producer.produce(
            record.topic, record.value, partition=record.partition, headers=list(record.headers), on_delivery=reported
        )

    def brokers(self, seconds: float) -> int:
        """Return how many brokers there are; raises KafkaException where none says so in time. Blocks."""
        return len(self._producer.list_topics(topic=TRACES.name, timeout=seconds).brokers)

    def retire(self, grace_s: float) -> None:
        """Let the thread end: after what is queued is delivered, or after so many seconds."""
        self._grace_s = grace_s
        self._retired.set()

    def _run(self) -> None:
        while not self._retired.is_set():
            self._poll(_POLL_S)
        self._drain(self._grace_s)
        self._producer.purge()
        self._drain(_PURGE_S)
        del self._producer  # closes its connections, which takes a moment, here and not in the event loop

    def _drain(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while len(self._producer) and time.monotonic() < until:
            self._poll(_POLL_S)

    def _poll(self, seconds: float) -> None:
        try:
            self._producer.poll(seconds)
        except KafkaException as error:  # how it hands over what it does not recover from
            self._call(self._on_fatal, self, error.args[0])
        self._hand_over()

    def _hand_over(self) -> None:
        if self._reports:
            reports, self._reports = self._reports, []
            self._call(_settle, reports)

    def _hear(self, error: KafkaError) -> None:
        log.warning("brokers", code=error.name(), reason=error.str())

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(function, *arguments)


def _settle(reports: Sequence[_Report]) -> None:
    for delivery, error in reports:
        delivery.report(error)


def failure(error: KafkaError, topic: str, partition: int) -> TemporaryError | PermanentError | ConfigurationError:
    """Return what a record's error means: whether to send again, to give up, or to tell the person who runs the brokers."""
    code, said = error.code(), error.str()
    if code in _TOO_LARGE:
        return PermanentError(
            f"{topic} takes no record this large ({said}); set max.message.bytes of the topic to {LARGEST_RECORD}"
        )
    if code in _MISSING:
        return ConfigurationError(
            f"there is no partition {partition} of {topic} ({said}); make the topics with `tracegrade topics create`,"
            " and start again if their partitions have changed"
        )
    if code in _FORBIDDEN:
        return ConfigurationError(
            f"the user of kafka.username must not write to {topic} ({said}); allow WRITE on it and IDEMPOTENT_WRITE"
        )
    return TemporaryError(f"the brokers have not acknowledged a record of {topic}: {said}", _RETRY_AFTER_S)
