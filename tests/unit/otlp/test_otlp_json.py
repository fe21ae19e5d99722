"""What OTLP/JSON says in its own way, and what senders get wrong in it."""

import json as plain_json
from typing import Any

import pytest
from unit.otlp.wire_forms import SPAN_ID, START, TRACE_ID, json_attribute, json_request

from collectors.otlp.json import decode
from collectors.otlp.mending import MAX_DEPTH, TOO_DEEP
from pipeline.errors import PermanentError
from pipeline.model.span import Span


def _only(body: bytes) -> Span:
    decoded = decode(body, "p", 1)
    assert decoded.rejected == 0, decoded.message
    (span,) = decoded.spans
    return span


def _refused(body: bytes) -> str:
    decoded = decode(body, "p", 1)
    assert (decoded.spans, decoded.rejected) == ((), 1)
    return decoded.message


def test_ids_are_hex_of_either_case_and_kept_in_lower_case() -> None:
    span = _only(json_request(traceId=TRACE_ID.hex().upper(), spanId=SPAN_ID.hex().title(), parentSpanId="ABCDEF0123456789"))
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE_ID.hex(), SPAN_ID.hex(), "abcdef0123456789")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"traceId": "cgXI6uihz643E6Zqq7Nl4w=="}, "traceId 'cgXI6uihz643E6Zqq7Nl4w=='"),
        ({"spanId": "7uGbfsPBsXQ="}, "spanId '7uGbfsPBsXQ='"),
        ({"traceId": "chain-root"}, "traceId 'chain-root'"),
        ({"traceId": TRACE_ID.hex()[:-1]}, "traceId"),
        ({"traceId": TRACE_ID.hex()[:-2]}, "traceId must be 16 bytes (32 hex digits in JSON), not 15"),
        ({"traceId": " ".join(TRACE_ID.hex()[i : i + 2] for i in range(0, 32, 2))}, "traceId"),
        ({"traceId": None}, "traceId"),
        ({"traceId": 5}, "traceId"),
        ({"startTimeUnixNano": "soon"}, "startTimeUnixNano 'soon' is not a whole number"),
        ({"startTimeUnixNano": "1_0"}, "startTimeUnixNano"),
        ({"startTimeUnixNano": "٤"}, "startTimeUnixNano"),
        ({"startTimeUnixNano": 1.5}, "startTimeUnixNano"),
        ({"startTimeUnixNano": "-1"}, "startTimeUnixNano"),
        ({"kind": "SPAN_KIND_ROBOT"}, "kind 'SPAN_KIND_ROBOT' is unknown"),
        ({"attributes": {"a": 1}}, "attributes"),
        ({"attributes": [{"key": "a", "value": {"intValue": "many"}}]}, "intValue 'many'"),
        ({"attributes": [{"key": "a", "value": {"intValue": str(2**63)}}]}, "intValue"),
        ({"attributes": [{"key": "a", "value": {"doubleValue": "1_0"}}]}, "doubleValue '1_0'"),
        ({"attributes": [{"key": "a", "value": {"doubleValue": "1e999"}}]}, "doubleValue '1e999'"),
        ({"attributes": [{"key": "a", "value": {"bytesValue": "not base64!"}}]}, "bytesValue"),
        ({"attributes": [{"key": "a", "value": {"stringValue": 5}}]}, "stringValue"),
        ({"flags": -1}, "flags"),
    ],
    ids=str,
)
def test_a_bad_field_refuses_the_span_and_is_named(fields: dict[str, Any], named: str) -> None:
    assert named in _refused(json_request(**fields))


@pytest.mark.parametrize("written", [str(START), START], ids=["string", "number"])
def test_a_time_is_exact_as_string_and_as_number(written: Any) -> None:
    assert _only(json_request(startTimeUnixNano=written)).start_ns == START


@pytest.mark.parametrize(
    ("value", "kept"), [("42", 42), (42, 42), (42.0, 42), (str(-(2**63)), -(2**63)), (2**63 - 1, 2**63 - 1)], ids=str
)
def test_an_int_is_read_as_string_and_as_number(value: Any, kept: int) -> None:
    found = _only(json_attribute({"intValue": value})).attributes["a"]
    assert (found, type(found)) == (kept, int)


@pytest.mark.parametrize(
    ("value", "kept"), [(1, 1.0), ("1.5", 1.5), (2**70, float(2**70)), ("NaN", "NaN"), ("-Infinity", "-Infinity")], ids=str
)
def test_a_double_is_read_as_number_and_as_string(value: Any, kept: Any) -> None:
    found = _only(json_attribute({"doubleValue": value})).attributes["a"]
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize("written", ["-_8=", "+/8=", "+/8", "-_8"])
def test_bytes_are_base64_in_either_alphabet(written: str) -> None:
    assert _only(json_attribute({"bytesValue": written})).attributes["a"] == {"bytesValue": "+/8="}


@pytest.mark.parametrize(("kind", "number"), [(3, 3), ("SPAN_KIND_CLIENT", 3), (None, 0), (77, 77)], ids=str)
def test_an_enum_is_a_number_or_its_name_or_missing(kind: Any, number: int) -> None:
    assert _only(json_request(kind=kind)).kind == number


