"""Nouns into records and back."""

from typing import Any

import msgspec
import pytest
from builders import a_span
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from unit.kafka.nouns import LAWS, evidence, feedback, judgments, log_records, ordered, others, spans

from collectors.kafka.records import LARGEST_RECORD, MAX_RECORD, MAX_SPANS, Incoming, Outgoing, decode, encode
from collectors.otlp import protobuf
from collectors.otlp.encode import encode as protobuf_of
from pipeline.errors import PermanentError
from pipeline.model.result import Feedback, JudgeRequest, Judgment, Outcome
from pipeline.model.span import Span, seal
from pipeline.model.topology import DEAD_LETTERS, JUDGE, TOPICS, TRACES, DeadLetter, Topic

partition_counts = st.sampled_from([1, 2, 7, 16, 1024])
TAKEN_NS = 1_790_000_000_000_000_000


def arrived(outgoing: Outgoing) -> Incoming:
    return Incoming(outgoing.topic, outgoing.partition, 0, TAKEN_NS, outgoing.value, outgoing.headers)


def _check(topic: Topic, nouns: list[Any], partitions: int) -> list[Any]:
    """Encode and decode; what must hold of every record does."""
    found: list[Any] = []
    for outgoing in encode(topic, nouns, partitions):
        read = decode(arrived(outgoing))
        assert read.refused == ""
        assert outgoing.topic == topic.name
        assert len(outgoing.value) <= MAX_RECORD or len(read.records) == 1
        assert {topic.partition_of(noun, partitions) for noun in read.records} == {outgoing.partition}
        assert {noun.project for noun in read.records} == {dict(outgoing.headers)["project"].decode()}
        assert len({type(noun) for noun in read.records}) == 1
        found += read.records
    return found


@LAWS
@given(st.lists(st.one_of(spans, log_records, judgments, feedback, evidence), max_size=5), partition_counts)
def test_whatever_concerns_a_trace_arrives_as_it_was_sent(nouns: list[Any], partitions: int) -> None:
    found = _check(TRACES, nouns, partitions)
    assert ordered(found) == ordered(nouns), "with all that is said of it, and when it was received"
    assert all(seal(noun) == noun for noun in found if isinstance(noun, Span))


@pytest.mark.parametrize(("topic", "nouns"), others, ids=[topic.name for topic, _ in others])
@LAWS
@given(st.data(), partition_counts)
def test_whatever_else_travels_arrives_as_it_was_sent(
    topic: Topic, nouns: st.SearchStrategy[Any], data: st.DataObject, partitions: int
) -> None:
    some = data.draw(st.lists(nouns, max_size=4))
    assert ordered(_check(topic, some, partitions)) == ordered(some)


def test_every_topic_has_nouns_in_these_tests() -> None:
    assert {topic.name for topic in TOPICS} == {TRACES.name} | {topic.name for topic, _ in others}


def _received_apart() -> Outgoing:
    some = [a_span(f"{n:016x}", received_ns=received) for n, received in ((1, 30), (2, 10), (3, 20))]
    (record,) = encode(TRACES, some, 4)
    return record


def test_spans_that_travel_together_were_received_each_at_its_time() -> None:
    assert [span.received_ns for span in decode(arrived(_received_apart())).records] == [30, 10, 20]


def test_a_release_before_reads_that_spans_were_received_when_the_first_of_them_was() -> None:
    """It reads the header, and the value as OTLP, in which the field with the times is one that it does not know."""
    record = _received_apart()
    assert dict(record.headers) == {"kind": b"spans", "project": b"default", "version": b"1", "received_at": b"10"}
    (group,) = TracesData.FromString(record.value).resource_spans[0].scope_spans
    assert [span.span_id.hex() for span in group.spans] == [f"{n:016x}" for n in (1, 2, 3)]


def test_of_a_release_before_all_spans_of_a_record_were_received_when_the_header_says() -> None:
    read = decode(_spans_record(_without_receipts(_received_apart()), received_at=b"10"))
    assert [span.received_ns for span in read.records] == [10, 10, 10]


def _without_receipts(record: Outgoing) -> bytes:
    written = TracesData.FromString(record.value)
    written.DiscardUnknownFields()
    return written.SerializeToString()


def test_a_span_that_cannot_be_read_shifts_no_other_receipt() -> None:
    bad = [a_span(f"{n:016x}", trace_id=f"{n % 2:032x}", received_ns=n) for n in range(1, 6)]
    data = protobuf_of(bad)
    assert {span.span_id: span.received_ns for span in decode(_spans_record(data)).records} == {f"{n:016x}": n for n in (1, 3, 5)}


