"""Requests that hold too many things are refused before anything is made of them."""

import json
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from stopwatch import Stopwatch
from unit.otlp.wire_forms import as_json, request, wire_span

from collectors.otlp.body import TooLargeError
from collectors.otlp.breadth import check_breadth
from collectors.otlp.signal import Encoding
from collectors.otlp.traces import TRACES
from pipeline.errors import PermanentError

MOST = 20
MEBIBYTE = 1024 * 1024


def _check(body: bytes, encoding: Encoding = Encoding.PROTOBUF, most: int = MOST) -> None:
    check_breadth(TRACES, body, encoding, most)


def _field(tag: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([tag]) + length + bytes([size]) + content


@pytest.mark.parametrize("spread", ["one scope", "a scope each", "a resource each"])
@pytest.mark.parametrize("encoding", list(Encoding))
def test_as_many_spans_as_are_allowed_pass_and_one_more_does_not(encoding: Encoding, spread: str) -> None:
    for count in (MOST, MOST + 1):
        message = request(*[wire_span(span_id=bytes([0] * 7 + [index + 1])) for index in range(count)])
        spans = list(message.resource_spans[0].scope_spans[0].spans)
        if spread == "a scope each":
            message = ExportTraceServiceRequest(
                resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[one]) for one in spans])]
            )
        if spread == "a resource each":
            message = ExportTraceServiceRequest(
                resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[one])]) for one in spans]
            )
        body = as_json(message) if encoding is Encoding.JSON else message.SerializeToString()
        if count > MOST:
            with pytest.raises(TooLargeError, match=f"more than {MOST} items"):
                _check(body, encoding)
        else:
            _check(body, encoding)


def test_keys_in_snake_case_and_half_a_surrogate_pair_hide_nothing() -> None:
    span = {"traceId": "0" * 32, "name": "\\ud83d"}
    snake = {"resource_spans": [{"scope_spans": [{"spans": [span] * (MOST + 1)}]}]}
    camel = {"resourceSpans": [{"scopeSpans": [{"spans": [span] * (MOST + 1)}]}]}
    for body in (json.dumps(snake), json.dumps(camel), json.dumps(camel).replace("\\\\ud83d", "\\ud83d")):
        with pytest.raises(TooLargeError):
            _check(body.encode(), Encoding.JSON)


@given(
    st.lists(st.lists(st.lists(st.binary(max_size=300), max_size=6), max_size=5), max_size=5),
    st.binary(max_size=5),
    st.text(max_size=300),
)
def test_the_count_is_that_of_the_parser_whatever_stands_around_the_spans(
    tree: list[list[list[bytes]]], name: bytes, schema: str
) -> None:
    message = ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                schema_url=schema,
                scope_spans=[
                    ScopeSpans(schema_url=schema, spans=[WireSpan(trace_id=one, name=name.hex()) for one in spans])
                    for spans in scopes
                ],
            )
            for scopes in tree
        ]
    )
    spans = sum(len(scope.spans) for resource in message.resource_spans for scope in resource.scope_spans)
    scopes = sum(len(resource.scope_spans) for resource in message.resource_spans)
    body = message.SerializeToString()
    most = max(spans, scopes, len(message.resource_spans))
    _check(body, most=max(most, 1))
    if most > 1 and len(body) > 2 * (most - 1):
        with pytest.raises(TooLargeError):
            _check(body, most=most - 1)


PARTS = 4 * MEBIBYTE
BOMBS: dict[str, tuple[Encoding, Callable[[], bytes]]] = {
    "resources": (Encoding.PROTOBUF, lambda: b"\x0a\x00" * PARTS),
    "scopes": (Encoding.PROTOBUF, lambda: _field(0x0A, b"\x12\x00" * PARTS)),
    "spans": (Encoding.PROTOBUF, lambda: _field(0x0A, _field(0x12, b"\x12\x00" * PARTS))),
    "spans behind a scope": (Encoding.PROTOBUF, lambda: _field(0x0A, _field(0x12, b"\x0a\x00" + b"\x12\x00" * PARTS))),
    "unknown fields": (Encoding.PROTOBUF, lambda: b"\x78\x01" * PARTS),
    "unknown fields in each": (Encoding.PROTOBUF, lambda: _field(0x0A, b"\x7d1234" * 90_000) * 20),
    "objects": (Encoding.JSON, lambda: b'{"resourceSpans":[' + b"{}," * 2 * PARTS + b"{}]}"),
    "numbers": (Encoding.JSON, lambda: b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b"0," * 2 * PARTS + b"0]}]}]}"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_found_in_less_than_a_second(name: str) -> None:
    encoding, bomb = BOMBS[name]
    body = bomb()
    watch = Stopwatch()
    with pytest.raises(TooLargeError):
        _check(body, encoding, 100_000)
    assert watch.seconds < 1


@pytest.mark.parametrize("name", ["spans", "numbers"])
def test_and_in_little_memory(name: str) -> None:
    encoding, bomb = BOMBS[name]
    body = bomb()
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            _check(body, encoding, 10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEBIBYTE


@given(st.binary(min_size=3, max_size=200))
def test_any_bytes_are_counted_or_left_to_the_parser(body: bytes) -> None:
    for encoding in Encoding:
        try:
            _check(body, encoding, 1)
        except PermanentError:
            continue


def test_a_group_is_no_part_of_otlp() -> None:
    with pytest.raises(PermanentError, match="it holds a group"):
        _check(b"\x0b\x0c" * MOST * 2)
