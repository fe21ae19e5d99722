"""What both encodings of OTLP share: the walk over a request, and what makes a span acceptable.

A request is opened down to its resources, scopes and spans, which are still bytes then. So one that does not decode is refused alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from pipeline.model.span import Attributes, Event, Link, Span, seal

MAX_SPAN: Final = 4 * 1024 * 1024
"""Bytes of a span, and of its resource, as they were sent: what is larger would fit into no record of a broker."""
MAX_DEPTH: Final = 32
"""How deep arrays and key-value lists may nest (reliability S11). The protobuf parser's own limit is just above."""
_TRACE_ID_SIZE: Final = 16
_SPAN_ID_SIZE: Final = 8
_NO_TRACE: Final = bytes(_TRACE_ID_SIZE)
_NO_SPAN: Final = bytes(_SPAN_ID_SIZE)
_MAX_TIME: Final = 2**63 - 1
_MAX_ENUM: Final = 2**8 - 1
_MAX_UINT32: Final = 2**32 - 1
_REASONS: Final = 5
_REASON_LENGTH: Final = 200

Part = TypeVar("Part", bytes, msgspec.Raw)


class BadSpanError(Exception):
    """One span cannot be accepted. The message names the field and says what is wrong with it."""


class Decoded(msgspec.Struct, frozen=True):
    """A request, read: its acceptable spans, sealed, and how many were refused and why."""

    spans: tuple[Span, ...] = ()
    rejected: int = 0
    message: str = ""
    """In English, for the sender; empty where nothing was refused."""


class Origin(NamedTuple):
    """What the spans of one scope have in common."""

    project: str
    received_ns: int
    resource: Attributes
    scope_name: str
    scope_version: str


class Group(NamedTuple, Generic[Part]):
    """The spans of one scope of one resource, each part still as it was sent."""

    resource: Part
    scope: Part
    spans: Sequence[Part]


class Codec(NamedTuple, Generic[Part]):
    """How one encoding reads the parts of a request. Each raises BadSpanError."""

    resource: Callable[[Part], Attributes]
    scope: Callable[[Part], tuple[str, str]]
    """Name and version."""
    span: Callable[[Part, Origin], Span]


def decode_groups(groups: Iterable[Group[Part]], codec: Codec[Part], project: str, received_ns: int) -> Decoded:
    """Read every span of a request that can be read; a bad resource or scope refuses its own spans only."""
    spans: list[Span] = []
    reasons: Counter[str] = Counter()
    for group in groups:
        try:
            _check_size("a resource", group.resource)
            origin = Origin(project, received_ns, codec.resource(group.resource), *codec.scope(group.scope))
        except BadSpanError as error:
            reasons[str(error)] += len(group.spans)
            continue
        for part in group.spans:
            try:
                _check_size("a span", part)
                spans.append(codec.span(part, origin))
            except BadSpanError as error:
                reasons[str(error)] += 1
    rejected = reasons.total()
    return Decoded(tuple(spans), rejected, _explain(reasons, rejected, len(spans) + rejected) if rejected else "")


def _check_size(what: str, part: bytes | msgspec.Raw) -> None:
    if len(part if isinstance(part, bytes) else memoryview(part)) > MAX_SPAN:
        raise BadSpanError(f"{what} is larger than {MAX_SPAN} bytes")


def _explain(reasons: Counter[str], rejected: int, received: int) -> str:
    """Say in a bounded number of words (O11) what was refused."""
    told = [f"{count} × {reason[:_REASON_LENGTH]}" for reason, count in reasons.most_common(_REASONS)]
    more = f"; and {len(reasons) - _REASONS} other reasons" if len(reasons) > _REASONS else ""
    return f"{rejected} of {received} spans were rejected: {'; '.join(told)}{more}"


def accept(
    origin: Origin,
    *,
    trace_id: bytes,
    span_id: bytes,
    parent_id: bytes,
    name: str,
    start_ns: int,
    end_ns: int,
    kind: int,
    status_code: int,
    status_message: str,
    attributes: Attributes,
    events: tuple[Event, ...],
    links: tuple[Link, ...],
    trace_state: str,
    flags: int,
    dropped: int,
) -> Span:
    """Return the sealed span.

    Raises:
        BadSpanError: an id has the wrong length or says nothing (O12), or a number is outside what can be stored.
    """
    if len(trace_id) != _TRACE_ID_SIZE or trace_id == _NO_TRACE:
        raise BadSpanError(_bad_id("traceId", trace_id, _TRACE_ID_SIZE))
    if len(span_id) != _SPAN_ID_SIZE or span_id == _NO_SPAN:
        raise BadSpanError(_bad_id("spanId", span_id, _SPAN_ID_SIZE))
    if parent_id and len(parent_id) != _SPAN_ID_SIZE:
        raise BadSpanError(_bad_id("parentSpanId", parent_id, _SPAN_ID_SIZE))
    if not (0 <= start_ns <= _MAX_TIME and 0 <= end_ns <= _MAX_TIME):
        raise BadSpanError("startTimeUnixNano and endTimeUnixNano must be nanoseconds since 1970 and before the year 2262")
    if not (0 <= kind <= _MAX_ENUM and 0 <= status_code <= _MAX_ENUM):
        raise BadSpanError("kind and status.code must be numbers that OTLP defines")
    if not (0 <= flags <= _MAX_UINT32 and dropped >= 0):
        raise BadSpanError("flags and dropped counts must be unsigned 32-bit numbers")
    return seal(
        Span(
            project=origin.project,
            trace_id=trace_id.hex(),
            span_id=span_id.hex(),
            # A root is sometimes sent with an all-zero parent (reliability R26).
            parent_id="" if parent_id == _NO_SPAN else parent_id.hex(),
            name=name,
            start_ns=start_ns,
            end_ns=end_ns,
            received_ns=origin.received_ns,
            kind=kind,
            status_code=status_code,
            status_message=status_message,
            attributes=attributes,
            events=events,
            links=links,
            resource=origin.resource,
            scope_name=origin.scope_name,
            scope_version=origin.scope_version,
            trace_state=trace_state,
            flags=flags,
            dropped=min(dropped, _MAX_UINT32),
        )
    )


def link_to(trace_id: bytes, span_id: bytes, attributes: Attributes) -> Link:
    """Return a link. One that leads nowhere is legal: the OpenTelemetry API keeps it for its attributes."""
    if trace_id and len(trace_id) != _TRACE_ID_SIZE:
        raise BadSpanError(_bad_id("links.traceId", trace_id, _TRACE_ID_SIZE))
    if span_id and len(span_id) != _SPAN_ID_SIZE:
        raise BadSpanError(_bad_id("links.spanId", span_id, _SPAN_ID_SIZE))
    return Link(trace_id.hex(), span_id.hex(), attributes)


def event_at(name: str, time_ns: int, attributes: Attributes) -> Event:
    """Return an event."""
    if not 0 <= time_ns <= _MAX_TIME:
        raise BadSpanError("events.timeUnixNano must be nanoseconds since 1970 and before the year 2262")
    return Event(name, time_ns, attributes)


def check_depth(depth: int) -> None:
    """Refuse a value that is nested deeper than :data:`MAX_DEPTH`."""
    if depth > MAX_DEPTH:
        raise BadSpanError(f"an attribute is nested deeper than {MAX_DEPTH} levels")


def _bad_id(field: str, raw: bytes, size: int) -> str:
    if len(raw) == size:
        return f"{field} is all zeros"
    return f"{field} must be {size} bytes ({2 * size} hex digits in JSON), not {len(raw)}"
