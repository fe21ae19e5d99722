"""The allowance of a request: what it suffices for is redacted, and what is suspicious beyond it is replaced whole and said to be."""

import json
from collections import Counter

import pytest
from builders import a_span
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from unit.otlp.wire_forms import text, wire_span

from collectors.redaction.allowance import ESCAPE, FOUND, OVERDRAFT, SEEN, SUSPECT, UNLIMITED, Allowance, SpentError
from collectors.redaction.configured import made_of
from collectors.redaction.redactor import Redactor
from collectors.redaction.spans import RequestRedaction
from pipeline.config.redaction import FAILED, RedactionSettings

REDACTOR = made_of(RedactionSettings())
EMAIL = "mail ada@example.com"
CLEAN = "mail [redacted:email]"
NAMES = sorted(
    {name for key, name in vars(gen_ai_attributes).items() if key.startswith("GEN_AI_") and isinstance(name, str)}
    - {"gen_ai.token.type"}  # of metrics
)


def _with(units: int) -> Redactor:
    return REDACTOR.for_request(Allowance(units))


def test_what_is_taken_is_gone_and_what_is_too_much_is_not() -> None:
    allowance = Allowance(10)
    allowance.take(7)
    with pytest.raises(SpentError):
        allowance.take(4)
    allowance.take(3)
    with pytest.raises(SpentError):
        allowance.take(1)


def test_what_is_done_in_any_case_is_done_beyond_the_end_until_the_overdraft_is() -> None:
    allowance = Allowance(10)
    allowance.overdraw(10 + OVERDRAFT)
    with pytest.raises(SpentError):
        allowance.take(0)
    with pytest.raises(SpentError):
        allowance.overdraw(1)


def test_a_request_has_enough_for_its_texts_and_each_request_has_its_own() -> None:
    for _ in range(2):
        counts: Counter[str] = Counter()
        assert [REDACTOR.for_request().text(EMAIL, counts) for _ in range(100)] == [CLEAN] * 100
        assert counts == {"email": 100}


def test_one_suspicious_value_costs_once_however_often_it_stands_there() -> None:
    number, secret = 4_611_686_018_427_387_904, "4111 1111 1111 1111"
    counts: Counter[str] = Counter()
    said = {"said": "words", "many": [number] * 200_000, "cards": [secret] * 50_000}
    clean = REDACTOR.for_request().attributes(said, counts)
    assert clean == {"said": "words", "many": [number] * 200_000, "cards": ["[redacted:card]"] * 50_000}
    assert counts == {"card": 50_000}


def test_beyond_it_what_is_suspicious_is_replaced_whole_and_counted() -> None:
    redactor, counts = _with(SUSPECT + 2 * FOUND + 10 * len(EMAIL)), Counter[str]()
    assert [redactor.text(EMAIL, counts) for _ in range(3)] == [CLEAN, FAILED, FAILED]
    assert counts == {"email": 1, FAILED: 2}
    assert redactor.text("words", counts) == "words"


def test_beyond_it_the_neighbours_of_what_is_suspicious_are_kept() -> None:
    counts: Counter[str] = Counter()
    document = {"gen_ai.output.messages": "words", "to": EMAIL, "list": ["words", EMAIL, "more words"], "number": 7}
    assert _with(0).attributes(document, counts) == {
        "gen_ai.output.messages": "words",
        "to": FAILED,
        "list": ["words", FAILED, "more words"],
        "number": 7,
    }
    assert counts == {FAILED: 2}


@pytest.mark.parametrize("others", [1, 7, 300])
@pytest.mark.parametrize("word", ["wörds", "two\nlines", "\n", ""])
def test_a_text_among_others_is_the_one_that_is_meant(others: int, word: str) -> None:
    for place in (0, others // 2, others):
        texts = [word] * others
        texts.insert(place, EMAIL)
        expected = [word] * others
        expected.insert(place, FAILED)
        assert _with(0).value(texts, Counter()) == expected


def test_of_json_that_is_half_read_nothing_is_kept() -> None:
    counts: Counter[str] = Counter()
    document = '["' + f'{EMAIL}", "' * 20 + 'end"]'
    assert _with(8 * SUSPECT).text(document, counts) == FAILED
    assert counts == {FAILED: 1}


def test_a_batch_of_the_collector_with_an_address_in_each_span_loses_nothing() -> None:
    redaction = RequestRedaction(REDACTOR)
    attributes = {f"gen_ai.attribute.{number}": f"value {number}" for number in range(14)} | {"to": EMAIL}
    for number in range(8192):
        redaction.span(a_span(span_id=f"{number:016x}", attributes=attributes))
    assert redaction.counts == {"email": 8192}


def test_thousands_of_messages_with_an_address_each_lose_nothing() -> None:
    message = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"{'words ' * 320}{EMAIL}"}]}])
    redactor, counts = REDACTOR.for_request(), Counter[str]()
    assert len(message) > 1900
    for _ in range(2500):
        redactor.text(message, counts)
    assert counts == {"email": 2500}


def test_where_even_to_see_what_is_suspicious_takes_too_long_all_of_a_span_is_replaced_together() -> None:
    redactor, counts = _with(0), Counter[str]()
    many = {"to": [f"{EMAIL}{number}" for number in range(OVERDRAFT // SEEN + 1)], "k": "words"}
    assert redactor.attributes(many, counts) == {FAILED: FAILED}
    assert redactor.attributes({"a": "words", "to": EMAIL}, counts) == {FAILED: FAILED}
    assert redactor.value(["words", EMAIL], counts) == FAILED
    assert redactor.value({"a": 1, "to": EMAIL}, counts) == FAILED
    assert redactor.value(EMAIL, counts) == FAILED
    assert counts == {FAILED: 5}
    assert redactor.attributes({"a": "words", "number": 7}, counts) == {"a": "words", "number": 7}


def test_to_open_many_escapes_is_work_too() -> None:
    counts: Counter[str] = Counter()
    assert _with(SUSPECT + 99 * ESCAPE).text(r"\u0040" * 100, counts) == FAILED


def test_a_secret_under_its_name_is_replaced_whatever_is_left() -> None:
    assert "hunter2" not in str(_with(0).attributes({"password": "hunter2"}, Counter()))


def test_who_redacts_one_thing_is_never_at_an_end() -> None:
    counts: Counter[str] = Counter()
    with pytest.raises(SpentError):
        _with(0)._allowance.take(1)
    assert REDACTOR._allowance is UNLIMITED
    assert REDACTOR.value([EMAIL] * 10_000, counts) == [CLEAN] * 10_000


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_the_conventions_is_suspicious(name: str) -> None:
    """What every span has costs its request no allowance, and no look at its texts."""
    assert not REDACTOR.suspects([name])
    assert not REDACTOR.suspects_message(wire_span(attributes=[text(name, "words")]).SerializeToString())
