"""What becomes of a span's fields, in either encoding."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from unit.otlp.wire_forms import SPAN_ID, START, TRACE_ID, as_json, request, text, wire_span

from collectors.otlp import json, protobuf
from collectors.otlp.decoding import Decoded
from collectors.otlp.mending import MAX_DEPTH, TOO_DEEP
from pipeline.model.span import Event, Link, Span, seal

Decode = Callable[[Message], Decoded[Span]]


def _from_protobuf(message: Message) -> Decoded[Span]:
    return protobuf.decode(message.SerializeToString(), "shop", 42)


def _from_json(message: Message) -> Decoded[Span]:
    return json.decode(as_json(message), "shop", 42)


@pytest.fixture(params=[_from_protobuf, _from_json], ids=["protobuf", "json"])
def decode(request: pytest.FixtureRequest) -> Decode:
    return request.param  # type: ignore[no-any-return]


def _only(decoded: Decoded[Span]) -> Span:
    assert decoded.rejected == 0, decoded.message
    (span,) = decoded.spans
    return span


def _attribute(decode: Decode, value: AnyValue) -> Any:
    return _only(decode(request(wire_span(attributes=[KeyValue(key="a", value=value)])))).attributes["a"]


def test_every_field_of_a_span_is_kept(decode: Decode) -> None:
    span = wire_span(
        parent_span_id=b"\x01" * 8,
        trace_state="a=b",
        flags=0x301,
        kind=WireSpan.SPAN_KIND_CLIENT,
        attributes=[text("gen_ai.operation.name", "chat")],
        dropped_attributes_count=1,
        dropped_events_count=2,
        dropped_links_count=3,
        events=[WireSpan.Event(name="exception", time_unix_nano=START, attributes=[text("exception.type", "E")])],
        links=[WireSpan.Link(trace_id=b"\x02" * 16, span_id=b"\x03" * 8, attributes=[text("why", "retry")])],
        status=Status(code=Status.STATUS_CODE_ERROR, message="boom"),
    )
    expected = seal(
        Span(
            project="shop",
            trace_id="5b8efff798038103d269b633813fc60c",
            span_id="eee19b7ec3c1b174",
            parent_id="01" * 8,
            name="chat",
            start_ns=START,
            end_ns=START + 1,
            received_ns=42,
            kind=3,
            status_code=2,
            status_message="boom",
            attributes={"gen_ai.operation.name": "chat"},
            events=(Event("exception", START, {"exception.type": "E"}),),
            links=(Link("02" * 16, "03" * 8, {"why": "retry"}),),
            resource={"service.name": "shop"},
            scope_name="tracer",
            scope_version="1.2",
            trace_state="a=b",
            flags=0x301,
            dropped=6,
        )
    )
    assert decode(request(span)) == Decoded((expected,))


def test_a_span_with_nothing_but_ids_is_accepted(decode: Decode) -> None:
    bare = WireSpan(trace_id=TRACE_ID, span_id=SPAN_ID)
    message = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[bare])])])
    span = _only(decode(message))
    assert (span.kind, span.parent_id, span.name, span.start_ns, span.end_ns, span.resource) == (0, "", "", 0, 0, {})


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (AnyValue(), None),
        (AnyValue(string_value=""), ""),
        (AnyValue(string_value="é\u0000\U0001f600"), "é\u0000\U0001f600"),
        (AnyValue(bool_value=False), False),
        (AnyValue(int_value=-(2**63)), -(2**63)),
        (AnyValue(int_value=0), 0),
        (AnyValue(double_value=1.0), 1.0),
        (AnyValue(double_value=float("nan")), "NaN"),
        (AnyValue(double_value=float("inf")), "Infinity"),
        (AnyValue(double_value=float("-inf")), "-Infinity"),
        (AnyValue(bytes_value=b"\x00\xff"), {"bytesValue": "AP8="}),
        (AnyValue(bytes_value=b""), {"bytesValue": ""}),
        (
            AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue(), AnyValue(string_value="x")])),
            [1, None, "x"],
        ),
        (AnyValue(array_value=ArrayValue()), []),
        (AnyValue(kvlist_value=KeyValueList(values=[text("k", "v")])), {"k": "v"}),
        (AnyValue(kvlist_value=KeyValueList()), {}),
    ],
    ids=str,
)
def test_a_value_is_kept_as_a_plain_value(decode: Decode, value: AnyValue, kept: Any) -> None:
    found = _attribute(decode, value)
    assert (found, type(found)) == (kept, type(kept))


def test_of_a_key_that_is_there_twice_the_last_counts(decode: Decode) -> None:
    span = _only(decode(request(wire_span(attributes=[text("a", "1"), text("b", "2"), text("a", "3")]))))
    assert span.attributes == {"a": "3", "b": "2"}


def test_an_all_zero_parent_is_no_parent(decode: Decode) -> None:
    assert _only(decode(request(wire_span(parent_span_id=bytes(8))))).parent_id == ""


def test_an_unknown_enum_number_survives(decode: Decode) -> None:
    span = _only(decode(request(wire_span(kind=77, status=Status(code=9)))))  # type: ignore[arg-type] # a number of the future
    assert (span.kind, span.status_code) == (77, 9)


def test_a_link_that_leads_nowhere_is_kept(decode: Decode) -> None:
    span = _only(decode(request(wire_span(links=[WireSpan.Link(attributes=[text("why", "unknown")])]))))
    assert span.links == (Link("", "", {"why": "unknown"}),)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"trace_id": b""}, "traceId"),
        ({"trace_id": bytes(16)}, "traceId"),
        ({"trace_id": b"x" * 24}, "traceId"),
        ({"span_id": b""}, "spanId"),
        ({"span_id": bytes(8)}, "spanId"),
        ({"span_id": b"x" * 7}, "spanId"),
        ({"parent_span_id": b"x" * 16}, "parentSpanId"),
        ({"links": [WireSpan.Link(trace_id=b"x", span_id=SPAN_ID)]}, "links.traceId"),
        ({"links": [WireSpan.Link(trace_id=TRACE_ID, span_id=b"x")]}, "links.spanId"),
        ({"end_time_unix_nano": 2**63}, "endTimeUnixNano"),
        ({"events": [WireSpan.Event(time_unix_nano=2**64 - 1)]}, "events.timeUnixNano"),
        ({"kind": 256}, "kind"),
        ({"kind": -1}, "kind"),
    ],
    ids=str,
)
def test_a_bad_span_is_refused_alone_with_the_field_named(decode: Decode, fields: dict[str, Any], field: str) -> None:
    decoded = decode(request(wire_span(name="before"), wire_span(**fields), wire_span(name="after")))
    assert [span.name for span in decoded.spans] == ["before", "after"]
    assert decoded.rejected == 1
    assert decoded.message.startswith("1 of 3 spans were rejected: ")
    assert field in decoded.message


def _nested(levels: int) -> AnyValue:
    value = AnyValue(string_value="deep")
    for _ in range(levels):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    return value


@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1])
def test_a_list_may_nest_to_the_limit_and_what_is_deeper_is_replaced(decode: Decode, levels: int) -> None:
    deep = KeyValue(key="deep", value=_nested(levels))
    message = request(wire_span(attributes=[deep], events=[WireSpan.Event(attributes=[deep])]))
    message.resource_spans[0].resource.attributes.append(deep)
    span = _only(decode(message))
    for value in (span.attributes["deep"], span.events[0].attributes["deep"], span.resource["deep"]):
        for _ in range(MAX_DEPTH):
            (value,) = value  # noqa: PLW2901 - one level further in
        assert value == ("deep" if levels == MAX_DEPTH else TOO_DEEP)


def test_a_request_without_spans_has_none(decode: Decode) -> None:
    empty = ExportTraceServiceRequest()
    envelopes = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(), ResourceSpans(resource=Resource(), scope_spans=[ScopeSpans()])]
    )
    assert decode(empty) == decode(envelopes) == Decoded()


def test_the_message_about_many_bad_spans_stays_short(decode: Decode) -> None:
    decoded = decode(request(*[wire_span(trace_id=b"x" * size) for size in range(1, 16) for _ in range(2)]))
    assert decoded.rejected == 30
    assert decoded.message.endswith("; and 10 other reasons")
    assert len(decoded.message) < 600


def test_each_span_has_the_resource_and_scope_it_came_with(decode: Decode) -> None:
    message = request(wire_span(name="a"), service="one")
    message.MergeFrom(request(wire_span(name="b"), service="two"))
    assert [(span.name, span.resource["service.name"]) for span in decode(message).spans] == [("a", "one"), ("b", "two")]


def test_fields_that_nobody_knows_are_ignored(decode: Decode) -> None:
    span = Resource(attributes=[text("service.name", "shop")], dropped_attributes_count=3)
    message = request(wire_span())
    message.resource_spans[0].resource.CopyFrom(span)
    message.resource_spans[0].schema_url = "https://opentelemetry.io/schemas/1.37.0"
    assert _only(decode(message)).resource == {"service.name": "shop"}
