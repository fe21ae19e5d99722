"""Mending changes what a parser refuses, and nothing else; whatever the bytes, it ends and raises nothing else."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from unit.otlp.test_otlp_encodings_agree import ATTRIBUTES, SPANS
from unit.otlp.wire_forms import text, wire_span

from collectors.otlp import json_mending
from collectors.otlp.mending import LOG_RECORD, RESOURCE, SPAN, MendError, mended

LAWS = settings(max_examples=200, deadline=None)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@LAWS
@given(SPANS)
def test_a_span_that_is_well_stays_as_it_is(span: Span) -> None:
    raw = span.SerializeToString()
    assert mended(raw, SPAN) == raw


@LAWS
@given(ATTRIBUTES)
def test_a_resource_and_a_log_record_stay_as_they_are_too(attributes: list[KeyValue]) -> None:
    raw = Resource(attributes=attributes).SerializeToString()
    assert mended(raw, RESOURCE) == raw
    raw = LogRecord(attributes=attributes, body=AnyValue(string_value="x"), event_name="e").SerializeToString()
    assert mended(raw, LOG_RECORD) == raw


@LAWS
@given(st.binary(max_size=300))
def test_whatever_the_bytes_nothing_else_is_raised(raw: bytes) -> None:
    with suppress(MendError):
        assert mended(mended(raw, SPAN), SPAN) == mended(raw, SPAN)
    json_mending.mended(raw)


@pytest.mark.parametrize(
    "span",
    [
        wire_span(name="fifth"),
        wire_span(trace_state="fifth"),
        wire_span(status=Status(message="fifth")),
        wire_span(attributes=[text("fifth", "x")]),
        wire_span(attributes=[text("a", "fifth")]),
        wire_span(events=[Span.Event(name="fifth")]),
        wire_span(events=[Span.Event(attributes=[text("fifth", "x")])]),
        wire_span(links=[Span.Link(trace_state="fifth")]),
        wire_span(links=[Span.Link(attributes=[text("a", "fifth")])]),
    ],
    ids=["name", "trace state", "status", "key", "value", "event", "event's key", "link", "link's value"],
)
def test_every_text_of_a_span_is_mended_where_it_stands(span: Span) -> None:
    raw = span.SerializeToString()
    assert raw.count(b"fifth") == 1
    kept = mended(raw.replace(b"fifth", b"f\xff\xfe\xc3("), SPAN)
    assert kept.count("f\ufffd\ufffd\ufffd(".encode()) == 1
    assert Span.FromString(kept).ByteSize() == len(kept)


@LAWS
@given(VALUES, st.booleans())
def test_json_that_is_well_says_the_same_afterwards(value: Any, ensure_ascii: bool) -> None:
    body = json.dumps(value, ensure_ascii=ensure_ascii).encode("utf-8", "replace")
    assert json.loads(json_mending.mended(body)) == json.loads(body)


@pytest.mark.parametrize("closed", [True, False])
def test_what_is_deeper_than_any_parser_goes_is_null(closed: bool) -> None:
    body = b'{"a":' * 100 + b"[" * 100_000 + (b"]" * 100_000 if closed else b"") + b"}" * 100 + b" "
    if closed:
        value = json.loads(json_mending.mended(body))
        for _ in range(100):
            value = value["a"]
        assert str(value).count("[") == 100
    else:
        assert json_mending.mended(body)


@pytest.mark.parametrize(
    "body",
    [b'"\\' * 500_000, b'"' + b"\\" * 1_000_001, b'\\"' * 500_000, b"[{" * 500_000, b'"\\ud83d' * 150_000],
    ids=lambda body: repr(body[:12]),
)
def test_no_bytes_take_long(body: bytes) -> None:
    before = time.thread_time()
    json_mending.mended(body)
    json_mending.is_too_wide(body * 5)
    with suppress(MendError):
        mended(body, SPAN)
    assert time.thread_time() - before < 5
