"""Recorded spans in OTLP's own form: what a shape reads from a file becomes protobuf here."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from collectors.replay import identity
from collectors.replay.identity import ORIGINAL_SPAN_ID, ORIGINAL_TRACE_ID, RawId
from pipeline.model.span import Attributes

_KINDS: Final = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_STATUSES: Final = {"OK": 1, "ERROR": 2}
SPANS_A_REQUEST: Final = 512
"""The batch size of an OpenTelemetry SDK; what a recording sends at once stays near it."""
_INT64: Final = range(-(2**63), 2**63)


class RecordedEvent(msgspec.Struct, frozen=True):
    """A span event as a file has it. ``time_ns`` is 0 where it has no time."""

    name: str
    time_ns: int = 0
    attributes: Attributes = {}


class RecordedLink(msgspec.Struct, frozen=True):
    """A link as a file has it, ids as they stand there."""

    trace_id: RawId
    span_id: RawId
    attributes: Attributes = {}


class RecordedSpan(msgspec.Struct, frozen=True):
    """A span as a file has it: ids as they stand there, plain values, times in nanoseconds (0 is missing)."""

    trace_id: RawId
    span_id: RawId
    parent_id: RawId
    name: str
    start_ns: int
    end_ns: int
    kind: int = 0
    status_code: int = 0
    status_message: str = ""
    attributes: Attributes = {}
    events: tuple[RecordedEvent, ...] = ()
    links: tuple[RecordedLink, ...] = ()
    resource: Attributes = {}
    scope_name: str = ""
    scope_version: str = ""
    scope_attributes: Attributes = {}
    flags: int = 0


def kind_number(word: object) -> int:
    """Read a span kind that is written as ``internal``, ``SPAN_KIND_SERVER``, ``SpanKind.CLIENT`` or a number; 0 is unspecified."""
    return word if isinstance(word, int) else _KINDS.get(_last_word(word), 0)


def status_number(word: object) -> int:
    """Read a status that is written as ``ok``, ``STATUS_CODE_ERROR``, ``StatusCode.OK`` or a number; 0 is unset."""
    return word if isinstance(word, int) else _STATUSES.get(_last_word(word), 0)


def _last_word(word: object) -> str:
    return str(word).replace(".", "_").upper().rpartition("_")[2]


def requests_of(spans: Iterable[RecordedSpan]) -> Iterator[ExportTraceServiceRequest]:
    """Yield the spans as requests of the size that an SDK sends."""
    remaining = iter(spans)
    while batch := list(islice(remaining, SPANS_A_REQUEST)):
        yield request_of(batch)


def request_of(spans: Iterable[RecordedSpan]) -> ExportTraceServiceRequest:
    """Return the spans as one OTLP request, grouped by resource and scope in order of first appearance."""
    request = ExportTraceServiceRequest()
    groups: dict[bytes, ScopeSpans] = {}
    resources: dict[bytes, ResourceSpans] = {}
    for span in spans:
        resource_key = _key(span.resource)
        scope_key = resource_key + _key([span.scope_name, span.scope_version, span.scope_attributes])
        if resource_key not in resources:
            resource = Resource(attributes=_key_values(span.resource))
            resources[resource_key] = request.resource_spans.add(resource=resource)
        if scope_key not in groups:
            scope = InstrumentationScope(
                name=span.scope_name, version=span.scope_version, attributes=_key_values(span.scope_attributes)
            )
            groups[scope_key] = resources[resource_key].scope_spans.add(scope=scope)
        groups[scope_key].spans.append(_span(span))
    return request


def spans_in(request: ExportTraceServiceRequest) -> Iterator[Span]:
    """Yield every span of a request."""
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            yield from scope_spans.spans


def any_value(value: Any) -> AnyValue:
    """Return a plain value as OTLP's ``AnyValue``; a whole number beyond 64 bits becomes its digits, an unknown type its text."""
    if isinstance(value, Mapping):
        return AnyValue(kvlist_value=KeyValueList(values=_key_values(value)))
    if isinstance(value, (list, tuple)):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    return AnyValue() if value is None else _scalar(value)


def _scalar(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int) and value in _INT64:
        return AnyValue(int_value=value)
    return AnyValue(double_value=value) if isinstance(value, float) else AnyValue(string_value=str(value))


def add_originals(span: Span, originals: Mapping[str, str]) -> None:
    """Note on the span which ids it had where it was recorded; an id noted by an earlier replay is older and stays."""
    noted = {attribute.key for attribute in span.attributes}
    for key, original in originals.items():
        if original and key not in noted:
            span.attributes.append(KeyValue(key=key, value=AnyValue(string_value=original)))


def _key(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _key_values(attributes: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=str(key), value=any_value(value)) for key, value in attributes.items()]


def _span(recorded: RecordedSpan) -> Span:
    trace_id = identity.trace_id(recorded.trace_id)
    span_id = identity.span_id(recorded.span_id)
    span = Span(
        trace_id=bytes.fromhex(trace_id.hex),
        span_id=bytes.fromhex(span_id.hex),
        parent_span_id=bytes.fromhex(identity.parent_id(recorded.parent_id)),
        name=recorded.name,
        kind=Span.SpanKind.ValueType(recorded.kind),
        start_time_unix_nano=recorded.start_ns,
        end_time_unix_nano=recorded.end_ns,
        attributes=_key_values(recorded.attributes),
        events=[
            Span.Event(name=event.name, time_unix_nano=event.time_ns, attributes=_key_values(event.attributes))
            for event in recorded.events
        ],
        links=[_link(link) for link in recorded.links],
        status=Status(code=Status.StatusCode.ValueType(recorded.status_code), message=recorded.status_message),
        flags=recorded.flags,
    )
    add_originals(span, {ORIGINAL_TRACE_ID: trace_id.original, ORIGINAL_SPAN_ID: span_id.original})
    return span


def _link(link: RecordedLink) -> Span.Link:
    return Span.Link(
        trace_id=bytes.fromhex(identity.trace_id(link.trace_id).hex),
        span_id=bytes.fromhex(identity.span_id(link.span_id).hex),
        attributes=_key_values(link.attributes),
    )
