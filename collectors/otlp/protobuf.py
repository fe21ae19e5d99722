"""OTLP as protobuf: the bytes of a request in, sealed spans out."""

from typing import Final

from opentelemetry.proto.trace.v1 import trace_pb2

from collectors.otlp.decoding import Codec, Decoded, Origin, read_groups
from collectors.otlp.mending import SPAN
from collectors.otlp.protobuf_parts import attributes, opened, parsed, resource, scope, wrapped
from collectors.otlp.span_decoding import SpanReader, accept, event_at, link_to
from collectors.otlp.trimming import OF_SPAN
from collectors.otlp.values import EVENT, count
from collectors.redaction.redactor import Redactor
from pipeline.model.span import Span


def decode(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None, *, own: bool = False) -> Decoded[Span]:
    """Read an ``ExportTraceServiceRequest`` (or a ``TracesData``), redacted where a redactor is given.

    ``own`` says that it comes from our own topics, where each span is believed when it was received, and was redacted before.

    Raises:
        PermanentError: the bytes are no such message.
    """
    groups = opened(body, "trace", own=own)
    needed = redactor if redactor is not None and redactor.suspects_message(body) else None
    return read_groups(groups, SpanReader(CODEC, project, received_ns, needed), wrapped, "spans")


def _span(raw: bytes, origin: Origin) -> Span:
    span = parsed(trace_pb2.Span, raw, SPAN, OF_SPAN, "a span")
    status = span.status
    # Most spans have neither events nor links, and asking is quicker than iterating.
    events, links = span.events, span.links
    if events or links:
        count(EVENT * (len(events) + len(links)))
    return accept(
        origin,
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_id=span.parent_span_id,
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        kind=span.kind,
        status_code=status.code,
        status_message=status.message,
        attributes=attributes(span.attributes),
        events=tuple([event_at(event.name, event.time_unix_nano, attributes(event.attributes)) for event in events])
        if events
        else (),
        links=tuple([link_to(link.trace_id, link.span_id, attributes(link.attributes)) for link in links]) if links else (),
        trace_state=span.trace_state,
        flags=span.flags,
        dropped=span.dropped_attributes_count + span.dropped_events_count + span.dropped_links_count,
    )


CODEC: Final = Codec(resource, scope, _span, wrapped)