def test_nobody_but_we_says_when_a_span_was_received() -> None:
    (span,) = protobuf.decode(protobuf_of([a_span(received_ns=5)]), "shop", 7).spans
    assert span.received_ns == 7


def test_the_order_within_a_record_is_the_order_given() -> None:
    given_order = [Feedback("default", "ab" * 16, f"f{n}", float(n)) for n in range(5)]
    (record,) = encode(TRACES, given_order, 4)
    assert decode(arrived(record)).records == given_order


def test_no_record_has_more_than_200_spans() -> None:
    records = encode(TRACES, [a_span(f"{n:016x}") for n in range(1, 2 * MAX_SPANS + 2)], 4)
    assert [len(decode(arrived(record)).records) for record in records] == [200, 200, 1]


def test_large_spans_share_a_record_up_to_256_kib() -> None:
    records = encode(TRACES, [a_span(f"{n:016x}", attributes={"text": "x" * 100_000}) for n in range(1, 6)], 4)
    assert [len(decode(arrived(record)).records) for record in records] == [2, 2, 1]
    assert all(200_000 < len(record.value) <= MAX_RECORD for record in records[:2])


def test_large_nouns_share_a_record_up_to_256_kib() -> None:
    records = encode(TRACES, [Feedback("default", "ab" * 16, str(n), 1.0, comment="x" * 100_000) for n in range(5)], 4)
    assert [len(decode(arrived(record)).records) for record in records] == [2, 2, 1]


def test_one_thing_that_is_larger_than_a_record_travels_alone() -> None:
    text = "x" * (3 * 1024 * 1024)
    around: list[Any] = [
        a_span("00000000000000a1"),
        a_span("00000000000000a2", attributes={"t": text}),
        a_span("00000000000000a3"),
    ]
    assert [len(decode(arrived(record)).records) for record in encode(TRACES, around, 4)] == [1, 1, 1]
    request = JudgeRequest("default", "ab" * 16, "r", "a", 1, "h", text, (), "p", 1.0, 0, 0)
    (record,) = encode(JUDGE, [request], 4)
    assert decode(arrived(record)).records == [request]


@pytest.mark.parametrize(
    "noun",
    [a_span(attributes={"t": "x" * LARGEST_RECORD}), Feedback("default", "ab" * 16, "f", 1.0, comment="x" * LARGEST_RECORD)],
    ids=["span", "feedback"],
)
def test_one_thing_that_no_topic_takes_is_refused(noun: Any) -> None:
    with pytest.raises(PermanentError, match=str(LARGEST_RECORD)):
        encode(TRACES, [noun], 4)


def test_a_dead_letter_can_always_be_sent_and_says_what_was_cut() -> None:
    body = bytes(range(256)) * 4 * 10_240
    (record,) = encode(DEAD_LETTERS, [DeadLetter("", "tracegrade.traces", "it does not decode", body)], 4)
    assert len(record.value) < LARGEST_RECORD
    (letter,) = decode(arrived(record)).records
    assert letter.body == body[: 5 * 1024 * 1024]
    assert letter.reason == "it does not decode (of 10485760 bytes the first 5242880 are kept)"


@pytest.mark.parametrize(
    ("topic", "noun", "reason"),
    [
        (JUDGE, a_span(), "a Span does not travel on tracegrade.judge"),
        (TRACES, DeadLetter("p", "o", "r", b""), "a DeadLetter does not travel on tracegrade.traces"),
        (TRACES, Feedback("\ud800", "t", "f", 1.0), "not Unicode"),
        (TRACES, Feedback("p", "\ud800", "f", 1.0), "not Unicode"),
        (TRACES, Feedback("p", "t", "f", 1.0, comment="\ud800"), "cannot be written as JSON"),
        (TRACES, msgspec.structs.replace(a_span(), name="\ud800"), "cannot be written as OTLP"),
    ],
)
def test_what_cannot_be_sent_is_refused(topic: Topic, noun: Any, reason: str) -> None:
    with pytest.raises(PermanentError, match=reason):
        encode(topic, [noun], 4)


def _spans_record(value: bytes, **headers: bytes | None) -> Incoming:
    said = {"kind": b"spans", "project": b"shop", "version": b"1", "received_at": b"7", **headers}
    return Incoming(TRACES.name, 0, 0, TAKEN_NS, value, tuple((name, raw) for name, raw in said.items() if raw is not None))


