"""Text that was made to be slow, to hide a secret, or to make redaction itself fail."""

import json
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest
from secrets_of_all_kinds import PLANTED

from collectors.redaction.configured import made_of
from collectors.redaction.finder import Finder
from collectors.redaction.redactor import Redactor
from pipeline.config.redaction import FAILED, RedactionSettings, RuleSettings
from pipeline.patterns import MOST, WINDOW, Pattern, PatternError, check_rule

REDACTOR = made_of(RedactionSettings())
SIZE = 1_000_000
EMAIL = "ada@example.com"


def _seconds(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


HOSTILE = {
    "backslashes": "\\" * SIZE,
    "quotes": '"' * SIZE,
    "escapes": r"\u0041" * (SIZE // 6),
    "open brackets": "[" * SIZE,
    "open braces": '{"a":' * (SIZE // 5),
    "at signs": "a@" * (SIZE // 2),
    "domains": "@" + "a." * (SIZE // 2),
    "a long local part": "a" * SIZE + "@",
    "addresses": "a@b.cd " * (SIZE // 7),
    "digits": "4" * SIZE,
    "cards": "4012888888881881 " * (SIZE // 17),
    "card groups": "4012-" * (SIZE // 5),
    "heads of keys": "BEGIN RSA PRIVATE KEY" * (SIZE // 21),
    "ends of keys": "-----END RSA PRIVATE KEY-----" * (SIZE // 29),
    "keys": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----" * (SIZE // 58),
    "passwords": "password=" * (SIZE // 9),
    "secret names": "password" * (SIZE // 8),
    "colons": "://a:" * (SIZE // 5),
    "web tokens": "eyJ" * (SIZE // 3),
    "dotted web tokens": "eyJa." * (SIZE // 5),
    "runs of base64": "SSBhbSBib3JlZCBieSB0aGlz " * (SIZE // 25),
    "one run of base64": b64encode(b"password=x " * (SIZE // 15)).decode(),
    "base64 in base64": b64encode(b64encode(b64encode(b"mail ada@example.com " * (SIZE // 60)))).decode(),
    "accounts": "AA00 AAAA AAAA " * (SIZE // 15),
    "markers": "[redacted:email]a@b.cd" * (SIZE // 22),
    "user info": "://a:b" + "@c.de" * (SIZE // 5),
    "npm": "//a/" * (SIZE // 4),
    "aws": "awskey'" * (SIZE // 7),
    "json of addresses": json.dumps([f"x.{EMAIL}"] * (SIZE // 21)),
    "json in json": json.dumps(json.dumps(json.dumps(json.dumps({"a": ['"\\'] * 20_000, "b": "a@b.cd"})))),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_million_characters_take_their_time_and_no_more(text: str) -> None:
    """Linear: four times as much takes about four times as long. Quadratic would be sixteen, with seconds of its own."""
    quarter = _seconds(lambda: REDACTOR.text(text[: len(text) // 4], Counter()))
    whole = _seconds(lambda: REDACTOR.text(text, Counter()))
    assert whole < max(10 * quarter, 3.0)
    assert whole < 6


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_it_hides_no_secret_that_follows_and_is_redacted_once(text: str) -> None:
    clean = REDACTOR.text(f"{text[:20_000]}\n {EMAIL}", Counter())
    assert EMAIL not in clean
    assert REDACTOR.text(clean, Counter()) == clean


def test_text_that_has_as_many_states_as_it_can_hides_nothing() -> None:
    chance = Random(5)
    alphabet = "aAkKeEyY0456789@._-=:/\\\"' \nsSpPtTghIxXbB[]"
    for _ in range(5):
        noise = "".join(chance.choices(alphabet, k=300_000))
        for planted in PLANTED[:: len(PLANTED) // 6]:
            assert planted.secret not in REDACTOR.text(f"{noise}\n {planted.text} \n", Counter())


@pytest.mark.parametrize("at", [0, WINDOW - 3, WINDOW - len(EMAIL), WINDOW, 2 * WINDOW - 1, 5 * WINDOW + 7])
def test_a_secret_is_found_wherever_a_search_is_begun_anew(at: int) -> None:
    text = " " * at + EMAIL + " " * WINDOW
    assert REDACTOR.text(text, Counter()) == text.replace(EMAIL, "[redacted:email]")


def test_a_rule_that_looks_far_ahead_for_little_takes_the_rest_of_the_window() -> None:
    redactor = made_of(RedactionSettings(rules=(RuleSettings(name="greedy", pattern="x(.*y)?"),)))
    text = "x" * SIZE
    assert _seconds(lambda: redactor.text(text, Counter())) < 10
    counts: Counter[str] = Counter()
    assert "x" not in redactor.text(text, counts).replace("[redacted:greedy]", "")


def test_very_many_hits_of_a_rule_in_one_place_are_one() -> None:
    redactor = made_of(RedactionSettings(rules=(RuleSettings(name="customer", pattern=r"C-\d+"),)))
    clean = redactor.text("C-1 and words, " * (2 * MOST), Counter())
    assert clean.count("[redacted:customer]") == MOST + 1
    assert "C-1" not in clean
    assert REDACTOR.text(f"{EMAIL}, " * (2 * MOST), Counter()).count("[redacted:email]") == 2 * MOST


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?<=a)b", "invalid perl operator"),
        (r"(a)\1", "invalid escape"),
        ("(", "missing"),
        ("a{2000}", "repetition"),
        ("x*", "found in an empty text"),
        (r"\Aa", "write ^ and $"),
        (r"a\z", "write ^ and $"),
    ],
)
def test_a_rule_that_cannot_be_searched_for_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=r"RE2 reads|empty text|write") as refused:
        check_rule(pattern)
    assert why in str(refused.value)


def test_a_rule_that_ends_within_a_quote_hides_no_other() -> None:
    rules = (RuleSettings(name="quote", pattern=r"\QA.1("), RuleSettings(name="group", pattern=r"(x)y"))
    redactor = made_of(RedactionSettings(rules=rules))
    texts = ["to A.1(", "AB1(", "xy", EMAIL]
    assert redactor.value(texts, Counter()) == ["to [redacted:quote]", "AB1(", "[redacted:group]", "[redacted:email]"]
    assert all(redactor.suspects_message(text.encode()) for text in (texts[0], texts[2], texts[3]))


def test_half_a_character_is_no_reason_to_fail() -> None:
    counts: Counter[str] = Counter()
    assert REDACTOR.text(f"\ud83d {EMAIL} \udc00", counts) == "\ud83d [redacted:email] \udc00"
    assert json.loads(REDACTOR.text(r'{"a": "\ud83d é", "b": "ada@example.com"}', counts)) == {
        "a": "\ud83d é",
        "b": "[redacted:email]",
    }
    assert counts == {"email": 2}


class TestADetectorThatRaises:
    @staticmethod
    def _broken() -> Redactor:
        def find(raw: bytes) -> Iterator[tuple[int, int]]:
            if b"boom" in raw:
                raise ZeroDivisionError
            yield from Pattern(r"fine\d+").regions(raw)

        return Redactor([Finder("broken", ("boom", r"fine\d+"), find)])

    def test_costs_the_value_and_not_its_neighbours(self) -> None:
        counts: Counter[str] = Counter()
        clean = self._broken().attributes({"a": "boom", "b": "fine1", "c": ["x", "boom"], "d": {"boom": 1}, "e": "e"}, counts)
        assert clean == {"a": FAILED, "b": "[redacted:broken]", "c": ["x", FAILED], "d": {FAILED: 1}, "e": "e"}
        assert counts == {FAILED: 3, "broken": 1}

    def test_costs_the_part_of_json_that_it_raises_for(self) -> None:
        counts: Counter[str] = Counter()
        assert self._broken().text('{"a": "boom", "b": "b"}', counts) == f'{{"a": "{FAILED}", "b": "b"}}'
        assert counts == {FAILED: 1}

    def test_costs_all_bytes_that_nobody_can_read(self) -> None:
        assert self._broken().mask(b"\xff boom") == b"*" * 6

    def test_redacting_what_is_left_changes_nothing(self) -> None:
        counts: Counter[str] = Counter()
        assert self._broken().text(FAILED, counts) == FAILED
        assert not counts
