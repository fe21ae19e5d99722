"""Bridging: foreign records to spans on the traces topic, and not one of them acknowledged before it is there (promise 1).

Records are carried side by side. What a record comes to is with the brokers before the record is done; what cannot be read of it is kept
as dead letters first. Temporary trouble is waited out here, while the source keeps its membership.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import structlog

from collectors.kafka.bridge_consumer import Arrived
from collectors.kafka.bridge_records import Carried, ForeignRecord, Named, read
from collectors.kafka.bridge_share import SEEN
from collectors.otlp.decoding import Refused
from collectors.otlp.encode import Part
from collectors.redaction.redactor import Redactor
from pipeline.errors import ConfigurationError, PermanentError
from pipeline.runtime.clock import Clock
from pipeline.runtime.dead_letters import Keep, a_letter, masked_by
from pipeline.runtime.guard import or_dead_letter, until_it_works
from pipeline.runtime.telemetry import Metric, Telemetry

NODE: Final = "bridge"
DRAIN_S: Final = 5.0
"""Seconds that what is under way is given at a stop; what is not done by then is carried again by whoever reads there next."""
LARGE: Final = 256 * 1024
"""A record above this many bytes is read in a thread, so that acknowledgements need not wait for it."""

log = structlog.get_logger(__name__)


class TooManyBadError(ConfigurationError):
    """Most of what is read cannot be read: a person has to look before any more of it is buried."""


class Source(Protocol):
    """Where records come from: :class:`~collectors.kafka.bridge_consumer.BridgeConsumer`."""

    async def take(self, *, hold: bool) -> list[Arrived]:
        """Return what is there; nothing new while ``hold``."""
        ...


class SpanStore(Protocol):
    """Where spans go: :class:`~collectors.kafka.publisher.SpanBatcher`."""

    async def store(self, spans: Sequence[Part]) -> None:
        """Return when all of them are durable."""
        ...


def _watch_nothing() -> None:
    """Take the place of a watch where nobody watches."""


class Bridge:
    """Carries records from a source, with an end to what is under way at once."""

    def __init__(
        self,
        source: Source,
        projects: Mapping[str, str],
        store: SpanStore,
        keep: Keep,
        clock: Clock,
        telemetry: Telemetry,
        *,
        encoding: Named = "auto",
        in_flight: int,
        redactor: Redactor | None = None,
        watch: Callable[[], None] = _watch_nothing,
    ) -> None:
        """Take the project of each topic, by its name, and how many bytes may be under way. Spans and letters are redacted by ``redactor``.

        ``watch`` is called some times a second, whatever comes.
        """
        self._source = source
        self._projects = projects
        self._store = store
        self._keep = keep
        self._clock = clock
        self._telemetry = telemetry
        self._encoding = encoding
        self._limit = in_flight
        self._redactor = redactor
        self._watch = watch
        self._under_way: set[asyncio.Task[None]] = set()
        self._bytes = 0
        self._held = False
        self.progressed_ns = clock.now()
        """When a record was done last, or nothing waited to be."""

    async def run(self, stop: asyncio.Event) -> None:
        """Carry until told to stop, and then what is under way.

        Raises:
            TooManyBadError: most of what is read cannot be; nothing after it is touched.
            ConfigurationError: a topic is not there, or not to be read or written.
            TemporaryError: the source gives up.
        """
        try:
            while not stop.is_set():
                for arrived in await self._source.take(hold=self._hold()):
                    await self._begin(arrived)
                self._raise_what_failed()
                self._watch()
                if not self._under_way:
                    self.progressed_ns = self._clock.now()
        finally:
            await self._drain()

    def _hold(self) -> bool:
        """Once there is too much under way, until half of it is done."""
        self._held = self._bytes >= (self._limit // 2 if self._held else self._limit)
        return self._held

    def _raise_what_failed(self) -> None:
        for task in [task for task in self._under_way if task.done()]:
            self._under_way.discard(task)
            task.result()

    async def _drain(self) -> None:
        """The source is polled meanwhile: what it is not asked for, a group takes away."""
        until = asyncio.get_running_loop().time() + DRAIN_S
        while any(not task.done() for task in self._under_way) and asyncio.get_running_loop().time() < until:
            await self._source.take(hold=True)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _begin(self, arrived: Arrived) -> None:
        """Read a record, in the order in which they came, and carry it beside the others."""
        carried = await self._read(arrived.record)
        if not arrived.share.note(bad=carried.bad):
            raise TooManyBadError(_too_many(arrived, carried))
        mark = arrived.share.mark
        self._bytes += arrived.record.size
        self._under_way.add(asyncio.create_task(self._carry(arrived, carried, mark)))

    async def _read(self, record: ForeignRecord) -> Carried:
        reasons: list[str] = []
        project, now = self._projects[record.topic], self._clock.now()

        def attempt() -> Carried | None:
            return or_dead_letter(lambda: read(record, project, self._encoding, now, self._redactor), reasons.append)

        carried = await asyncio.to_thread(attempt) if record.size > LARGE else attempt()
        return carried or Carried(refused=(Refused(reasons[0], record.value or b""),))

    async def _carry(self, arrived: Arrived, carried: Carried, mark: str) -> None:
        record = arrived.record
        try:
            for refused in carried.refused:
                await self._bury(record, refused)
            spans = await self._publish(record, carried.spans)
            arrived.taken.finish(mark)
        finally:
            self._bytes -= record.size
        self.progressed_ns = self._clock.now()
        self._telemetry.received(spans, carried.rejected + len(carried.spans) - spans)
        self._telemetry.truncated(carried.truncated)
        self._telemetry.redacted(carried.redacted)
        self._telemetry.add(Metric.BRIDGE_RECORDS, outcome="refused" if carried.bad else "carried")

    async def _publish(self, record: ForeignRecord, spans: Sequence[Part]) -> int:
        """Return how many of the spans the brokers have; one that they never take costs no other span its place."""
        try:
            await until_it_works("carry spans", lambda: self._store.store(spans))
        except PermanentError as error:
            if len(spans) > 1:
                half = len(spans) // 2
                return await self._publish(record, spans[:half]) + await self._publish(record, spans[half:])
            await self._bury(record, Refused(str(error), record.value or b""))
            return 0
        return len(spans)

    async def _bury(self, record: ForeignRecord, refused: Refused) -> None:
        letter = a_letter(
            self._projects[record.topic],
            f"{NODE}: {record.origin}",
            refused.reason,
            refused.body,
            record.timestamp_ns,
            headers=record.headers,
            key=record.key,
            mask=masked_by(self._redactor),
        )
        log.error("dead letter", origin=letter.origin, reason=letter.reason)
        await until_it_works("keep a dead letter", lambda: self._keep([letter]))
        self._telemetry.dead_letter(NODE)


def _too_many(arrived: Arrived, carried: Carried) -> str:
    record, reason = arrived.record, carried.refused[0].reason
    return (
        f"of the last {SEEN} records of {record.topic}[{record.partition}] {arrived.share.bad} could not be read, and {record.origin} cannot"
        f" be either ({reason}); nothing more is read, and nothing from there on is acknowledged. Mend what writes there, write its"
        " bridge.encoding, or update tracegrade; bridge.bad_share: 1 takes what is there to the dead letters, all of it"
    )
