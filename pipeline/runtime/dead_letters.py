"""Dead letters: what could not be processed, made fit to be kept, and kept while there is room (promise 7).

Whoever has a store writes them to its table, and whoever has brokers to their topic (docs/kafka.md); no one else is told.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Self

import structlog

from collectors.otlp.decoding import Refused
from collectors.otlp.signal import AnySignal, Encoding
from collectors.redaction.redactor import Redactor
from pipeline.model.time import MINUTE
from pipeline.model.topology import DEAD_LETTERS, LARGEST_BODY, DeadLetter, Publish
from pipeline.runtime.clock import Clock
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.telemetry import Telemetry

BURST: Final = 16 * 1024 * 1024
A_MINUTE: Final = 1024 * 1024
"""Bytes of refused requests that one receiver keeps: a burst at once, then so many a minute, which is 10 GB in a week."""
A_LETTER: Final = 1024
"""Bytes that a letter takes beside its body, for that account."""
GRACE_S: Final = 5.0
"""Seconds that letters are given at a stop."""
_LONGEST_REASON: Final = 2000
_LONGEST_HEADER: Final = 4096
_MOST_HEADERS: Final = 64

Headers = Sequence[tuple[str, bytes]]
Keep = Callable[[Sequence[DeadLetter]], Awaitable[None]]
"""Returns when the letters are durable; TemporaryError where it may work later."""

log = structlog.get_logger(__name__)


def as_it_is(body: bytes) -> bytes:
    """Mask nothing."""
    return body


def masked_by(redactor: Redactor | None) -> Callable[[bytes], bytes]:
    """Return what masks the bytes of a letter: at their length, so that they can still be read as what they are."""
    return redactor.mask if redactor is not None else as_it_is


def a_letter(
    project: str,
    origin: str,
    reason: str,
    body: bytes,
    received_ns: int,
    *,
    headers: Headers = (),
    key: bytes | None = None,
    mask: Callable[[bytes], bytes] = as_it_is,
) -> DeadLetter:
    """Return a letter that can be kept: secrets masked, and nothing of it larger than what a record takes."""
    kept = body[:LARGEST_BODY]
    shown = mask(kept)
    cut = f" (of {len(body)} bytes the first {LARGEST_BODY} are kept)" if len(body) > LARGEST_BODY else ""
    return DeadLetter(
        project=project,
        origin=origin,
        reason=mask(reason[:_LONGEST_REASON].encode("utf-8", "replace")).decode("utf-8", "replace") + cut,
        body=shown,
        headers=tuple((name[:_LONGEST_HEADER], mask(value[:_LONGEST_HEADER])) for name, value in headers[:_MOST_HEADERS]),
        key=None if key is None else mask(key[:_LONGEST_HEADER]),
        received_ns=received_ns,
        size=len(body),
        masked=shown != kept,
    )


def published(publish: Publish) -> Keep:
    """Return what keeps letters on their topic."""

    async def keep(letters: Sequence[DeadLetter]) -> None:
        await publish(DEAD_LETTERS, letters)

    return keep


class Allowance:
    """How many bytes may be kept: a burst at once, then so many a minute."""

    def __init__(self, burst: int = BURST, a_minute: int = A_MINUTE) -> None:
        self._burst = burst
        self._a_minute = a_minute
        self._left = burst
        self._at_ns = 0

    def take(self, size: int, now_ns: int) -> bool:
        """Return whether so many more may be kept, and count them if so."""
        grown = max(0, now_ns - self._at_ns) * self._a_minute // MINUTE
        self._left = min(self._burst, self._left + grown)
        self._at_ns = max(self._at_ns, now_ns)
        if size > self._left:
            return False
        self._left -= size
        return True


class LetterBox:
    """Keeps what a receiver refused, beside its answer: that the sender hears at once, whether or not there is a store.

    A sender that is refused still has what it sent. So there is an end to what is kept of refused requests: a flood of them is counted,
    and fills no disk.
    """

    def __init__(
        self,
        node: str,
        keep: Keep,
        clock: Clock,
        telemetry: Telemetry,
        redactor: Redactor | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self._node = node
        self._keep = keep
        self._clock = clock
        self._telemetry = telemetry
        self._mask = masked_by(redactor)
        self._allowance = allowance or Allowance()
        self._waiting: deque[tuple[str, str, str, bytes, int, Headers]] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    def add(self, project: str, where: str, reason: str, body: bytes, headers: Headers = ()) -> None:
        """Take what was refused; ``where`` says by which door it came. Returns at once."""
        now = self._clock.now()
        size = min(len(body), LARGEST_BODY) + A_LETTER
        if self._bytes + size > BURST or not self._allowance.take(size, now):
            self._telemetry.dead_letter_dropped(self._node)
            return
        self._bytes += size
        self._waiting.append((project, f"{self._node}: {where}", reason, body, now, headers))
        self._arrived.set()

    def refused(self, project: str, signal: AnySignal, encoding: Encoding, what: Refused) -> None:
        """Take what a receiver refused."""
        self.add(project, signal.path, what.reason, what.body, (("content-type", encoding.encode()),))

    async def __aenter__(self) -> Self:
        """Begin to write what arrives."""
        self._writer = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give what is waiting a few seconds to be kept; what is not by then is counted as dropped."""
        if self._writer is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                while self._bytes and not self._writer.done():  # noqa: ASYNC110 - the writer has no end to wait for
                    await asyncio.sleep(0.02)
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)
        for _ in self._waiting:
            self._telemetry.dead_letter_dropped(self._node)

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                await self._write(*self._waiting[0])
                project, origin, reason, body, *_ = self._waiting.popleft()
                self._bytes -= min(len(body), LARGEST_BODY) + A_LETTER
                log.warning("dead letter", project=project, origin=origin, reason=reason)

    async def _write(self, project: str, origin: str, reason: str, body: bytes, received_ns: int, headers: Headers) -> None:
        try:
            letter = await asyncio.to_thread(
                a_letter, project, origin, reason, body, received_ns, headers=headers, mask=self._mask
            )
            await until_it_works("keep a dead letter", lambda: self._keep([letter]))
        except Exception as error:  # noqa: BLE001 - one letter that nobody foresaw must not end the writing of all others
            log.error("a dead letter cannot be kept", origin=origin, error=repr(error))
            self._telemetry.dead_letter_dropped(self._node)
        else:
            self._telemetry.dead_letter(self._node)
