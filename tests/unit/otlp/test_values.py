"""The limit of values: what counts as how many, in both encodings."""

from collections.abc import Callable

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from unit.otlp.wire_forms import SPAN_ID, TRACE_ID, as_json, request, text, wire_span

from collectors.otlp import json, protobuf
from collectors.otlp.body import TooLargeError
from collectors.otlp.passing import PASSED_ON
from collectors.otlp.signal import Encoding
from collectors.otlp.values import ATTRIBUTE, EVENT, MENDED, at_most, count

READERS: dict[str, Callable[[ExportTraceServiceRequest], object]] = {
    "protobuf": lambda sent: protobuf.decode(sent.SerializeToString(), "shop", 1),
    "JSON": lambda sent: json.decode(as_json(sent), "shop", 1),
    "passed on": lambda sent: PASSED_ON.decoders[Encoding.PROTOBUF](sent.SerializeToString(), "shop", 1, None),
}
SPANS: dict[str, tuple[Callable[[], WireSpan], int, tuple[str, ...]]] = {
    "attributes": (lambda: wire_span(attributes=[text(f"k{at}", "v") for at in range(7)]), 7 * ATTRIBUTE, tuple(READERS)),
    "events": (lambda: wire_span(events=[WireSpan.Event(name="e")] * 6), 6 * EVENT, tuple(READERS)),
    "links": (lambda: wire_span(links=[WireSpan.Link(trace_id=TRACE_ID, span_id=SPAN_ID)] * 5), 5 * EVENT, tuple(READERS)),
    "numbers of a list": (
        lambda: wire_span(
            attributes=[KeyValue(key="k", value=AnyValue(array_value=ArrayValue(values=[AnyValue(double_value=1.5)] * 40)))]
        ),
        ATTRIBUTE + 40,
        ("protobuf", "JSON"),  # nobody makes a list of what is passed on
    ),
    "pairs of a map": (
        lambda: wire_span(
            attributes=[
                KeyValue(key="k", value=AnyValue(kvlist_value=KeyValueList(values=[text(f"{at}", "v") for at in range(9)])))
            ]
        ),
        ATTRIBUTE + 9 * ATTRIBUTE,
        ("protobuf", "JSON"),
    ),
}


@pytest.mark.parametrize(("name", "where"), [(name, where) for name, (_, _, readers) in SPANS.items() for where in readers])
def test_the_limit_is_exact(name: str, where: str) -> None:
    span, values, _ = SPANS[name]
    sent = request(span(), span())
    most = ATTRIBUTE * len(sent.resource_spans[0].resource.attributes) + 2 * values
    with at_most(most):
        READERS[where](sent)
    with at_most(most - 1), pytest.raises(TooLargeError, match=f"more than {most - 1} values") as refused:
        READERS[where](sent)
    assert "receiver.max_values" in str(refused.value)


def test_to_mend_text_counts_as_values() -> None:
    body = request(wire_span(name="X" * 16_000)).SerializeToString().replace(b"XX", b"\xff\xfe")
    with at_most(16_000 // MENDED // 2), pytest.raises(TooLargeError):
        protobuf.decode(body, "shop", 1)
    with at_most(2 * 16_000 // MENDED):
        assert protobuf.decode(body, "shop", 1).items[0].name == "\ufffd" * 16_000


def test_each_request_has_its_own_room_and_nobody_else_a_limit() -> None:
    for _ in range(2):
        with at_most(5):
            count(5)
    count(10**9)
    with at_most(5):
        with pytest.raises(TooLargeError):
            count(6)
        with at_most(7):
            count(7)
