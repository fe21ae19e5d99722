"""Law: a request says the same in protobuf and in JSON."""

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from unit.otlp.wire_forms import as_json

from collectors.otlp import json, protobuf
from pipeline.errors import PermanentError
from pipeline.model.span import seal

SCALARS = st.one_of(
    st.builds(AnyValue),
    st.builds(AnyValue, string_value=st.text(max_size=20)),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AnyValue, double_value=st.floats(width=64)),
    st.builds(AnyValue, bytes_value=st.binary(max_size=8)),
)


def _pairs(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[list[KeyValue]]:
    return st.lists(st.builds(KeyValue, key=st.text(max_size=5), value=values), max_size=4)


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(AnyValue, array_value=st.builds(ArrayValue, values=st.lists(inner, max_size=3))),
        st.builds(AnyValue, kvlist_value=st.builds(KeyValueList, values=_pairs(inner))),
    ),
    max_leaves=6,
)
ATTRIBUTES = _pairs(VALUES)
TIMES = st.one_of(st.just(0), st.integers(0, 2**64 - 1), st.integers(2**60, 2**61))
UINT32 = st.integers(0, 2**32 - 1)


def _ids(size: int) -> st.SearchStrategy[bytes]:
    return st.one_of(st.binary(min_size=size, max_size=size), st.sampled_from([b"", bytes(size), b"x", b"x" * (2 * size)]))


SPANS = st.builds(
    WireSpan,
    trace_id=_ids(16),
    span_id=_ids(8),
    parent_span_id=_ids(8),
    trace_state=st.text(max_size=5),
    flags=UINT32,
    name=st.text(max_size=10),
    kind=st.one_of(st.integers(0, 6), st.integers(-(2**31), 2**31 - 1)),
    start_time_unix_nano=TIMES,
    end_time_unix_nano=TIMES,
    attributes=ATTRIBUTES,
    dropped_attributes_count=UINT32,
    dropped_events_count=UINT32,
    dropped_links_count=UINT32,
    events=st.lists(st.builds(WireSpan.Event, name=st.text(max_size=5), time_unix_nano=TIMES, attributes=ATTRIBUTES), max_size=2),
    links=st.lists(st.builds(WireSpan.Link, trace_id=_ids(16), span_id=_ids(8), attributes=ATTRIBUTES), max_size=2),
    status=st.builds(Status, code=st.integers(0, 3), message=st.text(max_size=5)),
)
REQUESTS = st.builds(
    ExportTraceServiceRequest,
    resource_spans=st.lists(
        st.builds(
            ResourceSpans,
            resource=st.builds(Resource, attributes=ATTRIBUTES),
            scope_spans=st.lists(
                st.builds(
                    ScopeSpans,
                    scope=st.builds(InstrumentationScope, name=st.text(max_size=5), version=st.text(max_size=5)),
                    spans=st.lists(SPANS, max_size=3),
                ),
                max_size=2,
            ),
        ),
        max_size=2,
    ),
)


@settings(max_examples=200, deadline=None)
@given(message=REQUESTS, ensure_ascii=st.booleans())
def test_a_request_gives_the_same_spans_and_refusals_in_protobuf_and_in_json(
    message: ExportTraceServiceRequest, ensure_ascii: bool
) -> None:
    from_protobuf = protobuf.decode(message.SerializeToString(), "p", 7)
    from_json = json.decode(as_json(message, ensure_ascii=ensure_ascii), "p", 7)
    assert [one.reason for one in from_json.refused] == [one.reason for one in from_protobuf.refused]
    # What was refused is kept in the encoding that it came in.
    assert replace(from_json, refused=()) == replace(from_protobuf, refused=())
    assert len(from_protobuf.spans) + from_protobuf.rejected == sum(
        len(scope.spans) for resource in message.resource_spans for scope in resource.scope_spans
    )
    assert all(seal(span) == span for span in from_protobuf.spans), "spans come out sealed"


@settings(max_examples=300, deadline=None)
@given(body=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_whatever_comes_is_read_or_refused_and_raises_nothing_else(body: bytes) -> None:
    for decode in (protobuf.decode, json.decode):
        with suppress(PermanentError):
            decode(body, "p", 7)
