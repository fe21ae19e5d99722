"""What is found in a text, what is left of it, and what must stay as it is."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from urllib.parse import quote

import pytest
from secrets_of_all_kinds import HARMLESS, HARMLESS_NAMES, PLANTED, SECRET_NAMES, Planted

from collectors.redaction.configured import made_of
from collectors.redaction.walk import Counts
from pipeline.config.redaction import Detector, RedactionSettings

REDACTOR = made_of(RedactionSettings())


def redacted(text: str) -> tuple[str, Counts]:
    counts: Counts = Counter()
    clean = REDACTOR.text(text, counts)
    assert REDACTOR.text(clean, Counter()) is clean, "redacting twice is redacting once"
    return clean, counts


def test_every_detector_has_a_secret_to_find() -> None:
    assert {one.detector for one in PLANTED} | {Detector.SECRET_NAME} == set(Detector)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: f"{one.detector}: {one.text[:30]}")
class TestASecret:
    def test_is_found_alone_under_the_name_of_its_detector(self, planted: Planted) -> None:
        clean, counts = redacted(planted.text)
        assert planted.secret not in clean
        assert f"[redacted:{planted.detector}]" in clean
        assert counts == {planted.detector: 1}

    @pytest.mark.parametrize(
        ("before", "after"), [("It is ", " as I said."), ("\n", "\n"), ('("', '")'), ("für ", " – ja"), ("\t", ",")]
    )
    def test_is_found_within_a_text_and_nothing_else_is_taken(self, planted: Planted, before: str, after: str) -> None:
        clean, _ = redacted(before + planted.text + after)
        assert planted.secret not in clean
        assert clean.startswith(before)
        if planted.detector is not Detector.AUTHORIZATION:  # cookies and schemes have spaces
            assert clean.endswith(after)

    @pytest.mark.parametrize("ascii_only", [True, False])
    @pytest.mark.parametrize("levels", [1, 2, 3])
    def test_is_found_in_json_in_json(self, planted: Planted, levels: int, ascii_only: bool) -> None:
        text, expected = f"Schlüssel:\n{planted.text}\n\\end", redacted(f"Schlüssel:\n{planted.text}\n\\end")[0]
        for level in range(levels):
            text, expected = (
                json.dumps({"at": level, "said": said, "n": 1.5}, ensure_ascii=ascii_only) for said in (text, expected)
            )
        clean, counts = redacted(text)
        assert json.loads(clean) == json.loads(expected)
        assert planted.secret not in clean
        assert counts.total() == 1

    def test_is_found_in_json_that_is_cut_off(self, planted: Planted) -> None:
        text = json.dumps({"said": f"Note\n{planted.text}\nend", "more": "x" * 50})[:-20]
        clean, _ = redacted(text)
        assert json.dumps(planted.secret)[1:-1] not in clean
        assert json.loads(clean + '"}')["said"].startswith("Note\n")

    def test_is_found_behind_the_escapes_that_json_need_not_write(self, planted: Planted) -> None:
        hidden = "".join(f"\\u{ord(one):04x}" for one in planted.text)
        clean, _ = redacted(f'{{"said": "{hidden}"}}')
        assert planted.secret not in json.loads(clean)["said"]
        cut, _ = redacted(f'{{"said": "{hidden}')
        assert planted.secret not in json.loads(cut + '"}')["said"]

    @pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
    @pytest.mark.parametrize("before", [b"", b" ", b": ", b"it is "])
    def test_is_found_in_base64(self, planted: Planted, before: bytes, encode: type) -> None:
        secret = encode(before + planted.text.encode() + b" and more of it").decode()
        clean, _ = redacted(f"data:text/plain;base64,{secret}")
        assert clean.startswith("data:text/plain;base64,[redacted:")
        assert secret[8:-8] not in clean

    def test_is_overwritten_in_bytes_that_nobody_can_read(self, planted: Planted) -> None:
        raw = b"\xff\x00\x0a\x20" + planted.text.encode() + b"\x12\xfe"
        masked = REDACTOR.mask(raw)
        assert len(masked) == len(raw)
        assert masked[:4] + masked[-2:] == b"\xff\x00\x0a\x20\x12\xfe"
        assert planted.secret.encode() not in masked


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    for written in (
        text,
        f"see {text} there",
        json.dumps({"a": text}),
        json.dumps([json.dumps({"a": text})]),
        b64encode(text.encode()).decode(),
    ):
        assert redacted(written) == (written, {})
    assert REDACTOR.mask(text.encode()) == text.encode()


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_can_tell_that_its_value_is_a_secret(name: str) -> None:
    counts: Counts = Counter()
    clean = REDACTOR.attributes({name: "anything", "a": {name: ["x", 1]}, "json": json.dumps({name: "anything"})}, counts)
    marker = "[redacted:secret-name]"
    assert clean == {name: marker, "a": {name: marker}, "json": json.dumps({name: marker})}
    assert counts == {Detector.SECRET_NAME: 3}
    assert REDACTOR.attributes(clean, Counter()) is clean


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_other_names_do_not(name: str) -> None:
    attributes = {name: "anything", "n": {name: 5}, "json": json.dumps({name: "anything"})}
    assert REDACTOR.attributes(attributes, Counter()) is attributes


@pytest.mark.parametrize("value", [None, True, False, "", [], {}])
def test_what_says_nothing_is_no_secret_under_any_name(value: object) -> None:
    attributes = {"password": value}
    assert REDACTOR.attributes(attributes, Counter()) is attributes


def test_a_number_of_tokens_is_none() -> None:
    assert REDACTOR.attributes({"token": 512, "password": 123456}, Counter()) == {
        "token": 512,
        "password": "[redacted:secret-name]",
    }


def test_json_stays_json_where_a_number_was_a_card() -> None:
    clean, _ = redacted('{"card":4012888888881881,"list":[4012888888881881,2]}')
    assert clean == '{"card":"[redacted:card]","list":["[redacted:card]",2]}'


def test_an_escape_before_an_address_is_left_whole() -> None:
    assert redacted(r'cut off: "x\nada@example.com')[0] == r'cut off: "x\n[redacted:email]'
    assert redacted(r'cut off: "x\\nada@example.com')[0] == r'cut off: "x\\[redacted:email]'


def test_a_percent_escape_is_an_at_sign() -> None:
    assert (
        redacted(f"https://x.example/?to={quote('ada@example.com', safe='')}&b=1")[0]
        == "https://x.example/?to=[redacted:email]&b=1"
    )


def test_a_forged_marker_protects_nothing() -> None:
    assert redacted("password=[redacted:x]hunter22")[0] == "password=[redacted:x]hunter22"
