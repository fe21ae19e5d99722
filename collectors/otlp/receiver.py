"""The receiver: bytes from a transport in, spans into the store, and a reply that promises no more than what was stored."""

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from collectors.otlp import json, protobuf
from collectors.otlp.decoding import Decoded
from collectors.otlp.keys import Keys
from pipeline.config.receiver import MEBIBYTE
from pipeline.model.span import Span

_LARGE: Final = MEBIBYTE
"""A body above this many bytes is decoded in a thread, so that health checks and small requests need not wait for it."""


class SpanStore(Protocol):
    """Where accepted spans go: the database, or a broker in front of it."""

    async def store(self, spans: Sequence[Span]) -> None:
        """Return when all of these spans are durable, and not before.

        Raises:
            TemporaryError: none or some of them are; the sender is told to send all of them again.
            PermanentError: they never will be; the sender is told to drop them.
        """
        ...


class Encoding(StrEnum):
    """How a request is written; the value is its media type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class Reply(msgspec.Struct, frozen=True):
    """What a sender hears of a request that was stored: how many spans were refused for good, and why."""

    rejected: int = 0
    message: str = ""


def _count_nothing(accepted: int, rejected: int) -> None:
    """Take the place of a counter where nobody counts."""


class Receiver:
    """What both transports share."""

    def __init__(
        self,
        store: SpanStore,
        clock: Callable[[], int],
        keys: Keys,
        *,
        max_body: int = 64 * MEBIBYTE,
        on_received: Callable[[int, int], None] = _count_nothing,
    ) -> None:
        """Take the ``clock`` in ns; ``on_received(accepted, rejected)`` hears of each answered request, in spans."""
        self._store = store
        self._clock = clock
        self._keys = keys
        self._on_received = on_received
        self.max_body: Final = max_body

    def project(self, authorization: str | None) -> str:
        """Return the caller's project, or raise UnauthenticatedError."""
        return self._keys.project(authorization)

    async def export(self, body: bytes, encoding: Encoding, project: str) -> Reply:
        """Store the spans of one request, decompressed; return once they are durable.

        Raises:
            PermanentError: the body is no OTLP request, or the store will never take it.
            TemporaryError: the store cannot take it now; nothing is acknowledged.
        """
        received_ns = self._clock()
        decode = _DECODERS[encoding]
        if len(body) > _LARGE:
            decoded = await asyncio.to_thread(decode, body, project, received_ns)
        else:
            decoded = decode(body, project, received_ns)
        if decoded.spans:
            await self._store.store(decoded.spans)
        self._on_received(len(decoded.spans), decoded.rejected)
        return Reply(decoded.rejected, decoded.message)


_DECODERS: Final[dict[Encoding, Callable[[bytes, str, int], Decoded]]] = {
    Encoding.PROTOBUF: protobuf.decode,
    Encoding.JSON: json.decode,
}
