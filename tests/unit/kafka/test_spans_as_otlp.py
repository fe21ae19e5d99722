"""Spans written as OTLP read as the same spans."""

from typing import Any

import msgspec
import pytest
from builders import a_span
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData as WireTracesData
from unit.kafka.nouns import LAWS, attributes, ordered, spans

from collectors.otlp import protobuf
from collectors.otlp.encode import TracesData, encode, parts
from collectors.otlp.mending import MAX_DEPTH
from pipeline.errors import PermanentError
from pipeline.model.span import Event, Span, bytes_value, seal


def _with(value: Any, **fields: Any) -> Span:
    return seal(msgspec.structs.replace(a_span(), attributes={"a": value}, **fields))


def _again(span: Span) -> Span:
    decoded = protobuf.decode(encode([span]), span.project, span.received_ns)
    assert decoded.rejected == 0, decoded.message
    (found,) = decoded.spans
    return found


@LAWS
@given(st.lists(spans, max_size=6))
def test_what_is_written_reads_as_the_same_spans(some: list[Span]) -> None:
    mine = [msgspec.structs.replace(span, project="shop", received_ns=7) for span in some]
    sealed = [seal(span) for span in mine]
    decoded = protobuf.decode(encode(sealed), "shop", 7)
    assert decoded.rejected == 0, decoded.message
    assert ordered(decoded.spans) == ordered(sealed)


@LAWS
@given(st.lists(spans, max_size=6))
def test_the_size_that_is_foretold_is_never_too_small_and_hardly_too_large(some: list[Span]) -> None:
    data = TracesData()
    told = data.cost(parts(some))
    for part in parts(some):
        assert data.cost([part]) >= len(part.span)
        data.add(part)
    assert told == data.size
    assert data.spans == len(some)
    assert data.size - 40 * len(some) <= len(data.to_bytes()) <= data.size


def test_resources_and_scopes_are_said_once() -> None:
    shop, other = {"service.name": "shop"}, {"service.name": "other"}
    some = [
        a_span("00000000000000a1", resource=shop, scope_name="x"),
        a_span("00000000000000a2", resource=other, scope_name="x"),
        a_span("00000000000000a3", resource=dict(shop), scope_name="y"),
        a_span("00000000000000a4", resource=shop, scope_name="x"),
    ]
    message = WireTracesData.FromString(encode(some))
    assert [[len(scope.spans) for scope in one.scope_spans] for one in message.resource_spans] == [[2, 1], [1]]


def test_another_reader_finds_bytes_as_bytes_and_numbers_as_numbers() -> None:
    span = a_span(
        attributes={"raw": bytes_value(b"\x00\xff"), "int": 1, "float": 1.0, "yes": True, "nothing": None, "nan": "NaN"}
    )
    message = WireTracesData.FromString(encode([span]))
    written = message.resource_spans[0].scope_spans[0].spans[0].attributes
    assert {pair.key: pair.value.WhichOneof("value") for pair in written} == {
        "raw": "bytes_value",
        "int": "int_value",
        "float": "double_value",
        "yes": "bool_value",
        "nothing": None,
        "nan": "string_value",
    }


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"k": inner}], ids=["lists", "maps"])
def test_what_nests_to_the_limit_travels_and_what_nests_deeper_does_not(wrap: Any) -> None:
    deepest: Any = bytes_value(b"deep")
    for _ in range(MAX_DEPTH):
        deepest = wrap(deepest)
    span = _with(deepest, events=(Event("e", 1, {"a": deepest}),))
    assert _again(span) == span
    with pytest.raises(PermanentError, match="nested deeper than 32 levels"):
        encode([_with(wrap(deepest))])


@pytest.mark.parametrize(
    ("span", "reason"),
    [
        (_with(2**63), "out of range"),
        (msgspec.structs.replace(a_span(), name="\ud800"), "surrogates"),
        (msgspec.structs.replace(a_span(), attributes={"a": "\ud800"}), "surrogates"),
        (msgspec.structs.replace(a_span(), attributes={"a": b"raw"}), "type bytes"),
        (msgspec.structs.replace(a_span(), trace_id="no hex"), "hexadecimal"),
        (msgspec.structs.replace(a_span(), start_ns=-1), "out of range"),
    ],
    ids=["int", "name", "text", "type", "id", "time"],
)
def test_what_otlp_cannot_say_is_refused_with_the_span_named(span: Span, reason: str) -> None:
    with pytest.raises(PermanentError, match=f"00000000000000a1.*{reason}"):
        encode([a_span("00000000000000b2"), span])


@LAWS
@given(attributes)
def test_a_resource_is_kept(resource: dict[str, Any]) -> None:
    span = a_span(resource=resource)
    assert _again(span) == span
