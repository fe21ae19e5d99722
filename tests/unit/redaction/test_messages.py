"""Messages: where nothing is suspected among the bytes of a span, nothing would be found in its texts."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from secrets_of_all_kinds import PLANTED, Planted
from unit.otlp.wire_forms import request, text, wire_span
from unit.redaction.test_json_laws import DOCUMENTS, REDACTOR, WITH_RULES

from collectors.otlp import protobuf
from collectors.redaction.configured import made_of
from collectors.redaction.redactor import Redactor
from collectors.redaction.spans import redact_span
from pipeline.config.redaction import RedactionSettings, RuleSettings
from pipeline.patterns import Pattern, loosened

LENGTHS = (45, 48, 57, 65, 90, 92, 95, 97, 122)
"""Lengths that look like a character of a word, or like a backslash, where they stand before a text."""
NAMED = ("password", "x-api-key", "token", "clientSecret", "http.request.header.authorization", "app.token", "set-cookie")


def _any(value: Any) -> AnyValue:  # noqa: PLR0911 - one return for each kind of value
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value) if -(2**63) <= value < 2**63 else AnyValue(string_value=str(value))
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=[_any(one) for one in value]))
        case dict():
            return AnyValue(kvlist_value=KeyValueList(values=_pairs(value)))
    return AnyValue()


def _pairs(document: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_any(value)) for key, value in document.items()]


def _finds(redactor: Redactor, span: Span) -> bool:
    (read,) = protobuf.decode(request(span).SerializeToString(), "shop", 1).spans
    counts: Counter[str] = Counter()
    redact_span(redactor, read, counts)
    return bool(counts)


def _suspects(redactor: Redactor, span: Span) -> bool:
    return redactor.suspects_message(span.SerializeToString())


@settings(max_examples=300, deadline=None)
@given(DOCUMENTS, st.sampled_from([REDACTOR, WITH_RULES]))
def test_what_would_be_found_is_suspected(document: dict[str, Any], redactor: Redactor) -> None:
    try:
        span = wire_span(attributes=_pairs(document))
    except UnicodeEncodeError:
        return
    assert _suspects(redactor, span) or not _finds(redactor, span)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: f"{one.detector}: {one.text[:20]}")
@pytest.mark.parametrize("size", LENGTHS)
def test_a_secret_at_the_beginning_is_suspected_whatever_its_text_is_long(planted: Planted, size: int) -> None:
    if len(planted.text) > size:
        return
    for around in (planted.text.ljust(size), planted.text.rjust(size)):
        assert _suspects(REDACTOR, wire_span(attributes=[text("a", around)]))
        assert _suspects(REDACTOR, wire_span(name=around))


@pytest.mark.parametrize("name", NAMED)
def test_a_name_that_tells_of_a_secret_is_suspected_in_whatever_order_it_is_written(name: str) -> None:
    key, value = KeyValue(key=name), KeyValue(value=AnyValue(string_value="x"))
    for one in (key.SerializeToString() + value.SerializeToString(), value.SerializeToString() + key.SerializeToString()):
        raw = b"\x4a" + bytes([len(one)]) + one
        assert _finds(REDACTOR, Span.FromString(wire_span().SerializeToString() + raw))
        assert REDACTOR.suspects_message(wire_span().SerializeToString() + raw)


@pytest.mark.parametrize("number", [4012888888881881, 371449635398431, 4222222222222])
def test_a_card_that_is_a_number_is_suspected(number: int) -> None:
    assert _suspects(REDACTOR, wire_span(attributes=[KeyValue(key="a", value=AnyValue(int_value=number))]))


def test_bytes_that_are_no_text_are_read_as_they_are_elsewhere() -> None:
    raw = AnyValue(bytes_value=b"\xff@example.com")
    assert _finds(REDACTOR, wire_span(attributes=[KeyValue(key="a", value=raw)]))
    assert _suspects(REDACTOR, wire_span(attributes=[KeyValue(key="a", value=raw)]))


def test_what_is_no_secret_is_not_suspected() -> None:
    """Else nothing would be gained: the ids and times of a span, and what people say, suspect nothing."""
    attributes = {"gen_ai.usage.input_tokens": 1200, "gen_ai.request.model": "gpt-4o", "said": "What is in order A-17, at 12:30?"}
    for at in range(256):
        ids = {"trace_id": bytes([64, at] * 8), "span_id": bytes([at, 64] * 4)}
        assert not _suspects(REDACTOR, wire_span(attributes=_pairs(attributes), **ids))


RULES = {
    r"\bC-[0-9]{6}\b": "see C-471100.",
    r"^Dear .+,$": "Hi\nDear Ada,\n",
    r"a.c": "a\N{BULLET}c",
    r"x[^0-9]y": "x\N{EURO SIGN}y",
    r"(?i)task": "ta\N{LATIN SMALL LETTER LONG S}\N{KELVIN SIGN}",
    r"\p{Lu}\d": "Ä7",
    r"[ä-ü]+!": "öö!",
    r"\Q[x]\E+\x21\041": "[x]]!!",
    r"[[:^alpha:]]z": "é".upper() + "·z",
    r"\D\W\S": "é·ü",
    r"[]a]{2}\.": "]a.",
}


@pytest.mark.parametrize(("rule", "said"), RULES.items(), ids=RULES)
@pytest.mark.parametrize("size", [0, *LENGTHS])
def test_what_a_rule_finds_is_suspected(rule: str, said: str, size: int) -> None:
    assert Pattern(f"(?m){rule}").matches(said.encode())
    redactor = made_of(RedactionSettings(rules=(RuleSettings(name="mine", pattern=rule),)))
    padded = said + "\n" * max(0, size - len(said.encode()))
    span = wire_span(attributes=[text("a", padded)])
    assert _finds(redactor, span)
    assert _suspects(redactor, span)


def test_a_rule_for_a_name_suspects_it() -> None:
    redactor = made_of(RedactionSettings(rules=(RuleSettings(name="person", keys=("näme.x",)),)))
    assert _suspects(redactor, wire_span(attributes=[text("näme.x", "Ada")]))
    assert not _suspects(redactor, wire_span(attributes=[text("name.x", "Ada")]))


def test_a_rule_still_suspects_nothing_elsewhere() -> None:
    assert not Pattern(loosened(r"\bC-[0-9]{6}\b").encode()).matches(b"C-12345 and C-")


def test_a_rule_for_digits_suspects_a_number_and_one_for_quotes_what_json_escapes() -> None:
    rules = (RuleSettings(name="digits", pattern=r"\d{9}"), RuleSettings(name="quoted", pattern='name: "[^"]+"'))
    redactor = made_of(RedactionSettings(rules=rules))
    number = wire_span(attributes=[KeyValue(key="a", value=AnyValue(int_value=123_456_789))])
    escaped = wire_span(attributes=[text("a", json.dumps({"b": 'name: "Ada"'}))])
    for span in (number, escaped):
        assert _finds(redactor, span)
        assert _suspects(redactor, span)
