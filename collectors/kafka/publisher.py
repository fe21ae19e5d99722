"""Publishing: nouns to a topic, and the spans of many requests together in few records."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar

import structlog

from collectors.kafka.records import Outgoing, SpansRecord, encode, partition_of
from collectors.otlp.encode import Part
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.model.topology import TRACES, Topic

HOLD_S: Final = 0.02
"""How long spans wait at most for others to travel with."""
IN_FLIGHT: Final = 64 * 1024 * 1024
"""Bytes that wait for the brokers, above which senders are asked to wait."""
_RETRY_AFTER_S: Final = 1.0
_MANY: Final = 64
"""From so many nouns on (a millisecond of work) they are encoded in a thread, so that the event loop need not wait for it."""
_MANY_PARTS: Final = 2048
"""The same of spans that are bytes already."""

Lane: TypeAlias = tuple[str, int]
"""Project and partition: what may share a record."""
Group: TypeAlias = list[Part]
"""The spans of one trace in one request."""

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger(__name__)


class Sender(Protocol):
    """Takes records to the brokers: :class:`~collectors.kafka.producer.KafkaProducer`."""

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Return when the brokers have acknowledged every record."""
        ...


class KafkaPublisher:
    """Hands records to the nodes that read a topic, through the brokers (:class:`~pipeline.model.topology.Publish`)."""

    def __init__(self, sender: Sender, partitions: Mapping[str, int]) -> None:
        """Take how many partitions each topic has, by name."""
        self._sender = sender
        self._partitions = partitions

    async def __call__(self, topic: Topic, records: Sequence[Any]) -> None:
        """Return when the brokers have acknowledged all of them.

        Raises:
            TemporaryError: not all of them are; publishing all of them again is safe.
            PermanentError: one of them can never be sent; nothing is.
            ConfigurationError: the topic is not there.
        """
        partitions = self._partitions.get(topic.name)
        if not partitions:
            raise ConfigurationError(f"there is no topic {topic.name}; make it with `tracegrade topics create`")
        await self._sender.send(await _aside(len(records) >= _MANY, encode, topic, records, partitions))


