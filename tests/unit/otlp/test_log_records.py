"""Log records in both encodings: what is kept is what was sent, what is of no use is left out, and what is bad costs only itself."""

import json
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as WireLogRecord
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from unit.otlp.wire_forms import SPAN_ID, START, TRACE_ID, as_json, text

from collectors.otlp.decoding import Decoded
from collectors.otlp.log_decoding import MAX_LOG_RECORD
from collectors.otlp.logs import LOGS, decode_json, decode_protobuf
from collectors.otlp.signal import Encoding, Reply
from collectors.redaction.configured import redactor
from collectors.redaction.spans import REDACTED
from pipeline.config.redaction import RedactionSettings
from pipeline.errors import PermanentError
from pipeline.model.log_record import LogRecord, seal
from pipeline.model.span import TRUNCATED_FIELDS

NOW = START + 1_000


def a_map(**values: str) -> AnyValue:
    return AnyValue(kvlist_value=KeyValueList(values=[text(key, value) for key, value in values.items()]))


def record(**fields: Any) -> WireLogRecord:
    defaults: dict[str, Any] = {
        "trace_id": TRACE_ID,
        "span_id": SPAN_ID,
        "event_name": "gen_ai.user.message",
        "time_unix_nano": START,
    }
    return WireLogRecord(**(defaults | fields))


def logs(*records: WireLogRecord, scope: str = "openai") -> ExportLogsServiceRequest:
    scope_logs = ScopeLogs(scope=InstrumentationScope(name=scope, version="1.2"), log_records=records)
    resource = Resource(attributes=[text("service.name", "shop")])
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=resource, scope_logs=[scope_logs])])


def both(message: Message, **how: Any) -> Decoded[LogRecord]:
    """The same from both encodings."""
    one = decode_protobuf(message.SerializeToString(), "shop", NOW, **how)
    other = decode_json(as_json(message), "shop", NOW, **how)
    assert (one.items, one.rejected, one.message, one.ignored) == (other.items, other.rejected, other.message, other.ignored)
    assert all(seal(item) == item for item in one.items), "records come out sealed"
    return one


def test_a_record_is_what_was_sent() -> None:
    message = record(
        observed_time_unix_nano=START + 5,
        severity_number=9,
        severity_text="INFO",
        body=a_map(content="Where is it?"),
        attributes=[
            text("gen_ai.system", "openai"),
            KeyValue(
                key="list", value=AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue(bool_value=True)]))
            ),
        ],
        dropped_attributes_count=2,
        flags=1,
    )
    (found,) = both(logs(message)).items
    assert found == seal(
        LogRecord(
            project="shop",
            trace_id=TRACE_ID.hex(),
            span_id=SPAN_ID.hex(),
            event_name="gen_ai.user.message",
            time_ns=START,
            received_ns=NOW,
            severity=9,
            body={"content": "Where is it?"},
            attributes={"gen_ai.system": "openai", "list": [1, True]},
            resource={"service.name": "shop"},
            scope_name="openai",
            scope_version="1.2",
            dropped=2,
        )
    )


def test_a_record_without_a_time_happened_when_it_was_observed() -> None:
    (found,) = both(logs(record(time_unix_nano=0, observed_time_unix_nano=START + 5))).items
    assert found.time_ns == START + 5


def test_an_older_sender_names_the_event_in_an_attribute() -> None:
    (found,) = both(logs(record(event_name="", attributes=[text("event.name", "gen_ai.choice")]))).items
    assert found.event_name == "gen_ai.choice"


@pytest.mark.parametrize(
    "of_no_use",
    [
        record(trace_id=b""),
        record(trace_id=bytes(16)),
        record(span_id=b""),
        record(span_id=bytes(8)),
        record(event_name="", body=AnyValue(string_value="GET /cart 200")),
    ],
    ids=["no trace", "a trace of zeros", "no span", "a span of zeros", "a line of a log"],
)
def test_what_is_of_no_use_is_left_out_and_not_refused(of_no_use: WireLogRecord) -> None:
    found = both(logs(of_no_use, record()))
    assert (len(found.items), found.rejected, found.message, found.ignored) == (1, 0, "", 1)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"trace_id": b"abc"}, "traceId must be 16 bytes"),
        ({"span_id": b"abc"}, "spanId must be 8 bytes"),
        ({"time_unix_nano": 2**63}, "timeUnixNano"),
        ({"observed_time_unix_nano": 2**64 - 1}, "observedTimeUnixNano"),
        ({"severity_number": 300}, "severityNumber"),
        ({"severity_number": -1}, "severityNumber"),
    ],
)
def test_a_bad_record_is_refused_alone_and_kept_as_a_request_of_its_own(bad: dict[str, Any], told: str) -> None:
    message = logs(record(), record(**bad), record(event_name="gen_ai.choice"))
    found = both(message)
    assert (len(found.items), found.rejected, found.ignored) == (2, 1, 0)
    assert found.message.startswith("1 of 3 log records were rejected: 1 × ")
    assert told in found.message
    for decode, body in ((decode_protobuf, message.SerializeToString()), (decode_json, as_json(message))):
        (refused,) = decode(body, "shop", NOW).refused
        assert decode(refused.body, "shop", NOW).rejected == 1


