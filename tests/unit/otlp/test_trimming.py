"""Trimming: of a message that is too wide the first fields are kept, byte by byte, and the others are counted."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from unit.otlp.test_otlp_encodings_agree import SPANS
from unit.otlp.wire_forms import as_json, request, text, wire_span

from collectors.otlp import json, protobuf, trimming
from collectors.otlp.fitting import MAX_ATTRIBUTES, MAX_EVENTS, MAX_LINKS
from collectors.otlp.mending import SPAN
from collectors.otlp.trimming import LARGE, OF_SPAN, TooWideError, trimmed

LAWS = settings(max_examples=200, deadline=None)
FEW = {9: 2, 11: 1, 13: 1}
"""How many attributes, events and links are kept in these tests."""


@LAWS
@given(SPANS)
def test_the_first_fields_are_kept_and_the_others_counted(span: Span) -> None:
    with patch.object(trimming, "LARGE", 0):
        raw, left_out = trimmed(span.SerializeToString(), FEW, SPAN)
    expected = Span.FromString(span.SerializeToString())
    for number, field in ((9, expected.attributes), (11, expected.events), (13, expected.links)):
        assert left_out[number] == max(0, len(field) - FEW[number])
        del field[FEW[number] :]
    assert Span.FromString(raw) == expected


@LAWS
@given(st.binary(max_size=300))
def test_whatever_the_bytes_nothing_is_raised_and_nothing_made_up(raw: bytes) -> None:
    with patch.object(trimming, "LARGE", 0):
        assert len(trimmed(raw, FEW, SPAN)[0]) <= len(raw)


def test_values_within_are_counted_and_those_that_the_parser_refuses_are_not() -> None:
    deep = b""
    for _ in range(2000):
        for tag in (b"\x0a", b"\x2a"):  # values, and array_value around them
            size = len(deep)
            deep = tag + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + deep
    raw = Span(attributes=[text("a", "b")] * 3).SerializeToString() + b"\x4a\x00" * 7
    nested = b"\x4a" + bytes([len(deep) & 0x7F | 0x80, len(deep) >> 7 & 0x7F | 0x80, len(deep) >> 14]) + deep
    with patch.object(trimming, "LARGE", 0), patch.object(trimming, "MAX_VALUES", 19):
        assert trimmed(raw, OF_SPAN, SPAN) == (raw, {}), "10 attributes, 3 of them with a key, a value and a text"
        with pytest.raises(TooWideError, match="19 values"):
            trimmed(raw + b"\x4a\x00", OF_SPAN, SPAN)
    with patch.object(trimming, "LARGE", 0), patch.object(trimming, "MAX_VALUES", 200):
        assert trimmed(nested, OF_SPAN, SPAN) == (nested, {})


@pytest.mark.parametrize("field", ["attributes", "events", "links"])
def test_what_is_trimmed_reads_as_what_is_counted_one_by_one(field: str) -> None:
    limit = {"attributes": MAX_ATTRIBUTES, "events": MAX_EVENTS, "links": MAX_LINKS}[field]
    some = {
        "attributes": [text(f"k{at}", "x" * 100) for at in range(limit + 2000)],
        "events": [Span.Event(name=f"e{at} {'x' * 100}") for at in range(limit + 2000)],
        "links": [Span.Link(trace_state="x" * 100) for _ in range(limit + 2000)],
    }[field]
    message = request(wire_span(**{field: some, "dropped_attributes_count": 5}))
    body = message.SerializeToString()
    assert len(body) > LARGE
    (span,) = protobuf.decode(body, "shop", 1).spans
    assert span.dropped == 2005
    assert len(getattr(span, field)) == limit + (field == "attributes"), "and the flag, which is an attribute"
    assert (span,) == json.decode(as_json(message), "shop", 1).spans
