"""OTLP as protobuf: the bytes of a request in, sealed spans out. The hot path of the whole product."""

from collections.abc import Iterable, Iterator
from math import isfinite, isnan
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from collectors.otlp.decoding import (
    BadSpanError,
    Codec,
    Decoded,
    Group,
    Origin,
    accept,
    check_depth,
    decode_groups,
    event_at,
    link_to,
)
from collectors.otlp.envelope import Request
from pipeline.errors import PermanentError
from pipeline.model.span import Attributes, Span, bytes_value


def decode(body: bytes, project: str, received_ns: int) -> Decoded:
    """Read an ``ExportTraceServiceRequest`` (or a ``TracesData``).

    Raises:
        PermanentError: the bytes are no such message.
    """
    try:
        request = Request.FromString(body)
    except DecodeError as error:
        raise PermanentError(f"the body is not an OTLP trace request in protobuf: {error}") from error
    return decode_groups(_groups(request), _CODEC, project, received_ns)


def _groups(request: Any) -> Iterator[Group[bytes]]:
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            yield Group(resource_spans.resource, scope_spans.scope, scope_spans.spans)


def _resource(raw: bytes) -> Attributes:
    try:
        return _attributes(Resource.FromString(raw).attributes)
    except DecodeError as error:
        raise BadSpanError(f"its resource does not decode: {error}") from error


def _scope(raw: bytes) -> tuple[str, str]:
    try:
        scope = InstrumentationScope.FromString(raw)
    except DecodeError as error:
        raise BadSpanError(f"its scope does not decode: {error}") from error
    return scope.name, scope.version


def _span(raw: bytes, origin: Origin) -> Span:
    try:
        span = trace_pb2.Span.FromString(raw)
    except DecodeError as error:
        raise BadSpanError(f"a span does not decode (text that is not UTF-8, or cut short): {error}") from error
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
        attributes=_attributes(span.attributes),
        events=tuple([event_at(event.name, event.time_unix_nano, _attributes(event.attributes)) for event in events])
        if events
        else (),
        links=tuple([link_to(link.trace_id, link.span_id, _attributes(link.attributes)) for link in links]) if links else (),
        trace_state=span.trace_state,
        flags=span.flags,
        dropped=span.dropped_attributes_count + span.dropped_events_count + span.dropped_links_count,
    )


def _attributes(pairs: Iterable[KeyValue], depth: int = 0) -> Attributes:
    """Return the attributes; of a key that is there twice the last counts (O17)."""
    found: Attributes = {}
    for pair in pairs:
        value = pair.value
        # Nearly every attribute is text that is not empty; asking the oneof which it is costs as much as all the rest.
        found[pair.key] = value.string_value or _value(value, depth)
    return found


def _value(value: AnyValue, depth: int) -> Any:  # noqa: PLR0911 - one return for each kind of value
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return value.int_value
        case "bool_value":
            return value.bool_value
        case "double_value":
            return _number(value.double_value)
        case "array_value":
            check_depth(depth + 1)
            return [_value(item, depth + 1) for item in value.array_value.values]
        case "kvlist_value":
            check_depth(depth + 1)
            return _attributes(value.kvlist_value.values, depth + 1)
        case "bytes_value":
            return bytes_value(value.bytes_value)
        case _:  # empty, or an index into a table that only profiles carry (O16)
            return None


def _number(value: float) -> float | str:
    """Return the number, or how OTLP/JSON writes one that JSON has none for."""
    if isfinite(value):
        return value
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


_CODEC = Codec(_resource, _scope, _span)