def test_a_status_is_a_number_or_its_name() -> None:
    assert _only(json_request(status={"code": 2, "message": "no"})).status_code == 2
    assert _only(json_request(status={"code": "STATUS_CODE_ERROR"})).status_code == 2
    assert _only(json_request(status={})).status_code == 0


def test_null_is_the_same_as_missing() -> None:
    nothing = dict.fromkeys(
        ("parentSpanId", "kind", "flags", "attributes", "events", "links", "status", "droppedEventsCount", "endTimeUnixNano")
    )
    body = plain_json.loads(json_request())
    body["resourceSpans"][0]["resource"] = None
    body["resourceSpans"][0]["scopeSpans"][0]["scope"] = None
    body["resourceSpans"][0]["scopeSpans"][0]["spans"][0] |= nothing
    assert _only(plain_json.dumps(body).encode()) == _only(json_request())


def test_unknown_fields_are_ignored_at_any_depth() -> None:
    body = plain_json.loads(json_request(attributes=[{"key": "a", "value": {"stringValue": "x", "new": 1}, "new": {}}]))
    body["new"] = body["resourceSpans"][0]["new"] = body["resourceSpans"][0]["scopeSpans"][0]["new"] = [{"deep": [1]}]
    body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["new"] = "x"
    assert _only(plain_json.dumps(body).encode()).attributes == {"a": "x"}


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (r"\ud83d", "\ufffd"),
        (r"\ude00 low", "\ufffd low"),
        (r"\ud83dabcdef", "\ufffdabcdef"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\ud83d\u0041", "\ufffdA"),
        (r"\\ud83d \ud83d", "\\ud83d \ufffd"),
        (r"\ud83d\\ude00", "\ufffd\\ude00"),
        (r"\uD83D\n", "\ufffd\n"),
        (r"\ud83d\ude00", "\U0001f600"),
    ],
)
def test_half_a_surrogate_pair_becomes_a_replacement_character_and_the_span_is_kept(written: str, kept: str) -> None:
    body = json_request(name="NAME").replace(b"NAME", written.encode())
    assert _only(body).name == kept


def test_names_in_snake_case_are_read() -> None:
    span = {"trace_id": TRACE_ID.hex(), "span_id": SPAN_ID.hex(), "start_time_unix_nano": str(START), "name": "chat"}
    span |= {"attributes": [{"key": "snake_case", "value": {"string_value": "stays_as_it_is"}}]}  # type: ignore[dict-item]
    found = _only(plain_json.dumps({"resource_spans": [{"scope_spans": [{"spans": [span]}]}]}).encode())
    assert (found.trace_id, found.start_ns, found.attributes) == (TRACE_ID.hex(), START, {"snake_case": "stays_as_it_is"})


def test_text_that_is_not_utf8_is_kept_with_replacement_characters() -> None:
    assert _only(json_request(name="NAME").replace(b"NAME", b"fiv\xff\xfe \xed\xa0\x80")).name.startswith(
        "fiv\ufffd\ufffd \ufffd"
    )


@pytest.mark.parametrize("levels", [300, 2000, 200_000])
def test_what_is_nested_as_deep_as_no_parser_goes_costs_one_value(levels: int) -> None:
    deep = b'{"arrayValue":{"values":[' * levels + b"]}}" * levels
    body = json_request(attributes=[{"key": "a", "value": "DEEP"}, {"key": "b", "value": {"intValue": 1}}])
    found = _only(body.replace(b'"DEEP"', deep)).attributes
    for _ in range(MAX_DEPTH):
        (found["a"],) = found["a"]
    assert found == {"a": TOO_DEEP, "b": 1}


def test_a_span_that_is_nothing_but_brackets_costs_itself_alone() -> None:
    body = json_request(name="good").replace(b'"spans": [', b'"spans": [' + b"[" * 100_000 + b"]" * 100_000 + b", ")
    decoded = decode(body, "p", 1)
    assert ([span.name for span in decoded.spans], decoded.rejected) == (["good"], 1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xef\xbb\xbf{}",
        b'{"resourceSpans": {}}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"x": NaN}]}]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": ' + b"[" * 100_000 + b"}]}]}",
        b"\x0a\x00",
    ],
    ids=lambda body: repr(body[:40]),
)
def test_bytes_that_are_no_request_are_refused_whole(body: bytes) -> None:
    with pytest.raises(PermanentError, match="not an OTLP trace request in JSON"):
        decode(body, "p", 1)


@pytest.mark.parametrize("body", [b"{}", b'{"resourceSpans": []}', b'{"resourceSpans": null}', b'{"resourceSpans": [{}]}'])
def test_an_empty_object_is_an_empty_request(body: bytes) -> None:
    assert decode(body, "p", 1).spans == ()


def _nested(levels: int, container: str) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "deep"}
    for _ in range(levels):
        value = {container: {"values": [value if container == "arrayValue" else {"key": "k", "value": value}]}}
    return value


@pytest.mark.parametrize("container", ["arrayValue", "kvlistValue"])
def test_a_value_may_nest_to_the_limit_and_what_is_deeper_is_replaced(container: str) -> None:
    for levels, kept in ((MAX_DEPTH, "deep"), (MAX_DEPTH + 1, TOO_DEEP), (200, TOO_DEEP)):
        value = _only(json_attribute(_nested(levels, container))).attributes["a"]
        for _ in range(MAX_DEPTH):
            value = value[0] if container == "arrayValue" else value["k"]
        assert value == kept
