import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collectors.replay.identity import Identity, RawId, derived_span_id, derived_trace_id, parent_id, span_id, trace_id

Reader = tuple[Callable[[RawId], Identity], int]
READERS: st.SearchStrategy[Reader] = st.sampled_from([(trace_id, 16), (span_id, 8)])
FREE_TEXT = st.text(alphabet="ghijklmnop-_ äß.", min_size=1, max_size=40)


@given(READERS, st.data())
def test_hex_of_the_right_length_stays_in_lower_case_and_is_not_noted(reader: Reader, data: st.DataObject) -> None:
    read, size = reader
    text = data.draw(st.binary(min_size=size, max_size=size).filter(any)).hex()
    assert read(text) == Identity(text, "")
    assert read(text.upper()) == Identity(text, "")


@given(READERS, st.data())
def test_a_decimal_id_keeps_its_value_and_is_noted(reader: Reader, data: st.DataObject) -> None:
    read, size = reader
    number = data.draw(st.integers(min_value=1, max_value=2 ** (8 * size) - 1))
    found = read(number)
    assert len(found.hex) == 2 * size
    assert int(found.hex, 16) == number
    assert found.original in (str(number), "")


@given(READERS, st.data())
def test_a_base64_id_keeps_its_bytes(reader: Reader, data: st.DataObject) -> None:
    read, size = reader
    raw = data.draw(st.binary(min_size=size, max_size=size).filter(any))
    text = b64encode(raw).decode()
    assert read(text) == Identity(raw.hex(), text)


@given(READERS, st.one_of(st.text(min_size=1), st.integers()))
@example((trace_id, 16), "0" * 32)
@example((span_id, 8), 0)
@example((span_id, 8), 2**64)
@example((span_id, 8), "ÿ" * 16)
@example((span_id, 8), "²")
@example((span_id, 8), "A" * 9 + "B==")
def test_any_id_becomes_lower_case_hex_that_otlp_allows_and_always_the_same(reader: Reader, raw: Any) -> None:
    read, size = reader
    found = read(raw)
    assert re.fullmatch(rf"[0-9a-f]{{{2 * size}}}", found.hex)
    assert found.hex.strip("0")
    assert found == read(raw)
    assert found.original in (str(raw), "")


@given(READERS, st.sets(FREE_TEXT, min_size=2, max_size=30))
def test_different_texts_become_different_ids_and_keep_what_they_were(reader: Reader, texts: set[str]) -> None:
    read, _ = reader
    assert len({read(text).hex for text in texts}) == len(texts)
    assert all(read(text).original == text for text in texts)


def test_worked_values() -> None:
    assert trace_id(39712373237291850001929057769826244787).hex == f"{39712373237291850001929057769826244787:032x}"
    assert span_id("2795294992452118289").hex == "26cae1fc4b896711"
    assert span_id("0x" + "ab" * 8).hex == "ab" * 8
    assert span_id(None) == span_id("") == Identity("", "")


@pytest.mark.parametrize("nothing", [None, "", 0, "0", "0000000000000000"])
def test_a_missing_parent_stays_empty(nothing: Any) -> None:
    assert parent_id(nothing) == ""


@given(st.one_of(FREE_TEXT, st.integers(min_value=1, max_value=2**64 - 1)))
def test_a_parent_is_found_under_the_id_of_its_span(raw: Any) -> None:
    assert parent_id(raw) == span_id(raw).hex


@given(st.sets(st.tuples(st.binary(min_size=8, max_size=8), st.sampled_from(["one", "two"])), min_size=2))
def test_derived_ids_differ_by_span_and_by_replay(known: set[tuple[bytes, str]]) -> None:
    assert len({derived_span_id(raw.hex(), salt) for raw, salt in known}) == len(known)
    assert len({derived_trace_id(raw.hex(), salt) for raw, salt in known}) == len(known)