class SpanBatcher:
    """The receiver's span store where a broker is behind it: each request is answered when all its spans are acknowledged.

    While nothing is in flight, spans leave at once. While something is, they gather until it has arrived, until their record is full,
    or for :data:`HOLD_S`, whichever is first.
    """

    def __init__(self, sender: Sender, partitions: int, *, limit: int = IN_FLIGHT) -> None:
        """Take the partitions of the traces topic; above ``limit`` bytes that are not acknowledged, senders are asked to wait."""
        self._sender = sender
        self._partitions = partitions
        self._limit = limit
        self._open: dict[Lane, _Batch] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._bytes = 0
        """Of all batches, those that gather and those in flight."""
        self._leaving: asyncio.Handle | None = None
        """What will send the open batches, if nothing does before."""

    @property
    def waiting(self) -> int:
        """Bytes that are not acknowledged."""
        return self._bytes

    async def store(self, spans: Sequence[Part]) -> None:
        """Return when the brokers have all of these spans.

        Raises:
            TemporaryError: some of them are not acknowledged, or too much waits for the brokers; sending all of them again is safe.
            PermanentError: one of them can never be sent.
        """
        if not spans:
            return
        if self._bytes >= self._limit:
            raise _full()
        groups = await _aside(len(spans) >= _MANY_PARTS, _groups, spans, self._partitions)
        size = sum(len(part.span) for part in spans)
        # A request that is larger than the limit is taken when there is nothing else.
        if self._bytes and self._bytes + size > self._limit:
            raise _full()
        batches = {batch for lane, group in groups for batch in self._join(lane, group)}
        await asyncio.wait([batch.done for batch in batches])
        _raise_any([batch.done.exception() for batch in batches])

    def _join(self, lane: Lane, group: Group) -> "list[_Batch]":
        """Put the spans of a trace into the record that gathers, if all of them fit, or else into as few new ones as they need."""
        gathering = self._open.get(lane)
        if gathering is not None and not gathering.record.has_room(group):
            self._send(lane)
        joined: list[_Batch] = []
        for piece in [group] if SpansRecord(*lane).has_room(group) else [[part] for part in group]:
            batch = self._open.get(lane)
            if batch is not None and not batch.record.has_room(piece):
                self._send(lane)
                batch = None
            if batch is None:
                batch = self._open[lane] = _Batch(SpansRecord(*lane))
                self._leave()
            before = batch.record.size
            for part in piece:
                batch.record.add(part)
            self._bytes += batch.record.size - before
            joined.append(batch)
        if joined[-1].record.full:
            self._send(lane)
        return joined

    def _leave(self) -> None:
        """See to it that what gathers leaves in time."""
        if self._leaving is None:
            loop = asyncio.get_running_loop()
            # Not even then at this very moment: what else arrives in this turn of the loop travels along.
            self._leaving = loop.call_later(HOLD_S, self._send_all) if self._sending else loop.call_soon(self._send_all)

    def _send_all(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        for lane in list(self._open):
            self._send(lane)

    def _send(self, lane: Lane) -> None:
        self._sending.add(asyncio.ensure_future(self._deliver(self._open.pop(lane))))

    async def _deliver(self, batch: "_Batch") -> None:
        try:
            await self._sender.send([batch.record.outgoing()])
        except (TemporaryError, PermanentError, ConfigurationError) as error:
            batch.fail(error)
        else:
            batch.done.set_result(None)
        finally:
            if not batch.done.done():
                batch.fail(TemporaryError("sending was interrupted", _RETRY_AFTER_S))
            self._bytes -= batch.record.size
            self._sending.discard(asyncio.current_task())
            if not self._sending:
                self._send_all()


class _Batch:
    """A record that gathers, and the answer to those who have spans in it."""

    __slots__ = ("done", "record")

    def __init__(self, record: SpansRecord) -> None:
        self.record: Final = record
        self.done: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        # Senders that hung up do not ask; that is no error of ours.
        self.done.add_done_callback(lambda done: done.cancelled() or done.exception())

    def fail(self, error: TemporaryError | PermanentError | ConfigurationError) -> None:
        """Answer with what is wrong. Senders drop what failed for good: so only one span alone does, never what shares a record with it."""
        if isinstance(error, TemporaryError) or (isinstance(error, PermanentError) and self.record.spans == 1):
            self.done.set_exception(error)
            return
        log.error("spans_not_sent", reason=str(error))
        self.done.set_exception(TemporaryError(str(error), _RETRY_AFTER_S))


def _groups(spans: Sequence[Part], partitions: int) -> list[tuple[Lane, Group]]:
    """Return the spans of a request by trace, with the lane of each.

    Raises:
        PermanentError: the project of one of them is not Unicode.
    """
    groups: dict[tuple[str, str], Group] = {}
    for part in spans:
        groups.setdefault((part.project, part.trace_id), []).append(part)
    return [((project, partition_of(TRACES, group[0], partitions)), group) for (project, _), group in groups.items()]


async def _aside(much: bool, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return what the function returns; where it has much to do, the event loop need not wait for it."""
    if much:
        return await asyncio.to_thread(function, *arguments, **named)
    return function(*arguments, **named)


def _full() -> TemporaryError:
    return TemporaryError("more waits for the brokers than there is room for", _RETRY_AFTER_S)


def _raise_any(errors: Sequence[BaseException | None]) -> None:
    """Raise what failed, if anything did. What may yet work is told before what never will: the request is sent again, and asks again."""
    for error in errors:
        if isinstance(error, TemporaryError):
            raise TemporaryError(str(error), error.retry_after) from error
    for error in errors:
        if isinstance(error, PermanentError):
            raise PermanentError(str(error)) from error
