"""OTLP as JSON: the bytes of a request in, sealed spans out.

Not protobuf's JSON mapping: OTLP writes ids in hex, which that mapping reads as base64 (reliability D6).
"""

from typing import Final

import msgspec

from collectors.otlp.decoding import Codec, Decoded, Origin, read_groups
from collectors.otlp.json_parts import attributes, enum, hex_id, integer, opened, part, resource, scope, wrapping
from collectors.otlp.span_decoding import SpanReader, accept, event_at, link_to
from collectors.otlp.values import EVENT, count
from collectors.otlp.wire import Envelope, WireSpan
from collectors.redaction.redactor import Redactor
from pipeline.model.span import Span

ENVELOPE: Final[Envelope] = ("resourceSpans", "scopeSpans", "spans")
_KINDS: Final = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))
}
_STATUSES: Final = {f"STATUS_CODE_{name}": number for number, name in enumerate(("UNSET", "OK", "ERROR"))}


def decode(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> Decoded[Span]:
    """Read an ``ExportTraceServiceRequest`` (or a ``TracesData``) as OTLP/JSON writes it, redacted where a redactor is given.

    Unknown fields are ignored (O14). Names in snake case and enums by name are read although OTLP forbids to send them (O13).

    Raises:
        PermanentError: the bytes are no such object.
    """
    groups = opened(body, ENVELOPE, "trace")
    return read_groups(groups, SpanReader(CODEC, project, received_ns, redactor), CODEC.wrap, "spans")


def _span(raw: msgspec.Raw, origin: Origin) -> Span:
    span = part(_span_decoder, raw, "a span")
    status = span.status
    if span.events or span.links:
        count(EVENT * (len(span.events or ()) + len(span.links or ())))
    return accept(
        origin,
        trace_id=hex_id(span.trace_id, "traceId"),
        span_id=hex_id(span.span_id, "spanId"),
        parent_id=hex_id(span.parent_span_id, "parentSpanId"),
        name=span.name or "",
        start_ns=integer(span.start_time_unix_nano, "startTimeUnixNano"),
        end_ns=integer(span.end_time_unix_nano, "endTimeUnixNano"),
        kind=enum(span.kind, _KINDS, "kind"),
        status_code=enum(status.code, _STATUSES, "status.code") if status else 0,
        status_message=(status.message or "") if status else "",
        attributes=attributes(span.attributes),
        events=tuple(
            [
                event_at(event.name or "", integer(event.time_unix_nano, "events.timeUnixNano"), attributes(event.attributes))
                for event in span.events or ()
            ]
        ),
        links=tuple(
            [
                link_to(hex_id(link.trace_id, "links.traceId"), hex_id(link.span_id, "links.spanId"), attributes(link.attributes))
                for link in span.links or ()
            ]
        ),
        trace_state=span.trace_state or "",
        flags=integer(span.flags, "flags"),
        dropped=integer(span.dropped_attributes_count, "droppedAttributesCount")
        + integer(span.dropped_events_count, "droppedEventsCount")
        + integer(span.dropped_links_count, "droppedLinksCount"),
    )


_span_decoder: Final = msgspec.json.Decoder(WireSpan)
CODEC: Final = Codec(resource, scope, _span, wrapping(ENVELOPE))
