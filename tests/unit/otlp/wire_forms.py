"""Requests as senders write them, in both encodings, made without the product's own code."""

import json
from base64 import b64decode
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

TRACE_ID = bytes.fromhex("5B8EFFF798038103D269B633813FC60C")
SPAN_ID = bytes.fromhex("EEE19B7EC3C1B174")
START = 1_790_000_000_000_000_001
"""Odd, so that a number that went through a float shows."""


def text(key: str, value: str) -> KeyValue:
    """An attribute of text."""
    return KeyValue(key=key, value=AnyValue(string_value=value))


def wire_span(**fields: Any) -> WireSpan:
    """A valid span; override what matters."""
    defaults: dict[str, Any] = {
        "trace_id": TRACE_ID,
        "span_id": SPAN_ID,
        "name": "chat",
        "start_time_unix_nano": START,
        "end_time_unix_nano": START + 1,
    }
    return WireSpan(**(defaults | fields))


def request(*spans: WireSpan, service: str = "shop") -> ExportTraceServiceRequest:
    """A request with one resource and one scope."""
    scope_spans = ScopeSpans(scope=InstrumentationScope(name="tracer", version="1.2"), spans=spans)
    resource = Resource(attributes=[text("service.name", service)])
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope_spans])])


def as_json(message: Message, *, ensure_ascii: bool = True) -> bytes:
    """The message as OTLP/JSON: protobuf's JSON mapping, but enums as numbers and ids in hex."""
    return json.dumps(_hex_ids(MessageToDict(message, use_integers_for_enums=True)), ensure_ascii=ensure_ascii).encode()


def _hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_hex_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {key: b64decode(item).hex().upper() if key in ids else _hex_ids(item) for key, item in value.items()}


def json_request(**fields: Any) -> bytes:
    """An OTLP/JSON request with one span: valid, with these fields put in or (None) taken out."""
    span = {"traceId": TRACE_ID.hex(), "spanId": SPAN_ID.hex(), "name": "chat", "startTimeUnixNano": str(START)} | fields
    kept = {key: value for key, value in span.items() if value is not None}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [kept]}]}]}).encode()


def json_attribute(value: Any) -> bytes:
    """An OTLP/JSON request with one span with one attribute ``a``."""
    return json_request(attributes=[{"key": "a", "value": value}])
