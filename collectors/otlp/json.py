"""OTLP as JSON: the bytes of a request in, sealed spans out.

Not protobuf's JSON mapping: OTLP writes ids in hex, which that mapping reads as base64 (reliability D6).
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from collectors.otlp.decoding import Codec, Decoded, Group, Origin, accept, decode_groups, event_at, link_to
from collectors.otlp.json_parts import attributes, enum, hex_id, integer, opened, part, resource, scope
from collectors.otlp.wire import Request, WireSpan
from collectors.redaction.redactor import Redactor
from pipeline.model.span import Span

_KINDS: Final = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))
}
_STATUSES: Final = {f"STATUS_CODE_{name}": number for number, name in enumerate(("UNSET", "OK", "ERROR"))}


def decode(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> Decoded:
    """Read an ``ExportTraceServiceRequest`` (or a ``TracesData``) as OTLP/JSON writes it, redacted where a redactor is given.

    Unknown fields are ignored (O14). Names in snake case and enums by name are read although OTLP forbids to send them (O13).

    Raises:
        PermanentError: the bytes are no such object.
    """
    request = opened(body, _request_decoder, b'_spans"', "trace")
    return decode_groups(_groups(request), _CODEC, project, received_ns, redactor)


def _groups(request: Request) -> Iterator[Group[msgspec.Raw]]:
    for resource_spans in request.resource_spans or ():
        for scope_spans in resource_spans.scope_spans or ():
            yield Group(resource_spans.resource, scope_spans.scope, scope_spans.spans or ())


def _span(raw: msgspec.Raw, origin: Origin) -> Span:
    span = part(_span_decoder, raw, "a span")
    status = span.status
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


def _wrap(group: Group[msgspec.Raw]) -> bytes:
    scope_spans = [{"scope": group.scope, "spans": group.items}]
    return msgspec.json.encode({"resourceSpans": [{"resource": group.resource, "scopeSpans": scope_spans}]})


_request_decoder: Final = msgspec.json.Decoder(Request)
_span_decoder: Final = msgspec.json.Decoder(WireSpan)
_CODEC = Codec(resource, scope, _span, _wrap)
