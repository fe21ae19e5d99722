"""The receiver: bytes from a transport in, spans into a store, and a reply that promises no more than what was stored."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

from collectors.otlp.body import TooLargeError
from collectors.otlp.breadth import check_breadth
from collectors.otlp.decoding import Decoded, Refused
from collectors.otlp.in_flight import Hold, InFlight
from collectors.otlp.json_parts import strange
from collectors.otlp.keys import Keys
from collectors.otlp.quota import Quotas
from collectors.otlp.signal import AnySignal, Encoding, ItemStore, Reply
from collectors.otlp.values import at_most
from collectors.redaction.redactor import Redactor
from collectors.redaction.walk import Counts
from pipeline.config.receiver import MEBIBYTE, ReceiverSettings
from pipeline.errors import PermanentError, TemporaryError

_SLOW: Final = MEBIBYTE // 8
"""A body above this many bytes is decoded in a thread, so that health checks and small requests need not wait for it: one that is made
of secrets takes 2 µs a byte to redact."""
_LARGE: Final = MEBIBYTE
_DECODING: Final = 2
"""Large bodies, of more than a mebibyte, that are decoded at the same time: each is many times as large once it is decoded."""
_RETRY_AFTER_S: Final = 1.0


class Admitted:
    """A request that may be read: whose it is, and how many bytes of it are held."""

    __slots__ = ("hold", "project")

    def __init__(self, project: str, hold: Hold) -> None:
        self.project: Final = project
        self.hold: Final = hold


def _count_nothing(signal: AnySignal, read: Decoded[Any]) -> None:
    """Take the place of a counter where nobody counts."""


def _count_nothing_redacted(counts: Counts) -> None:
    """Take the place of a counter where nobody counts."""


def _keep_nothing(project: str, signal: AnySignal, encoding: Encoding, refused: Refused) -> None:
    """Take the place of dead letters where nobody keeps any."""


def _always_ready() -> str:
    """Take the place of health checks where there are none."""
    return ""


class Receiver:
    """What both transports and all signals share."""

    def __init__(
        self,
        stores: Mapping[AnySignal, ItemStore[Any]],
        clock: Callable[[], int],
        keys: Keys,
        settings: ReceiverSettings | None = None,
        *,
        trouble: Callable[[], str] = _always_ready,
        on_received: Callable[[AnySignal, Decoded[Any]], None] = _count_nothing,
        on_refused: Callable[[str, AnySignal, Encoding, Refused], None] = _keep_nothing,
        redactor: Redactor | None = None,
        on_redacted: Callable[[Counts], None] = _count_nothing_redacted,
    ) -> None:
        """Take where each signal is stored and the ``clock`` in ns.

        ``trouble`` says why nothing can be accepted now, if so; ``on_received`` hears what was read of each answered request, and
        ``on_refused`` of the project and the bytes of whatever was refused for good.
        Items are redacted before they are stored, where there is a ``redactor``; ``on_redacted`` hears what was replaced.
        """
        self.settings: Final = settings or ReceiverSettings()
        self.signals: Final = tuple(stores)
        self._stores = stores
        self._clock = clock
        self._keys = keys
        self._trouble = trouble
        self._on_received = on_received
        self._on_refused = on_refused
        self._redactor = redactor
        self._on_redacted = on_redacted
        self._quotas = Quotas(self.settings.quotas)
        self._in_flight = InFlight(self.settings.max_in_flight, shared=keys.shared)
        self._begun: set[asyncio.Timeout] = set()
        # A pool of its own: large bodies must not take the threads by which others talk to the store and the brokers.
        self._aside = ThreadPoolExecutor(_DECODING, thread_name_prefix="decode")
        self._stopping = False

    @property
    def open(self) -> bool:
        """Whether everybody gets in, without a key."""
        return self._keys.open

    @property
    def shared(self) -> bool:
        """Whether several projects send."""
        return self._keys.shared

    @property
    def in_flight(self) -> int:
        """Bytes of all requests that are being read or stored."""
        return self._in_flight.bytes

    def project(self, authorization: str | None) -> str:
        """Return the caller's project, or raise UnauthenticatedError."""
        return self._keys.project(authorization)

    @asynccontextmanager
    async def request(self, authorization: str | None, length: int = 0) -> AsyncIterator[Admitted]:
        """Admit a request before any of its body is read; ``length`` is what it says of its size, 0 where it says nothing.

        Raises:
            UnauthenticatedError: nobody knows the caller.
            QuotaError: the caller's project has sent too much.
            TemporaryError: nothing, or not this much, can be accepted now; also while it is being handled, when the process stops.
        """
        project = self._keys.project(authorization)
        self._refuse_in_trouble()
        self._quotas.check(project, self._clock())
        hold = self._in_flight.hold(project)
        hold.grow(min(length, self.settings.max_body))
        deadline = asyncio.timeout(None)
        try:
            async with deadline:
                self._begun.add(deadline)
                yield Admitted(project, hold)
        except TimeoutError:
            if deadline.expired():
                raise _stops() from None
            raise
        finally:
            self._begun.discard(deadline)
            hold.release()

    async def export(self, signal: AnySignal, body: bytes, encoding: Encoding, project: str) -> Reply:
        """Store the items of one request, decompressed; return once they are durable.

        Raises:
            PermanentError: the body is no OTLP request or holds too much, or the store will never take it.
            TemporaryError: the store cannot take it now, or the project has sent too much; nothing is acknowledged.
        """
        received_ns = self._clock()
        self._quotas.check(project, received_ns)
        self._quotas.take(project, "bytes", len(body), received_ns)
        try:
            if len(body) > _SLOW:
                loop, pool = asyncio.get_running_loop(), self._aside if len(body) > _LARGE else None
                read = await loop.run_in_executor(pool, self._read, signal, body, encoding, project, received_ns)
            else:
                read = self._read(signal, body, encoding, project, received_ns)
        except TooLargeError:
            raise  # nobody keeps what is too large to be read
        except PermanentError as error:
            self._on_refused(project, signal, encoding, Refused(str(error), body))
            raise
        accepted = len(read.items)
        self._quotas.take(project, "spans", accepted + read.rejected, received_ns)
        if accepted:
            await self._stores[signal].store(read.items)
        for refused in read.refused:  # after the store: what is sent again is refused again
            self._on_refused(project, signal, encoding, refused)
        self._on_received(signal, read)
        self._on_redacted(read.redacted)
        nothing = encoding is Encoding.JSON and not (accepted or read.rejected or read.ignored)
        return Reply(read.rejected, strange(body, signal.envelope) if nothing else read.message)

    def _read(self, signal: AnySignal, body: bytes, encoding: Encoding, project: str, received_ns: int) -> Decoded[Any]:
        with at_most(self.settings.max_values):
            body = check_breadth(signal, body, encoding, self.settings.max_spans)
            return signal.decoders[encoding](body, project, received_ns, self._redactor)

    def _refuse_in_trouble(self) -> None:
        if self._stopping:
            raise _stops()
        trouble = self._trouble()
        if trouble:
            raise TemporaryError(f"nothing is accepted now: {trouble}", _RETRY_AFTER_S)

    def stop(self, grace_s: float) -> None:
        """Accept nothing more, and give what is being read or stored so many seconds to end."""
        self._stopping = True
        until = asyncio.get_running_loop().time() + grace_s
        for deadline in self._begun:
            deadline.reschedule(until)


def _stops() -> TemporaryError:
    return TemporaryError("this process is stopping; send the request again", _RETRY_AFTER_S)