def test_the_answer_to_a_bad_record_is_a_partial_success() -> None:
    response: Any = LOGS.response(Reply(2, "why"))
    assert (response.partial_success.rejected_log_records, response.partial_success.error_message) == (2, "why")
    assert not LOGS.response(Reply()).HasField("partial_success")


def test_records_of_one_request_keep_their_order_and_one_that_is_there_twice_is_one() -> None:
    names = ["gen_ai.user.message", "gen_ai.choice", "gen_ai.user.message", "gen_ai.tool.message"]
    found = both(logs(*(record(event_name=name) for name in names))).items
    assert [(one.event_name, one.position) for one in found] == [
        ("gen_ai.user.message", 0),
        ("gen_ai.choice", 1),
        ("gen_ai.tool.message", 3),
    ]


@pytest.mark.parametrize("wrong", [b"{", b"[]", b"\xff\xff\xff", b'{"resourceLogs": 7}'])
def test_what_is_no_request_is_refused_whole(wrong: bytes) -> None:
    for decode in LOGS.decoders.values():
        with pytest.raises(PermanentError, match="not an OTLP logs request"):
            decode(wrong, "shop", NOW, None)


def test_an_empty_request_holds_nothing() -> None:
    assert LOGS.decoders[Encoding.PROTOBUF](b"", "shop", NOW, None).items == ()
    assert LOGS.decoders[Encoding.JSON](b"{}", "shop", NOW, None).items == ()


def test_keys_in_snake_case_and_enums_by_name_are_read() -> None:
    one = {
        "trace_id": TRACE_ID.hex(),
        "span_id": SPAN_ID.hex(),
        "event_name": "gen_ai.choice",
        "severity_number": "SEVERITY_NUMBER_WARN2",
    }
    body = json.dumps({"resource_logs": [{"scope_logs": [{"log_records": [one]}]}]}).encode()
    (found,) = decode_json(body, "shop", NOW).items
    assert (found.event_name, found.severity) == ("gen_ai.choice", 14)


def test_text_that_is_not_unicode_costs_a_letter_and_not_the_record() -> None:
    raw = logs(record(body=a_map(content="XX"))).SerializeToString().replace(b"XX", b"\xffX")
    (found,) = decode_protobuf(raw, "shop", NOW).items
    assert found.body == {"content": "\ufffdX"}


def test_secrets_are_replaced_wherever_they_stand_and_counted() -> None:
    secret = "ghp_" + "a1B2" * 9
    message = logs(
        record(
            event_name=f"gen_ai.{secret}",
            body=a_map(content=f"my token is {secret}"),
            attributes=[
                text("note", secret),
                KeyValue(key="deep", value=AnyValue(array_value=ArrayValue(values=[a_map(x=secret)]))),
            ],
        ),
        scope=secret,
    )
    found = both(message, redactor=redactor(RedactionSettings()))
    assert secret not in repr(found.items)
    assert found.redacted.total() >= 5
    assert found.items[0].attributes[REDACTED] >= 5


def test_a_record_without_secrets_is_the_same_with_and_without_redaction() -> None:
    message = logs(record(body=a_map(content="Where is it?")))
    assert both(message, redactor=redactor(RedactionSettings())).items == both(message).items


def test_a_record_that_is_too_large_is_cut_and_says_so() -> None:
    (found,) = both(logs(record(body=a_map(content="x" * 2 * MAX_LOG_RECORD)))).items
    assert len(found.body["content"]) < MAX_LOG_RECORD
    assert found.body["content"].startswith("xxx")
    assert found.attributes[TRUNCATED_FIELDS] == ["body."]


@settings(max_examples=300, deadline=None)
@given(body=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_whatever_comes_is_read_or_refused_and_raises_nothing_else(body: bytes) -> None:
    for decode in LOGS.decoders.values():
        with suppress(PermanentError):
            decode(body, "p", 7, None)
