"""What a bridge reads of what others wrote: every good span of it, and of the rest the bytes."""

import msgspec
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from unit.kafka.foreign import BAD_SPANS, GOOD, NOW, ODD_SPANS, POISON, a_record, otlp, otlp_json, request_of
from unit.kafka.nouns import spans_of

from collectors.kafka.bridge_records import OLDEST, Carried, read, received_ns
from collectors.otlp import content, protobuf
from collectors.otlp.signal import Encoding
from pipeline.errors import PermanentError
from pipeline.runtime.guard import or_dead_letter


def names(carried: Carried) -> list[str]:
    return [span.name for span in spans_of(carried.spans)]


def test_both_encodings_are_told_apart_by_their_content_and_mean_the_same() -> None:
    ours = read(a_record(otlp("one", "two")), "shop", "auto", NOW)
    theirs = read(a_record(otlp_json("one", "two")), "shop", "auto", NOW)
    assert names(ours) == names(theirs) == ["one", "two"]
    assert {span.project for span in ours.spans} == {"shop"}
    assert spans_of(ours.spans) == spans_of(theirs.spans)


def test_fields_in_the_order_of_the_collector_are_read() -> None:
    assert names(read(a_record(request_of(GOOD)), "shop", "auto", NOW)) == ["odd"]


def test_a_value_that_reads_as_json_to_a_topic_of_protobuf_is_refused() -> None:
    with pytest.raises(PermanentError, match="protobuf"):
        read(a_record(otlp_json()), "shop", "otlp_proto", NOW)
    with pytest.raises(PermanentError, match="JSON"):
        read(a_record(otlp()), "shop", "otlp_json", NOW)


@pytest.mark.parametrize("value", POISON.values(), ids=POISON)
def test_a_record_that_is_no_otlp_is_refused_whole(value: bytes | None) -> None:
    reasons: list[str] = []
    carried = or_dead_letter(lambda: read(a_record(value), "shop", "auto", NOW), reasons.append)
    assert carried.bad if carried is not None else reasons


@pytest.mark.parametrize("bad", BAD_SPANS.values(), ids=BAD_SPANS)
def test_a_bad_span_never_loses_its_neighbours_and_its_bytes_are_kept(bad: bytes) -> None:
    carried = read(a_record(request_of(GOOD, bad, GOOD)), "shop", "auto", NOW)
    assert names(carried) == ["odd", "odd"]
    assert carried.rejected == 1
    assert not carried.bad
    (refused,) = carried.refused
    assert refused.reason
    assert bad in refused.body
    assert GOOD not in refused.body
    again = protobuf.decode(refused.body, "shop", NOW)  # alone it is a request, and refused for the same reason
    assert (again.spans, again.rejected) == ((), 1)


@pytest.mark.parametrize("odd", ODD_SPANS.values(), ids=ODD_SPANS)
def test_what_the_parser_refuses_a_record_for_costs_nobody_a_span(odd: bytes) -> None:
    carried = read(a_record(request_of(GOOD, odd, GOOD)), "shop", "auto", NOW)
    assert len(carried.spans) + carried.rejected == 3
    assert len(carried.spans) >= 2


def test_a_bad_span_of_json_is_kept_as_json() -> None:
    said = msgspec.json.decode(otlp_json("one", "two"))
    said["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "zz"
    carried = read(a_record(msgspec.json.encode(said)), "shop", "auto", NOW)
    assert names(carried) == ["two"]
    (refused,) = carried.refused
    assert content.encoding_of(refused.body) is Encoding.JSON
    (span,) = msgspec.json.decode(refused.body)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert span["name"] == "one"


def test_when_more_is_refused_than_is_kept_one_by_one_the_whole_record_is_kept() -> None:
    value = request_of(GOOD, *([BAD_SPANS["no ids"]] * 300))
    carried = read(a_record(value), "shop", "auto", NOW)
    assert (names(carried), carried.rejected) == (["odd"], 300)
    assert [refused.body for refused in carried.refused] == [value]


def test_envelopes_without_spans_are_nothing_and_no_fault() -> None:
    data = TracesData()
    data.resource_spans.add(schema_url="https://example.com").scope_spans.add()
    for value in (data.SerializeToString(), b'{"resourceSpans":[]}'):
        assert read(a_record(value), "shop", "auto", NOW) == Carried()


def test_spans_were_received_when_the_record_was_written_and_never_later_than_now() -> None:
    assert received_ns(a_record(b"", timestamp_ns=NOW - 7), NOW) == NOW - 7
    assert received_ns(a_record(b"", timestamp_ns=NOW + 7), NOW) == NOW
    assert received_ns(a_record(b"", timestamp_ns=0), NOW) == NOW
    assert received_ns(a_record(b"", timestamp_ns=NOW - OLDEST - 1), NOW) == NOW
    (span,) = read(a_record(otlp(), timestamp_ns=NOW - 9), "shop", "auto", NOW).spans
    assert span.received_ns == NOW - 9
