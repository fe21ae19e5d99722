"""LogRecord: one OTLP log record as it was accepted. Dialects put messages, results of evaluations and exceptions there, beside their spans."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

import msgspec

from pipeline.model.span import Attributes, Event, Span

EVENT_NAME: Final = "event.name"
"""Attribute that names the event where the sender is older than OTLP's own field for it."""


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """One accepted log record of a span. Ids are lower-case hex; ``body`` and ``attributes`` are plain values as those of spans are."""

    project: str
    trace_id: str
    span_id: str
    event_name: str
    time_ns: int
    """When it happened, or was observed where its sender gives no time; 0 where neither is known."""
    received_ns: int
    position: int = 0
    """Where it stood in its request: the order of records to which their sender gave one time (whole milliseconds, in some languages)."""
    severity: int = 0
    body: Any = None
    attributes: Attributes = {}
    resource: Attributes = {}
    scope_name: str = ""
    scope_version: str = ""
    dropped: int = 0
    """How many attributes the sender says it dropped."""
    content_hash: str = ""
    """What was said, apart from when and where in a request it arrived; set by :func:`seal`."""


_encode = msgspec.msgpack.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def seal(record: LogRecord) -> LogRecord:
    """Return the record with its content hash: blake2b-128 of everything but ``received_ns`` and ``position``, keys sorted."""
    bare = msgspec.structs.replace(record, received_ns=0, position=0, content_hash="")
    return msgspec.structs.replace(record, content_hash=blake2b(_encode(bare), digest_size=16).hexdigest())


def is_earlier(one: LogRecord, other: LogRecord) -> bool:
    """Whether ``one`` of two deliveries of a record is the one that counts: the first received, then the first in its request."""
    return (one.received_ns, one.position) < (other.received_ns, other.position)


def as_event(record: LogRecord) -> Event:
    """Return the record as the span event that says the same: the fields of its body are attributes.

    A body that is no object, nor the JSON of one, is the attribute ``body``.
    """
    body = _object(record.body)
    if body is None:
        body = {} if record.body is None else {"body": record.body}
    return Event(record.event_name, record.time_ns, record.attributes | body)


def _object(body: Any) -> Attributes | None:
    if isinstance(body, str) and body[:1] == "{":
        try:
            body = _decode(body)
        except (ValueError, RecursionError):
            return None
    return body if isinstance(body, dict) else None


def beside(span: Span, records: Iterable[LogRecord]) -> Span:
    """Return the span with its log records as events after its own, in the order of their times: so no dialect need know of log records."""
    ordered = sorted(records, key=lambda one: (one.time_ns, one.received_ns, one.position, one.content_hash))
    if not ordered:
        return span
    dropped = span.dropped + sum(record.dropped for record in ordered)
    return msgspec.structs.replace(span, events=(*span.events, *map(as_event, ordered)), dropped=dropped)
