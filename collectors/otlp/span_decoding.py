"""What both encodings of OTLP share of spans: which are accepted, and how they are redacted and fitted."""

from collections.abc import Callable
from typing import Final, Generic

from collectors.otlp.decoding import (
    MAX_ENUM,
    MAX_TIME,
    MAX_UINT32,
    SPAN_ID_SIZE,
    TRACE_ID_SIZE,
    BadSpanError,
    Codec,
    Group,
    Origin,
    Part,
    bad_id,
    size_of,
)
from collectors.otlp.fitting import fewer, fitted
from collectors.otlp.origins import NOWHERE, Origins
from collectors.redaction.redactor import Redactor
from collectors.redaction.spans import RequestRedaction
from collectors.redaction.walk import Counts
from pipeline.model.span import TRUNCATED_FIELDS, Attributes, Event, Link, Span, seal

_NO_TRACE: Final = bytes(TRACE_ID_SIZE)
_NO_SPAN: Final = bytes(SPAN_ID_SIZE)


class SpanReader(Generic[Part]):
    """Makes spans of the parts of one request."""

    def __init__(
        self,
        codec: Codec[Part, Span],
        project: str,
        received_ns: int,
        redactor: Redactor | None,
        finish: Callable[[Span], Span] = seal,
    ) -> None:
        """``finish`` is done to each span at the end."""
        self._codec: Final[Codec[Part, Span]] = codec
        self._origins: Final[Origins[Part]] = Origins(codec, project, received_ns)
        self._redaction: Final = RequestRedaction(redactor)
        self._finish: Final = finish
        self.origin = NOWHERE
        """Of the group that was opened last, redacted and fitted."""
        self.truncated = 0

    @property
    def counts(self) -> Counts:
        """What was replaced so far, by detector."""
        return self._redaction.counts

    @property
    def redacted_origin(self) -> bool:
        """Whether something was replaced in the resource or the scope of the group, which each of its spans tells."""
        return bool(self._redaction.of_origin)

    def open(self, group: Group[Part]) -> None:
        """Read resource and scope of a group; raise BadSpanError where one of them is none."""
        self.origin = self._origins.of(group, self._redaction)

    def read(self, part: Part) -> Span:
        """Return a span of the group; raise BadSpanError where it cannot be accepted."""
        kept, loss = fewer(self._codec.item(part, self.origin))
        # Texts are cut after everything that changes them: half of a secret is none that anybody would find.
        span = fitted(self._redaction.span(kept), size_of(part), loss)
        self.truncated += TRUNCATED_FIELDS in span.attributes or TRUNCATED_FIELDS in span.resource
        return self._finish(span)


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
    """Return the span, not sealed; raise BadSpanError where it cannot be stored (:func:`check_span`)."""
    check_span(trace_id, span_id, parent_id, start_ns, end_ns, kind, status_code)
    if not (0 <= flags <= MAX_UINT32 and dropped >= 0):
        raise BadSpanError("flags and dropped counts must be unsigned 32-bit numbers")
    return Span(
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
        dropped=min(dropped, MAX_UINT32),
    )


def check_span(
    trace_id: bytes, span_id: bytes, parent_id: bytes, start_ns: int, end_ns: int, kind: int, status_code: int
) -> None:
    """Refuse a span of which an id has the wrong length or says nothing (O12), or a time, its kind or its status cannot be stored."""
    if len(trace_id) != TRACE_ID_SIZE or trace_id == _NO_TRACE:
        raise BadSpanError(bad_id("traceId", trace_id, TRACE_ID_SIZE))
    if len(span_id) != SPAN_ID_SIZE or span_id == _NO_SPAN:
        raise BadSpanError(bad_id("spanId", span_id, SPAN_ID_SIZE))
    if parent_id and len(parent_id) != SPAN_ID_SIZE:
        raise BadSpanError(bad_id("parentSpanId", parent_id, SPAN_ID_SIZE))
    if not (0 <= start_ns <= MAX_TIME and 0 <= end_ns <= MAX_TIME):
        raise BadSpanError("startTimeUnixNano and endTimeUnixNano must be nanoseconds since 1970 and before the year 2262")
    if not (0 <= kind <= MAX_ENUM and 0 <= status_code <= MAX_ENUM):
        raise BadSpanError("kind and status.code must be numbers that OTLP defines")


def link_to(trace_id: bytes, span_id: bytes, attributes: Attributes) -> Link:
    """Return a link; raise BadSpanError where :func:`check_link` does."""
    check_link(trace_id, span_id)
    return Link(trace_id.hex(), span_id.hex(), attributes)


def check_link(trace_id: bytes, span_id: bytes) -> None:
    """Refuse a link whose ids have the wrong length. One that leads nowhere is legal: the OpenTelemetry API keeps it for its attributes."""
    if trace_id and len(trace_id) != TRACE_ID_SIZE:
        raise BadSpanError(bad_id("links.traceId", trace_id, TRACE_ID_SIZE))
    if span_id and len(span_id) != SPAN_ID_SIZE:
        raise BadSpanError(bad_id("links.spanId", span_id, SPAN_ID_SIZE))


def event_at(name: str, time_ns: int, attributes: Attributes) -> Event:
    """Return an event; raise BadSpanError where :func:`check_event` does."""
    check_event(time_ns)
    return Event(name, time_ns, attributes)


def check_event(time_ns: int) -> None:
    """Refuse an event whose time cannot be stored."""
    if not 0 <= time_ns <= MAX_TIME:
        raise BadSpanError("events.timeUnixNano must be nanoseconds since 1970 and before the year 2262")
