"""JSON stays JSON, only what is a secret changes in it, and redacting twice is redacting once: whatever is around."""

import json
from base64 import b64encode
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from secrets_of_all_kinds import PLANTED

from collectors.redaction.configured import made_of
from collectors.redaction.names import names_a_secret
from collectors.redaction.redactor import Redactor
from collectors.redaction.texts import texts_of
from collectors.redaction.walk import Walk
from pipeline.config.redaction import RedactionSettings, RuleSettings

REDACTOR = made_of(RedactionSettings())
WITH_RULES = made_of(
    RedactionSettings(
        rules=(
            RuleSettings(name="customer", pattern=r"C-\d{4}"),
            RuleSettings(name="words", pattern=r"red\w+|\[.*\]"),
            RuleSettings(name="quoted", pattern=r'name: "[^"]+"'),
            RuleSettings(name="whole", keys=("a",)),
            RuleSettings(name="there", pattern="x+", keys=("b",)),
        )
    )
)
_PLAIN = st.text(max_size=12)
_PIECES = st.one_of(
    _PLAIN,
    st.sampled_from([one.text for one in PLANTED]),
    st.sampled_from(
        ['"', "\\", "\n", "\\n", r"\u0040", "@", ".com", "://a:b@", "password=", "[redacted:email]", "C-1234", 'name: "x"', "xx"]
    ),
)
TEXTS = st.lists(_PIECES, max_size=5).map("".join)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)
NAME_PIECES = [
    "pass",
    "word",
    "Password",
    "secret",
    "api",
    "Api",
    "key",
    "Key",
    "access",
    "auth",
    "Token",
    "token",
    "pwd",
    "set",
    "Cookie",
]
NAME_PIECES += [
    "cookie",
    "x-",
    "X",
    "proxy",
    "Authorization",
    "credentials",
    "db",
    ".",
    "_",
    "-",
    " ",
    ":",
    "/",
    "\n",
    "é",
    "\u212a",
    "\u017f",
]
NAMES = st.one_of(st.sampled_from(["a", "b", "password", "token", "x"]), TEXTS)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)


def _clean(redactor: Redactor, text: str) -> str:
    return redactor.text(text, Counter())


@given(DOCUMENTS, st.booleans())
def test_redacting_json_is_redacting_what_it_says(document: dict[str, Any], ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only)
    for redactor in (REDACTOR, WITH_RULES):
        clean = _clean(redactor, text)
        expected = redactor.attributes(document, Counter())
        assert json.loads(clean) == expected
        if expected is document:
            assert clean is text


@given(TEXTS, st.integers(0, 200))
def test_a_string_that_is_cut_off_can_be_ended_as_before(text: str, at: int) -> None:
    """What a replacement takes never is half of an escape, and what it leaves never ends a string."""
    cut = json.dumps(text)[:-1][:at]
    clean = _clean(REDACTOR, cut)
    assert _ends(clean) == _ends(cut)


def _ends(text: str) -> bool:
    """Whether a string that is ended here is one: not where the cut went through an escape."""
    try:
        json.loads(f'{text}"')
    except ValueError:
        return False
    return True


@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    for redactor in (REDACTOR, WITH_RULES):
        once = _clean(redactor, text)
        assert _clean(redactor, once) == once


@given(DOCUMENTS)
def test_and_so_for_attributes_of_any_form(document: dict[str, Any]) -> None:
    for redactor in (REDACTOR, WITH_RULES):
        once = redactor.attributes(document, Counter())
        assert redactor.attributes(once, Counter()) == once


@given(DOCUMENTS)
def test_in_what_the_quick_pass_lets_go_nothing_would_be_found(document: dict[str, Any]) -> None:
    """To look at every text gives what to look at the suspicious ones does."""
    raw = next((text for text in document if text), "").encode()
    document = {**document, "raw": {"bytesValue": b64encode(raw).decode()}}
    for redactor in (REDACTOR, WITH_RULES):
        counts, expected = Counter[str](), Counter[str]()
        walk = Walk(frozenset(texts_of(document)), redactor._suspicious, redactor._names, expected, 0)
        assert redactor.attributes(document, counts) == walk.attributes(document)
        assert counts == expected
        if not redactor.suspects(texts_of(document)):
            assert redactor.attributes(document, Counter()) is document


@given(st.lists(st.sampled_from(NAME_PIECES), max_size=5).map("".join), st.lists(TEXTS, max_size=2))
def test_a_name_that_says_so_is_among_what_the_quick_pass_finds(name: str, others: list[str]) -> None:
    if names_a_secret(name):
        assert REDACTOR.look([*others, name, "words"], Counter()) is not None
        assert "x1y2z3" not in str(REDACTOR.attributes({name: "x1y2z3"}, Counter()))


@given(DOCUMENTS)
def test_the_order_of_attributes_changes_nothing(document: dict[str, Any]) -> None:
    backwards = dict(reversed(document.items()))
    assert REDACTOR.attributes(document, Counter()) == REDACTOR.attributes(backwards, Counter())


@given(st.binary(max_size=60), st.sampled_from(PLANTED), st.binary(max_size=20))
def test_masking_keeps_the_length(before: bytes, planted: Any, after: bytes) -> None:
    raw = before + b" " + planted.text.encode() + b" " + after
    masked = REDACTOR.mask(raw)
    assert len(masked) == len(raw)
    assert REDACTOR.mask(masked) == masked
