"""Text that models and tools produce, as the store can hold it."""

import json
from math import inf, nan

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model.step import ToolCall
from sinks.clickhouse.text import to_json, without_surrogates


@given(st.text())
def test_cleaned_text_is_utf_8_and_clean_text_is_left_alone(text: str) -> None:
    cleaned = without_surrogates(text)
    cleaned.encode()
    assert without_surrogates(cleaned) == cleaned
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert cleaned == text


def test_two_halves_of_a_pair_become_the_character_they_spell() -> None:
    assert without_surrogates("\ud83d\ude00") == "\U0001f600"


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**40])
def test_whole_numbers_beyond_64_bits_keep_every_digit(number: int) -> None:
    call = ToolCall("pay", arguments={"account": [number]})
    assert msgspec.json.decode(to_json((call,)), type=tuple[ToolCall, ...]) == (call,)


def test_a_surrogate_in_a_tools_arguments_costs_one_character() -> None:
    call = ToolCall("say", arguments={"text": "a\ud800b", "number": 2**70})
    assert json.loads(to_json(call))["arguments"] == {"text": "a\ufffdb", "number": 2**70}


@pytest.mark.parametrize("number", [nan, inf, -inf])
def test_what_is_no_number_is_null_on_both_paths(number: float) -> None:
    assert json.loads(to_json({"x": number})) == {"x": None}
    assert json.loads(to_json({"x": number, "big": 2**70})) == {"x": None, "big": 2**70}