def test_a_bad_span_does_not_cost_the_others() -> None:
    good, bad = a_span(), a_span("00000000000000b2", trace_id="00" * 16)
    (record,) = encode(TRACES, [good], 1)
    (other,) = encode(TRACES, [bad], 1)
    read = decode(_spans_record(record.value + other.value))
    assert [span.span_id for span in read.records] == [good.span_id]
    assert read.records[0].project == "shop"
    assert read.refused == "1 of 2 spans were rejected: 1 × traceId is all zeros"
    with pytest.raises(PermanentError, match="1 of 1 spans were rejected"):
        decode(_spans_record(other.value))


def test_a_bad_noun_does_not_cost_the_others() -> None:
    (record,) = encode(TRACES, [Feedback("shop", "t", "f", 1.0)], 1)
    alien = record.value.replace(b'"project":"shop"', b'"project":"other"')
    value = b",".join([record.value[:-1], b'{"project":"shop"}', alien[1:]])
    read = decode(_spans_record(value, kind=b"feedback"))
    assert read.records == [Feedback("shop", "t", "f", 1.0)]
    assert read.refused.startswith("2 of 3 × feedback cannot be read: ")
    with pytest.raises(PermanentError, match="project 'other' in a record of 'shop'"):
        decode(_spans_record(alien, kind=b"feedback"))


def test_spans_whose_writer_does_not_say_were_received_when_the_broker_took_them() -> None:
    (record,) = encode(TRACES, [a_span()], 1)
    (span,) = decode(_spans_record(_without_receipts(record), received_at=None)).records
    assert span.received_ns == TAKEN_NS


@pytest.mark.parametrize(
    ("headers", "value", "reason"),
    [
        ({"kind": None}, b"", "no header kind"),
        ({"project": None}, b"", "no header project"),
        ({"version": None}, b"", "version unknown"),
        ({"kind": b"trip"}, b"[]", "kind 'trip' does not belong on tracegrade.traces"),
        ({"kind": b"surprise"}, b"[]", "kind 'surprise' does not belong on tracegrade.traces"),
        ({"kind": b"\xff"}, b"[]", "header kind is not UTF-8"),
        ({"received_at": b"soon"}, b"", "received_at is 'soon'"),
        ({"received_at": b"-1"}, b"", "received_at is '-1'"),
        ({"received_at": b"9223372036854775808"}, b"", "received_at"),
        ({"received_at": b"9" * 5000}, b"", "received_at"),
        ({}, b"no protobuf", "not an OTLP trace request"),
        ({"kind": b"feedback"}, b"{}", "no JSON list"),
        ({"kind": b"feedback"}, b"[" * 100_000, "no JSON list"),
        ({"kind": b"feedback"}, b"\xff", "no JSON list"),
        ({"kind": b"feedback"}, b'[{"project":"\xff"}]', "cannot be read"),
        ({"kind": b"feedback"}, b'[{"project":"shop","trace_id":"t","id":"f","value":NaN}]', "no JSON list"),
    ],
)
def test_a_record_that_says_nothing_is_refused_with_the_reason(
    headers: dict[str, bytes | None], value: bytes, reason: str
) -> None:
    with pytest.raises(PermanentError, match=reason):
        decode(_spans_record(value, **headers))


@LAWS
@given(
    st.binary(max_size=60),
    st.sampled_from([b"spans", b"log_record", b"judgment", b"feedback", b"evidence"]),
    st.none() | st.binary(max_size=4),
)
def test_no_bytes_raise_anything_but_permanent_error(value: bytes, kind: bytes, received_at: bytes | None) -> None:
    try:
        decode(_spans_record(value, kind=kind, received_at=received_at))
    except PermanentError as error:
        assert str(error)  # noqa: PT017 - either outcome is right


def test_an_unknown_topic_has_no_kinds() -> None:
    with pytest.raises(PermanentError, match="does not belong on elsewhere"):
        decode(Incoming("elsewhere", 0, 0, 0, b"", (("kind", b"spans"), ("project", b"p"), ("version", b"1"))))


def test_outcomes_travel_as_words() -> None:
    judgment = Judgment("p", "t", "r", 1, "h", "c", "d", Outcome.INSUFFICIENT_EVIDENCE, score=None)
    (record,) = encode(TRACES, [judgment], 1)
    assert b'"outcome":"insufficient_evidence","score":null' in record.value
    assert decode(arrived(record)).records == [judgment]
