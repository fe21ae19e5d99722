"""Records as others write them to a topic: good ones and the poisons of reliability F17."""

from typing import Any

import msgspec
from builders import a_span
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from collectors.kafka.bridge_records import ForeignRecord
from collectors.otlp import encode

NOW = 1_790_000_000_000_000_000


def a_record(value: bytes | None, offset: int = 0, **more: Any) -> ForeignRecord:
    return ForeignRecord("otlp_spans", more.pop("partition", 0), offset, more.pop("timestamp_ns", NOW - 5), value, **more)


def otlp(*names: str, trace: int = 1) -> bytes:
    """A request with a span of each name, as protobuf."""
    return encode.encode(
        [a_span(name=name, trace_id=f"{trace:032x}", span_id=f"{at + 1:016x}") for at, name in enumerate(names or ("one",))]
    )


def otlp_json(*names: str) -> bytes:
    """The same as JSON."""
    data = TracesData.FromString(otlp(*names))
    said = json_format.MessageToDict(data)
    for resource in said["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for at, span in enumerate(scope["spans"]):
                span |= {"traceId": f"{1:032x}", "spanId": f"{at + 1:016x}"}
                span.pop("parentSpanId", None)
    return msgspec.json.encode(said)


def field(number: int, value: bytes) -> bytes:
    """A field of a message: tag, length, value."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def span_with(attribute: bytes, span: int = 9) -> bytes:
    """A span as bytes, with one attribute whose value is given as bytes."""
    ids = field(1, bytes(15) + b"\x01") + field(2, span.to_bytes(8, "big"))
    return ids + field(5, b"odd") + field(9, field(1, b"key") + field(2, attribute))


def request_of(*spans: bytes) -> bytes:
    """A request as the Collector writes it: spans before their resource, in descending order of the fields."""
    return field(1, field(2, b"".join(field(2, span) for span in spans)) + field(1, b""))


def nested(levels: int) -> bytes:
    """A value in so many lists."""
    value = field(1, b"deep")
    for _ in range(levels):
        value = field(5, field(1, value))
    return value


GOOD = span_with(field(1, b"fine"), span=1)
JAEGER = field(1, bytes(range(1, 17))) + field(2, bytes(range(8))) + field(3, b"operation")
POISON: dict[str, bytes | None] = {
    "null": None,
    "empty": b"",
    "garbage": b"\x9f\xfe\x00\x01garbage",
    "text": b"hello",
    "cut short": otlp("one", "two")[:-3],
    "jaeger_proto": JAEGER,
    "jaeger_json": b'{"traceID":"1","spans":[{"operationName":"x"}]}',
    "zipkin_json": b'[{"traceId":"1","id":"2"}]',
    "json cut short": otlp_json()[:-2],
    "a number": b"17",
    "utf-16": otlp_json().decode().encode("utf-16"),
    "json with a mark in front": b"\xef\xbb\xbf" + otlp_json(),
    "metrics": field(1, field(2, field(2, field(1, b"metric.name") + field(5, field(1, b""))))),
}
"""Of which nothing can be read."""
BAD_SPANS = {
    "no ids": field(5, b"nameless"),
    "a trace id of zeros": field(1, bytes(16)) + field(2, b"\x01" * 8),
    "a record of a log": b"\x09" + bytes(8) + field(3, b"INFO"),
    "cut short": GOOD[:-2],
}
"""Of which one costs no other its place."""
ODD_SPANS = {
    "invalid UTF-8": span_with(field(1, b"\xff\xfe")),
    "40 levels": span_with(nested(40)),
    "200 levels": span_with(nested(200)),
}
"""That the parser refuses together with all of their record."""
