"""OTLP as protobuf: the bytes of a request in, sealed spans out. The hot path of the whole product."""

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1 import trace_pb2

from collectors.otlp.decoding import Codec, Decoded, Group, Origin, accept, decode_groups, event_at, link_to
from collectors.otlp.envelope import Request
from collectors.otlp.mending import SPAN
from collectors.otlp.protobuf_parts import attributes, parsed, resource, scope
from collectors.redaction.redactor import Redactor
from pipeline.errors import PermanentError
from pipeline.model.span import Span


def decode(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> Decoded:
    """Read an ``ExportTraceServiceRequest`` (or a ``TracesData``), redacted where a redactor is given: what comes from our own topics was before.

    Raises:
        PermanentError: the bytes are no such message.
    """
    try:
        request = Request.FromString(body)
    except DecodeError as error:
        raise PermanentError(f"the body is not an OTLP trace request in protobuf: {error}") from error
    return decode_groups(_groups(request), _CODEC, project, received_ns, redactor)


def _groups(request: Any) -> Iterator[Group[bytes]]:
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            yield Group(resource_spans.resource, scope_spans.scope, scope_spans.spans)


def _span(raw: bytes, origin: Origin) -> Span:
    span = parsed(trace_pb2.Span, raw, SPAN, "a span")
    status = span.status
    # Most spans have neither events nor links, and asking is quicker than iterating.
    events, links = span.events, span.links
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


def _wrap(group: Group[bytes]) -> bytes:
    scope_spans = [{"scope": group.scope, "spans": group.items}]
    wrapped: bytes = Request(resource_spans=[{"resource": group.resource, "scope_spans": scope_spans}]).SerializeToString()
    return wrapped


_CODEC = Codec(resource, scope, _span, _wrap)
