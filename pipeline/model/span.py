"""Span: one OTLP span as it was accepted, in the project of its sender."""

from base64 import b64encode
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import msgspec

Attributes: TypeAlias = dict[str, Any]
"""OTLP attributes as plain values: None, bool, int, float, str, list, dict. Bytes are ``{"bytesValue": base64}``,
and NaN and the infinities are the strings that OTLP/JSON writes for them."""

TRUNCATED_FIELDS: Final = "tracegrade.truncated"
"""Attribute of a span or a resource that was too large: the fields of which something is missing (docs/guarantees.md)."""
STATUS_ERROR: Final = 2
REMOTE_PARENT_KNOWN: Final = 0x100
REMOTE_PARENT: Final = 0x200


class Event(msgspec.Struct, frozen=True, gc=False):
    """A span event. ``time_ns`` is 0 where the sender gave none."""

    name: str
    time_ns: int = 0
    attributes: Attributes = {}


class Link(msgspec.Struct, frozen=True, gc=False):
    """A link to another span, by hex ids."""

    trace_id: str
    span_id: str
    attributes: Attributes = {}


class Span(msgspec.Struct, frozen=True, gc=False):
    """One accepted span. Ids are lower-case hex; ``parent_id`` is empty on a root; times of 0 are missing."""

    project: str
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_ns: int
    end_ns: int
    received_ns: int
    kind: int = 0
    status_code: int = 0
    status_message: str = ""
    attributes: Attributes = {}
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    resource: Attributes = {}
    scope_name: str = ""
    scope_version: str = ""
    trace_state: str = ""
    flags: int = 0
    dropped: int = 0
    """How many attributes, events and links the sender says it dropped."""
    content_hash: str = ""
    """What was said, apart from when it arrived; set by :func:`seal`."""

    @property
    def parent_is_remote(self) -> bool:
        """Whether the sender marked the parent as living in another process (OTLP span flags, bits 8 and 9)."""
        return bool(self.flags & REMOTE_PARENT_KNOWN) and bool(self.flags & REMOTE_PARENT)


_encode = msgspec.msgpack.Encoder(order="sorted").encode


def seal(span: Span) -> Span:
    """Return the span with its content hash: blake2b-128 of everything but ``received_ns``, keys sorted."""
    bare = msgspec.structs.replace(span, received_ns=0, content_hash="")
    return msgspec.structs.replace(span, content_hash=blake2b(_encode(bare), digest_size=16).hexdigest())


def supersedes(one: Span, other: Span) -> bool:
    """Whether ``one`` is the version of a span that counts (design section 3).

    The one that has an end, then the latest end, the most attributes, the greatest hash.
    """
    return _rank(one) > _rank(other)


def _rank(span: Span) -> tuple[bool, int, int, str]:
    return span.end_ns > 0, span.end_ns, len(span.attributes), span.content_hash


def bytes_value(raw: bytes) -> Attributes:
    """Return how an attribute of bytes is kept."""
    return {"bytesValue": b64encode(raw).decode("ascii")}
