"""A span of any size is kept: fitted in one way, by whomever, and recognisable."""

import re
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import a_span
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from unit.otlp.wire_forms import as_json, request, text, wire_span

from collectors.kafka.records import LARGEST_RECORD, Incoming, SpansRecord, span_parts
from collectors.kafka.records import decode as decode_record
from collectors.otlp import json, protobuf
from collectors.otlp.cutting import LEAST, cut, measured
from collectors.otlp.encode import encode, parts
from collectors.otlp.fitting import (
    MAX_ATTRIBUTES,
    MAX_EVENTS,
    MAX_LINKS,
    MAX_NAME,
    MAX_RESOURCE,
    MAX_SPAN,
    Loss,
    fewer,
    fewer_attributes,
    fitted,
    fitted_resource,
)
from collectors.otlp.json_mending import MAX_OBJECTS
from collectors.otlp.trimming import MAX_FIELDS, MAX_VALUES
from pipeline.model.span import TRUNCATED_FIELDS, Event, Link, Span, seal

BIG = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
ROOT = Path(__file__).parents[3]
MARK = re.compile(r"…\[tracegrade cut (\d+) bytes, blake2b ([0-9a-f]{32})\]…")

sizes = st.sampled_from([0, 1, 300, 5_000, 300_000, 1_500_000, MAX_SPAN, 5_000_000])
texts = st.builds(
    lambda unit, size: unit * (size // len(unit.encode())), st.sampled_from(["x", "é", "\U0001f600", '{"a": "b"}', "\x00"]), sizes
)
values = st.one_of(
    texts,
    st.builds(lambda size: [1] * (size // 20), sizes),
    st.builds(lambda size: {f"key {at}": at for at in range(size // 40)}, sizes),
    st.builds(lambda said: [{"role": "user", "parts": [{"type": "text", "content": said}]}], texts),
    st.builds(lambda size: {"k" * (size // 2): 1}, sizes),
    st.builds(lambda size: {"bytesValue": "A" * (size // 4 * 4)}, sizes),
    st.sampled_from([None, True, -1, 2.5, {}, []]),
)
attributes = st.builds(
    lambda some, count, width: some | {f"{at:0{width}}": at for at in range(count)},
    st.dictionaries(st.sampled_from(["a", "b", "c" * 5000, "é" * 1025, TRUNCATED_FIELDS]), values, max_size=3),
    st.sampled_from([0, 1, MAX_ATTRIBUTES - 1, MAX_ATTRIBUTES, 3000]),
    st.sampled_from([1, 1000]),
)
short = st.sampled_from(["", "x" * 700, "é" * 2000])
counts = st.sampled_from([(0, "x" * 5_000_000), (1, "x" * 5_000_000), (3, "é" * 900_000), (1500, "x" * 2500), (2000, "")])
"""How many events or links there are, and what each of them says: gigabytes would try the test's memory, and not the product's."""
spans = st.builds(
    a_span,
    name=texts,
    status_message=texts,
    trace_state=texts,
    attributes=attributes,
    events=st.builds(lambda name, said: (Event(name, 1, {"a": said[1], "b": name}),) * said[0], short, counts),
    links=st.builds(lambda said: (Link("", "", {"a": said[1]}),) * said[0], counts),
    resource=attributes,
    scope_name=st.sampled_from(["", "tracer", "s" * 70_000]),
    dropped=st.sampled_from([0, 2**32 - 1]),
)


def _fitted(span: Span, size: int = 64 * 1024 * 1024) -> Span:
    """As a decoder makes a span, whatever encoding it came in."""
    of_resource = Loss()
    resource = fitted_resource(fewer_attributes(span.resource, of_resource), size, of_resource)
    kept, loss = fewer(msgspec.structs.replace(span, resource=resource))
    return seal(fitted(kept, size, loss))


@BIG
@given(spans)
def test_any_span_whatever_becomes_a_record_that_the_topic_takes_and_reads_back_as_the_same_span(span: Span) -> None:
    kept = _fitted(span)
    (part,) = span_parts([kept])
    assert len(part.span) <= MAX_SPAN
    assert len(part.resource) <= MAX_RESOURCE
    record = SpansRecord("default", 0)
    record.add(part)
    outgoing = record.outgoing()
    assert len(outgoing.value) <= LARGEST_RECORD
    (read,) = decode_record(Incoming(outgoing.topic, 0, 0, 1, outgoing.value, outgoing.headers)).records
    assert read == kept, "fitting again, on the other side of a broker, changes nothing"


@BIG
@given(spans)
def test_what_is_measured_is_never_less_than_what_is_written(span: Span) -> None:
    (part,) = parts([msgspec.structs.replace(span, dropped=0, resource={})])
    content = {"name": span.name, "status_message": span.status_message, "trace_state": span.trace_state}
    content |= {"attributes": span.attributes, "links": [{"attributes": one.attributes} for one in span.links]}  # type: ignore[dict-item]
    content |= {"events": [{"name": one.name, "attributes": one.attributes} for one in span.events]}  # type: ignore[dict-item]
    assert measured(content) >= len(part.span)


def _big_request(**fields: Any) -> ExportTraceServiceRequest:
    return request(wire_span(**fields))


BIG_REQUESTS: dict[str, Callable[[], ExportTraceServiceRequest]] = {
    "one text": lambda: _big_request(attributes=[text("a", "x" * 10_000_000), text("b", "y")]),
    "texts": lambda: _big_request(attributes=[text(f"{at}", "é" * 100_000) for at in range(40)]),
    "messages": lambda: _big_request(
        attributes=[
            KeyValue(
                key="gen_ai.input.messages",
                value=AnyValue(
                    array_value=ArrayValue(
                        values=[
                            AnyValue(kvlist_value=KeyValueList(values=[text("role", "user"), text("content", "x" * 6_000_000)]))
                        ]
                    )
                ),
            )
        ]
    ),
    "numbers": lambda: _big_request(
        attributes=[KeyValue(key="n", value=AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)] * 400_000)))]
    ),
    "attributes": lambda: _big_request(attributes=[text(f"{at}", "v") for at in range(5000)]),
    "keys": lambda: _big_request(attributes=[text("k" * 70_000, "v"), text("k" * 70_001, "v")]),
    "events": lambda: _big_request(events=[WireSpan.Event(name="e" * 5000, attributes=[text("a", "b" * 900)])] * 1500),
    "links": lambda: _big_request(links=[WireSpan.Link(attributes=[text("a", "b")])] * 1500),
    "resource": lambda: request(wire_span(), wire_span(name="other"), service="s" * 3_000_000),
    "name": lambda: _big_request(name="n" * 9_000_000, trace_state="t" * 9_000_000),
}


@pytest.mark.parametrize("name", BIG_REQUESTS)
def test_a_big_span_is_the_same_in_both_encodings_however_often_it_is_sent(name: str) -> None:
    message = BIG_REQUESTS[name]()
    one = protobuf.decode(message.SerializeToString(), "default", 1)
    assert one.rejected == 0
    assert json.decode(as_json(message, ensure_ascii=False), "default", 1) == one
    assert protobuf.decode(message.SerializeToString(), "default", 2).spans[0].content_hash == one.spans[0].content_hash
    for span in one.spans:
        assert TRUNCATED_FIELDS in {**span.attributes, **span.resource}
        assert span_parts([span])


def _only(message: ExportTraceServiceRequest) -> Span:
    (span,) = protobuf.decode(message.SerializeToString(), "default", 1).spans
    return span


def test_of_a_long_text_head_and_tail_stay_with_its_length_and_its_hash() -> None:
    said = "head " + "ab\U0001f600" * 2_000_000 + " tail"
    span = _only(_big_request(attributes=[text("a", said), text("short", "stays")]))
    assert span.attributes[TRUNCATED_FIELDS] == ["attributes.a"]
    assert span.attributes["short"] == "stays"
    kept = span.attributes["a"]
    assert kept.startswith("head ab\U0001f600")
    assert kept.endswith("b\U0001f600 tail")
    (mark,) = MARK.finditer(kept)
    assert int(mark[1]) == len(said.encode())
    assert mark[2] == blake2b(said.encode(), digest_size=16).hexdigest()
    assert said.startswith(kept[: mark.start()])
    assert said.endswith(kept[mark.end() :])
    assert MAX_SPAN * 0.9 < len(kept.encode()) < MAX_SPAN


def test_a_structure_keeps_its_shape_while_cutting_its_texts_is_enough() -> None:
    (message,) = _only(BIG_REQUESTS["messages"]()).attributes["gen_ai.input.messages"]
    assert message["role"] == "user"
    assert MARK.search(message["content"])


def test_the_longest_texts_are_cut_and_the_others_stay_whole() -> None:
    span = _only(
        _big_request(attributes=[text("long", "x" * 6_000_000), text("longer", "y" * 9_000_000), text("ok", "z" * 900_000)])
    )
    assert span.attributes[TRUNCATED_FIELDS] == ["attributes.long", "attributes.longer"]
    assert len(span.attributes["long"]) == len(span.attributes["longer"])
    assert span.attributes["ok"] == "z" * 900_000


def test_too_many_attributes_events_and_links_are_counted_as_dropped_and_told() -> None:
    many = [text(f"{at}", "v") for at in range(MAX_ATTRIBUTES + 7)]
    span = _only(
        _big_request(
            attributes=many,
            events=[WireSpan.Event(name=f"{at}", attributes=many if at == 0 else []) for at in range(MAX_EVENTS + 2)],
            links=[WireSpan.Link(attributes=[text("at", f"{at}")]) for at in range(MAX_LINKS + 3)],
            dropped_attributes_count=1,
        )
    )
    assert span.dropped == 1 + 7 + 7 + 2 + 3
    assert list(span.attributes) == [*(f"{at}" for at in range(MAX_ATTRIBUTES)), TRUNCATED_FIELDS]
    assert span.attributes[TRUNCATED_FIELDS] == ["attributes", "events", "events.attributes", "links"]
    assert [event.name for event in span.events] == [f"{at}" for at in range(MAX_EVENTS)]
    assert len(span.events[0].attributes) == MAX_ATTRIBUTES
    assert [link.attributes["at"] for link in span.links] == [f"{at}" for at in range(MAX_LINKS)]
    assert protobuf.decode(encode([span]), "default", 1).spans == (span,), "what is told of it is no attribute too many"


@pytest.mark.parametrize("count", [MAX_ATTRIBUTES - 1, MAX_ATTRIBUTES])
def test_what_is_at_the_limits_is_not_touched(count: int) -> None:
    span = a_span(
        attributes={f"{at:0{MAX_NAME}}": "" for at in range(count)},
        events=(Event("e", 1, {"a": "b"}),) * MAX_EVENTS,
        links=(Link("", "", {}),) * MAX_LINKS,
        scope_name="s" * MAX_NAME,
    )
    kept, loss = fewer(span)
    assert fitted(kept, 100_000, loss) == span


def test_keys_that_are_too_long_are_cut_and_stay_apart() -> None:
    span = _only(BIG_REQUESTS["keys"]())
    first, second, flag = span.attributes
    assert flag == TRUNCATED_FIELDS
    assert first != second
    assert max(len(first), len(second)) <= MAX_NAME
    assert span.attributes[TRUNCATED_FIELDS] == ["attributes (keys)"]


def test_a_cut_text_has_the_size_that_was_asked_for() -> None:
    for size in (LEAST, 1000, 1001):
        for said in ("x" * 5000, "é" * 5000, "\U0001f600" * 5000):
            assert size - 8 <= len(cut(said, size).encode()) <= size


HOSTILE: dict[str, Callable[[], bytes]] = {
    "10 MB of text": lambda: request(wire_span(attributes=[text("a", "x" * 10_000_000)])).SerializeToString(),
    "1,000,000 attributes": lambda: request(
        wire_span(attributes=[text(f"{at}", "") for at in range(1_000_000)])
    ).SerializeToString(),
    "20,000 spans": lambda: request(*[wire_span(span_id=at.to_bytes(8, "big")) for at in range(1, 20_001)]).SerializeToString(),
    "5 million empty attributes": lambda: (
        request(wire_span()).SerializeToString()
        + _field(1, _field(2, _field(2, wire_span().SerializeToString() + b"\x4a\x00" * 5_000_000)))
    ),
    "2 million empty values": lambda: (
        request(wire_span()).SerializeToString()
        + _field(
            1, _field(2, _field(2, wire_span().SerializeToString() + _field(9, _field(2, _field(5, b"\x0a\x00" * 2_000_000)))))
        )
    ),
    "32 million empty values": lambda: _field(
        1, _field(2, _field(2, wire_span().SerializeToString() + _field(9, _field(2, _field(5, b"\x0a\x00" * 32_000_000)))))
    ),
}


def _field(number: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size > 127:
        length, size = length + bytes([size % 128 + 128]), size // 128
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


_DECODE = """
import resource, sys, time
from collectors.otlp import protobuf
body = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
decoded = protobuf.decode(body, "p", 1)
print(len(decoded.spans), decoded.rejected, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(
    ("name", "spans", "rejected"),
    [
        ("10 MB of text", 1, 0),
        ("1,000,000 attributes", 1, 0),
        ("20,000 spans", 20_000, 0),
        ("5 million empty attributes", 1, 1),
        ("2 million empty values", 1, 1),
        ("32 million empty values", 0, 1),
    ],
)
def test_what_is_wide_costs_bounded_time_and_memory(name: str, spans: int, rejected: int) -> None:
    ran = subprocess.run([sys.executable, "-c", _DECODE], input=HOSTILE[name](), stdout=subprocess.PIPE, check=True, cwd=ROOT)
    accepted, refused, seconds, kibibytes = ran.stdout.split()
    assert (int(accepted), int(refused)) == (spans, rejected)
    assert float(seconds) < 5
    assert int(kibibytes) < 500 * 1024


def _wide_json() -> bytes:
    one = as_json(request(wire_span())).decode()
    wide = one.replace('"name": "chat"', '"attributes": [' + ",".join(["{}"] * (MAX_OBJECTS + 1)) + "]")
    head = len("{") + len(chr(34) + "resourceSpans" + chr(34) + ": [")
    return one.replace('"scopeSpans"', f'"x": 1}}, {wide[head:-2]}, {{"scopeSpans"').encode()


@pytest.mark.parametrize(
    ("decode", "wide", "many"),
    [
        (protobuf.decode, HOSTILE["5 million empty attributes"], f"{MAX_FIELDS} fields"),
        (protobuf.decode, HOSTILE["2 million empty values"], f"{MAX_VALUES} values"),
        (json.decode, _wide_json, f"{MAX_OBJECTS} values"),
    ],
    ids=["protobuf, fields", "protobuf, values", "json"],
)
def test_more_than_memory_holds_is_refused_before_it_is_parsed(
    decode: Callable[[bytes, str, int], Any], wide: Callable[[], bytes], many: str
) -> None:
    decoded = decode(wide(), "p", 1)
    assert (len(decoded.spans), decoded.rejected) == (1, 1)
    assert f"has more than {many}" in decoded.message
