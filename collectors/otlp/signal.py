"""Signals: the kinds of telemetry that senders may send, and all that differs between them.

Transports, limits, keys and quotas are the same for each; a signal is where it is sent, how it is read and how it is answered.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from google.protobuf.message import Message

from collectors.otlp.decoding import Decoded
from collectors.otlp.wire import Envelope
from collectors.redaction.redactor import Redactor

Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)


class Encoding(StrEnum):
    """How a request is written; the value is its media type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class Reply(msgspec.Struct, frozen=True):
    """What a sender hears of a request that was stored: how many items were refused for good, and why; with none, a warning (O6)."""

    rejected: int = 0
    message: str = ""


class ItemStore(Protocol[Item_contra]):
    """Where accepted items go: the database, or a broker in front of it."""

    async def store(self, items: Sequence[Item_contra], /) -> None:
        """Return when all of these items are durable, and not before.

        Raises:
            TemporaryError: none or some of them are; the sender is told to send all of them again.
            PermanentError: they never will be; the sender is told to drop them.
        """
        ...


Decoder: TypeAlias = Callable[[bytes, str, int, Redactor | None], Decoded[Item]]
"""Reads a body that came for a project at a time in ns, and redacts it; raises PermanentError where it is no request at all."""


@dataclass(frozen=True, eq=False)
class Signal(Generic[Item]):
    """One kind of telemetry."""

    path: str
    """Where it is sent over HTTP."""
    service: str
    """Where it is sent over gRPC; the method is always Export."""
    envelope: Envelope
    """The keys that lead to its items in JSON; in protobuf they are fields 1, 2 and 2."""
    response: Callable[[Reply], Message]
    """Writes the answer to a request that was stored."""
    decoders: Mapping[Encoding, Decoder[Item]]


AnySignal: TypeAlias = Signal[Any]
