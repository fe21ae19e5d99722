"""A log record says what a span event says, and is told by what it says alone."""

from typing import Any

import pytest
from builders import T0, a_log_record, a_span
from msgspec.structs import replace

from pipeline.model.log_record import as_event, beside, is_earlier, seal
from pipeline.model.span import Event


def test_the_hash_covers_all_that_was_said_and_not_when_it_arrived() -> None:
    record = a_log_record()
    assert seal(replace(record, received_ns=1, position=7)).content_hash == record.content_hash
    said: dict[str, Any] = {
        "project": "p",
        "trace_id": "t",
        "span_id": "s",
        "event_name": "n",
        "time_ns": 1,
        "severity": 9,
        "body": {"a": 1},
        "attributes": {"a": 1},
        "resource": {"a": 1},
        "scope_name": "s",
        "scope_version": "1",
        "dropped": 1,
    }
    passing = {"received_ns", "position", "content_hash"}
    assert set(said) == set(record.__struct_fields__) - passing
    hashes = {seal(replace(record, **{name: value})).content_hash for name, value in said.items()}
    assert len(hashes | {record.content_hash}) == len(said) + 1


def test_the_order_of_keys_is_not_what_is_said() -> None:
    one, other = (a_log_record(attributes=said) for said in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert one.content_hash == other.content_hash


@pytest.mark.parametrize(
    ("body", "attributes"),
    [
        ({"content": "hi", "role": "user"}, {"content": "hi", "role": "user", "x": 1}),
        ('{"content": "hi"}', {"content": "hi", "x": 1}),
        ({"x": 2}, {"x": 2}),
        ("hi", {"body": "hi", "x": 1}),
        ('{"cut": ', {"body": '{"cut": ', "x": 1}),
        ("{" * 5000, {"body": "{" * 5000, "x": 1}),
        (["hi"], {"body": ["hi"], "x": 1}),
        (0, {"body": 0, "x": 1}),
        (None, {"x": 1}),
    ],
)
def test_the_fields_of_a_body_are_attributes_of_the_event(body: Any, attributes: dict[str, Any]) -> None:
    record = a_log_record(event_name="gen_ai.user.message", body=body, attributes={"x": 1})
    assert as_event(record) == Event("gen_ai.user.message", T0, attributes)


def test_records_stand_after_the_events_of_their_span_by_time_whatever_the_order_in_which_they_came() -> None:
    span = a_span(events=(Event("own", T0 + 9),), dropped=1)
    records = [a_log_record(event_name=name, time_ns=T0 + time, dropped=1) for name, time in (("c", 3), ("a", 1), ("b", 2))]
    both = beside(span, records), beside(span, reversed(records))
    assert both[0] == both[1]
    assert [event.name for event in both[0].events] == ["own", "a", "b", "c"]
    assert both[0].dropped == 4
    assert beside(span, []) is span


def test_records_of_one_time_stand_as_they_stood_in_their_request() -> None:
    records = [a_log_record(event_name=name, position=position) for name, position in (("third", 3), ("first", 1), ("second", 2))]
    assert [event.name for event in beside(a_span(), records).events] == ["first", "second", "third"]


def test_of_two_deliveries_the_first_received_counts_then_the_first_in_its_request() -> None:
    record = a_log_record(received_ns=5, position=5)
    assert is_earlier(replace(record, received_ns=4, position=9), record)
    assert is_earlier(replace(record, position=4), record)
    assert not is_earlier(record, record)
