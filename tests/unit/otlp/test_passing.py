"""What is passed on reads as what is decoded here: the same spans, the same refusals. And most spans are passed on as they came."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from unit.kafka.nouns import spans_of
from unit.otlp.test_otlp_encodings_agree import REQUESTS
from unit.otlp.wire_forms import SPAN_ID, TRACE_ID, as_json, request, text, wire_span

from collectors.otlp.decoding import Decoded
from collectors.otlp.fitting import MAX_ATTRIBUTES, MAX_EVENTS, MAX_NAME
from collectors.otlp.passing import PASSED_ON
from collectors.otlp.signal import Encoding, Signal
from collectors.otlp.traces import TRACES
from collectors.redaction.configured import made_of
from collectors.redaction.redactor import Redactor
from pipeline.config.redaction import RedactionSettings
from pipeline.errors import PermanentError

REDACTOR = made_of(RedactionSettings())
MAIL = "ada@example.com"


def _nested(depth: int) -> AnyValue:
    value = AnyValue()
    for _ in range(depth):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    return value


ODD: dict[str, list[WireSpan]] = {
    "a secret": [wire_span(attributes=[text("a", MAIL)]), wire_span(attributes=[text("b", "nothing")])],
    "no UTF-8": [wire_span(attributes=[text("a", "good"), text("b", "~~")]), wire_span()],
    "nested too deep": [wire_span(attributes=[KeyValue(key="a", value=_nested(40))])],
    "many attributes": [wire_span(attributes=[text(f"{n}", "") for n in range(MAX_ATTRIBUTES + 3)])],
    "many events": [wire_span(events=[WireSpan.Event() for _ in range(MAX_EVENTS + 3)])],
    "attributes of an event": [
        wire_span(events=[WireSpan.Event(attributes=[text(f"{n}", "") for n in range(MAX_ATTRIBUTES + 3)])])
    ],
    "a long name": [wire_span(attributes=[text("n" * (MAX_NAME + 1), "x")])],
    "a long name of a link's attribute": [wire_span(links=[WireSpan.Link(attributes=[text("n" * (MAX_NAME + 1), "x")])])],
    "a long text": [wire_span(attributes=[text("a", "x" * 5000)])],
    "a large span": [wire_span(attributes=[text("a", "x" * 5_000_000)])],
    "a kind that is none": [wire_span(kind=-1), wire_span()],
    "an event of no time": [wire_span(events=[WireSpan.Event(time_unix_nano=2**64 - 1)]), wire_span()],
    "a link to nothing": [wire_span(links=[WireSpan.Link(trace_id=b"x")]), wire_span()],
    "a bad id": [wire_span(span_id=b"x"), wire_span()],
}


def _read(signal: Signal[Any], body: bytes, encoding: Encoding, redactor: Redactor | None) -> Decoded[Any] | str:
    try:
        return signal.decoders[encoding](body, "shop", 42, redactor)
    except PermanentError as error:
        return str(error)


def _check(body: bytes, encoding: Encoding, redactor: Redactor | None) -> Decoded[Any] | str:
    passed, decoded = (_read(signal, body, encoding, redactor) for signal in (PASSED_ON, TRACES))
    if isinstance(passed, str) or isinstance(decoded, str):
        assert passed == decoded, "it is no request for either"
        return passed
    assert spans_of(passed.items) == list(decoded.items)
    assert [part.trace_id for part in passed.items] == [span.trace_id for span in decoded.items]
    for field in ("rejected", "message", "refused", "all_kept", "redacted", "ignored", "truncated"):
        assert getattr(passed, field) == getattr(decoded, field), field
    return passed


def _written(message: ExportTraceServiceRequest, encoding: Encoding) -> bytes:
    return message.SerializeToString() if encoding is Encoding.PROTOBUF else as_json(message)


@settings(max_examples=200, deadline=None)
@given(REQUESTS, st.sampled_from(Encoding), st.sampled_from([None, REDACTOR]))
def test_what_is_passed_on_is_what_would_be_stored_here(
    message: ExportTraceServiceRequest, encoding: Encoding, redactor: Redactor | None
) -> None:
    _check(_written(message, encoding), encoding, redactor)


@settings(max_examples=300, deadline=None)
@given(REQUESTS, st.integers(0, 300), st.binary(max_size=6), st.integers(0, 6))
def test_bytes_that_are_hardly_otlp_any_more_come_to_the_same(
    message: ExportTraceServiceRequest, at: int, junk: bytes, lost: int
) -> None:
    raw = message.SerializeToString()
    _check(raw[:at] + junk + raw[at + lost :], Encoding.PROTOBUF, REDACTOR)


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("spans", ODD.values(), ids=ODD)
def test_what_is_not_as_it_should_be_is_passed_on_as_it_would_be_stored(spans: list[WireSpan], encoding: Encoding) -> None:
    body = _written(request(*spans), encoding)
    for redactor in (None, REDACTOR):
        read = _check(body.replace(b"~~", b"\xff\xfe") if encoding is Encoding.PROTOBUF else body, encoding, redactor)
        assert isinstance(read, Decoded)


@pytest.mark.parametrize("place", ["resource", "scope"])
def test_each_span_tells_of_what_was_replaced_in_what_it_shares(place: str) -> None:
    message = request(wire_span(), wire_span(span_id=b"12345678"), service=MAIL if place == "resource" else "shop")
    if place == "scope":
        message.resource_spans[0].scope_spans[0].scope.name = MAIL
    passed = _check(message.SerializeToString(), Encoding.PROTOBUF, REDACTOR)
    assert isinstance(passed, Decoded)
    assert [span.attributes for span in spans_of(passed.items)] == [{"tracegrade.redacted": 1}] * 2


def test_a_resource_that_was_cut_makes_every_span_of_it_one_that_is_not_whole() -> None:
    message = request(wire_span())
    message.resource_spans[0].resource.attributes.append(text("a", "x" * 2_000_000))
    passed = _check(message.SerializeToString(), Encoding.PROTOBUF, None)
    assert isinstance(passed, Decoded)
    assert passed.truncated == 1


def test_a_span_that_needs_no_change_is_passed_on_byte_by_byte() -> None:
    plain = wire_span(attributes=[text("a", "x" * 3000), KeyValue(key="n", value=AnyValue(int_value=7))])
    secret = wire_span(span_id=b"12345678", attributes=[text("a", MAIL)])
    ours, changed = PASSED_ON.decoders[Encoding.PROTOBUF](request(plain, secret).SerializeToString(), "shop", 42, REDACTOR).items
    assert ours.span == plain.SerializeToString()
    assert MAIL.encode() not in changed.span
    assert (ours.project, ours.trace_id, ours.received_ns) == ("shop", TRACE_ID.hex(), 42)


def test_what_nobody_knows_of_a_span_is_passed_on_and_never_with_a_secret() -> None:
    unknown = wire_span(span_id=SPAN_ID).SerializeToString() + b"\xfa\x7d\x05plain"
    secret = wire_span(span_id=SPAN_ID).SerializeToString() + b"\xfa\x7d\x0fada@example.com"
    for raw, kept in ((unknown, True), (secret, False)):
        message = request(WireSpan.FromString(raw))
        (part,) = PASSED_ON.decoders[Encoding.PROTOBUF](message.SerializeToString(), "shop", 42, REDACTOR).items
        assert (raw[-5:] in part.span) == kept
