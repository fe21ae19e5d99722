"""Spans: every place that somebody else writes is redacted before the span is sealed, and the span says how much was."""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest
from builders import a_span
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from unit.otlp.wire_forms import as_json, request, text, wire_span

from collectors.otlp import json as otlp_json
from collectors.otlp import protobuf
from collectors.redaction.configured import made_of, redactor
from collectors.redaction.finder import Finder
from collectors.redaction.redactor import Redactor
from collectors.redaction.spans import redact_span
from collectors.redaction.walk import Counts
from pipeline.config.redaction import FAILED, RedactionSettings, RuleSettings
from pipeline.model.span import Event, Link, Span, bytes_value, seal

REDACTOR = made_of(RedactionSettings())
MAIL, MARK = "ada@example.com", "[redacted:email]"
EVERYWHERE = a_span(
    name=f"mail {MAIL}",
    status_message=MAIL,
    trace_state=f"k={MAIL}",
    attributes={MAIL: MAIL, "n": [1, {"m": [MAIL]}], "raw": bytes_value(MAIL.encode()), "card": 4012888888881881, "kept": 1.5},
    events=(Event(MAIL, 5, {"a": MAIL}),),
    links=(Link("t" * 32, "s" * 16, {"a": MAIL}),),
)


def _redacted(span: Span, by: Redactor = REDACTOR) -> tuple[Span, Counts]:
    counts: Counts = Counter()
    return redact_span(by, span, counts), counts


def test_every_place_is_redacted_and_counted() -> None:
    span, counts = _redacted(EVERYWHERE)
    assert counts == {"email": 10, "card": 1}
    assert span == msgspec.structs.replace(
        EVERYWHERE,
        name=f"mail {MARK}",
        status_message=MARK,
        trace_state=f"k={MARK}",
        attributes={
            MARK: MARK,
            "n": [1, {"m": [MARK]}],
            "raw": MARK,
            "card": "[redacted:card]",
            "kept": 1.5,
            "tracegrade.redacted": 11,
        },
        events=(Event(MARK, 5, {"a": MARK}),),
        links=(Link("t" * 32, "s" * 16, {"a": MARK}),),
    )


def test_a_span_without_a_secret_is_the_same_span() -> None:
    span = a_span(attributes={"a": "b", "escape": r"\u0041", "n": 1764480000000000000})
    assert _redacted(span)[0] is span


def test_redacting_a_span_twice_is_redacting_it_once() -> None:
    once, _ = _redacted(EVERYWHERE)
    assert _redacted(once) == (once, {})


def test_names_that_become_one_keep_their_values_in_an_order_of_their_own() -> None:
    attributes = {"b@example.com": 2, "a@example.com": 1, "c": 3}
    expected = {MARK: 1, f"{MARK} 2": 2, "c": 3}
    assert REDACTOR.attributes(attributes, Counter()) == expected
    assert REDACTOR.attributes(dict(reversed(attributes.items())), Counter()) == expected


def test_what_only_looks_like_bytes_is_a_map() -> None:
    for value in ("0", "\x80", MAIL, "n o"):
        attributes = {"a": {"bytesValue": value}}
        assert REDACTOR.attributes(attributes, Counter()) == {"a": {"bytesValue": value.replace(MAIL, MARK)}}


def test_short_bytes_are_read_too() -> None:
    assert _redacted(a_span(attributes={"a": bytes_value(b"\xff a@b.co")}))[0].attributes["a"] == MARK


class TestARequest:
    @pytest.fixture(params=["protobuf", "json"])
    def encoding(self, request: pytest.FixtureRequest) -> str:
        name: str = request.param
        return name

    @staticmethod
    def _decoded(
        encoding: str, *attributes: KeyValue, service: str = "shop", by: Redactor | None = REDACTOR
    ) -> tuple[Span, Counts]:
        message = request(wire_span(attributes=attributes), wire_span(), service=service)
        if encoding == "json":
            decoded = otlp_json.decode(as_json(message), "shop", 42, by)
        else:
            decoded = protobuf.decode(message.SerializeToString(), "shop", 42, by)
        return decoded.spans[0], decoded.redacted

    def test_is_redacted_before_its_spans_are_sealed(self, encoding: str) -> None:
        span, counts = self._decoded(encoding, text("a", MAIL))
        assert span.attributes == {"a": MARK, "tracegrade.redacted": 1}
        assert seal(span) == span
        assert counts == {"email": 1}

    def test_tells_of_its_resource_on_each_span_and_counts_it_once(self, encoding: str) -> None:
        span, counts = self._decoded(encoding, text("a", MAIL), service=MAIL)
        assert (span.resource, span.attributes) == ({"service.name": MARK}, {"a": MARK, "tracegrade.redacted": 2})
        assert counts == {"email": 2}

    def test_is_read_as_it_is_where_no_redactor_is_given(self, encoding: str) -> None:
        span, counts = self._decoded(encoding, text("a", MAIL), by=None)
        assert (span.attributes, counts) == ({"a": MAIL}, {})

    def test_keeps_a_span_for_which_redaction_fails(self, encoding: str) -> None:
        def find(_: bytes) -> Iterator[tuple[int, int]]:
            raise ZeroDivisionError

        span, counts = self._decoded(encoding, text("a", MAIL), text("b", "c"), by=Redactor([Finder("broken", ("@",), find)]))
        assert span.attributes == {"a": FAILED, "b": "c", "tracegrade.redaction_failed": 1}
        assert counts == {FAILED: 1}


class TestRulesOfUsers:
    @staticmethod
    def _with(*rules: RuleSettings) -> Redactor:
        return made_of(RedactionSettings(rules=rules))

    def test_a_pattern_is_looked_for_everywhere(self) -> None:
        by = self._with(RuleSettings(name="customer", pattern=r"\bC-\d{4}\b"))
        span, counts = _redacted(a_span(name="ask C-1234", attributes={"a": '{"b": "x\\nC-1234"}', "c": "XC-12345"}), by)
        assert (span.name, span.attributes["a"]) == ("ask [redacted:customer]", '{"b": "x\\n[redacted:customer]"}')
        assert (span.attributes["c"], counts) == ("XC-12345", {"customer": 2})

    def test_keys_without_a_pattern_take_whole_values(self) -> None:
        by = self._with(RuleSettings(name="name", keys=("customer.name", "first")))
        span, _ = _redacted(
            a_span(attributes={"customer.name": "Ada", "a": {"first": ["A"]}, "j": '{"first": "Ada"}', "name": "x"}), by
        )
        mark = "[redacted:name]"
        assert span.attributes == {
            "customer.name": mark,
            "a": {"first": mark},
            "j": f'{{"first": "{mark}"}}',
            "name": "x",
            "tracegrade.redacted": 3,
        }

    def test_keys_with_a_pattern_are_where_it_is_looked_for(self) -> None:
        by = self._with(RuleSettings(name="number", pattern=r"\d+", keys=("phone",)))
        span, _ = _redacted(a_span(attributes={"phone": f"call 12 or {MAIL}", "x": "12", "j": '{"phone": ["12"]}'}), by)
        assert span.attributes["phone"] == f"call [redacted:number] or {MARK}"
        assert (span.attributes["x"], span.attributes["j"]) == ("12", '{"phone": ["[redacted:number]"]}')

    def test_ends_of_lines_are_ends(self) -> None:
        by = self._with(RuleSettings(name="all", pattern="^secret.*$"))
        assert _redacted(a_span(attributes={"a": "x\nsecret one\ny", "b": "secret"}), by)[1] == {"all": 2}

    def test_quotes_are_seen_through_the_escapes_of_json(self) -> None:
        by = self._with(RuleSettings(name="quoted", pattern='by "[a-z]+"'))
        assert by.text(r'{"a": "{\"b\": \"by \\\"ada\\\"\"}"}', Counter()) == r'{"a": "{\"b\": \"[redacted:quoted]\"}"}'

    def test_off_is_off(self) -> None:
        assert redactor(RedactionSettings(off=True)) is None
        by = made_of(RedactionSettings.model_validate({"detectors": {"email": False, "secret-name": False}}))
        attributes = {"a": MAIL, "password": "x"}
        assert by.attributes(attributes, Counter()) is attributes
        assert by.text("AKIAQ7ZX4TRN2WLM9KPC", Counter()) == "[redacted:aws]"


def test_names_are_seen_in_json_that_is_cut_off() -> None:
    body = as_json(request(wire_span(attributes=[text("db.password", 'hunter"2'), text("note", "kept")])))[:-9]
    assert REDACTOR.mask(body) == body.replace(b'hunter\\"2', b"*" * 9)


def test_names_are_seen_in_protobuf_that_is_cut_off() -> None:
    message = request(wire_span(attributes=[text("db.password", "hunter2 and more"), text("note", "kept")])).SerializeToString()[
        :-3
    ]
    masked = REDACTOR.mask(message)
    assert masked == message.replace(b"hunter2 and more", b"*" * 16)
    long = "x" * 1000
    assert long.encode() not in REDACTOR.mask(request(wire_span(attributes=[text("api_key", long)])).SerializeToString())


def test_what_is_masked_in_base64_is_all_of_it() -> None:
    raw = b"\xff" + b64encode(f"mail {MAIL} now".encode())
    assert REDACTOR.mask(raw) == b"\xff" + b"*" * (len(raw) - 1)
