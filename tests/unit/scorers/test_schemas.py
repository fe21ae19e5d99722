"""Schemas come with runs: their patterns mean what they mean elsewhere, and none of them can keep a worker busy."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pipeline.scorers.schema import Unusable, problem_with, violation

STALLS = "^(a+)+$"
LONG = "a" * 100 + "!"
names = st.sampled_from(["", "a", "ab", "b", "x-a", "n1"])
patterns = st.dictionaries(st.sampled_from(["^a", "b$", "^x-", "[0-9]", "."]), st.sampled_from([{}, {"type": "string"}, False]))
schemas = st.fixed_dictionaries(
    {},
    optional={
        "pattern": st.sampled_from(["^a", "b$", "x"]),
        "properties": st.dictionaries(names, st.just({"type": "integer"}), max_size=2),
        "patternProperties": patterns,
        "additionalProperties": st.sampled_from([True, False, {"type": "string", "pattern": "^a"}]),
    },
)


@given(schemas, st.dictionaries(names, st.sampled_from(["a", "b", 1]), max_size=3) | st.text("abx", max_size=3))
def test_patterns_mean_what_they_mean_to_jsonschema(schema: dict[str, Any], value: Any) -> None:
    assert (violation(value, schema) is None) == Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": STALLS}, LONG),
        ({"patternProperties": {STALLS: {}}}, {LONG: 1}),
        ({"patternProperties": {STALLS: {}}, "additionalProperties": False}, {LONG: 1}),
        ({"allOf": [{"patternProperties": {STALLS: {}}}], "unevaluatedProperties": False}, {LONG: 1}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "propertyNames": {"pattern": STALLS}}, {LONG: 1}),
    ],
    ids=["pattern", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"],
)
def test_no_pattern_stalls(schema: dict[str, Any], value: Any) -> None:
    try:
        violation(value, schema)
    except Unusable:
        assert "unevaluatedProperties" in schema


def test_a_pattern_that_re2_does_not_read_says_nothing_of_what_it_is_about() -> None:
    email = {"type": "object", "properties": {"to": {"type": "string", "pattern": "^(?!x).*@"}, "n": {"type": "integer"}}}
    assert violation({"n": 1}, email) is None
    with pytest.raises(Unusable):
        violation({"to": "a@b", "n": 1}, email)


BESIDE = {"properties": {"a": {}}, "patternProperties": {r"^\d$": {}}, "additionalProperties": False}
"""A digit is one of ten to ECMA 262 and to RE2; to Python's expressions one of any script."""


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"a": 1, "7": 1}, BESIDE, None),
        ({"a": 1, "7": 1, "\u0663": 1}, BESIDE, "$: Additional properties are not allowed ('\u0663' was unexpected)"),
        ("b", {"pattern": "^a"}, "$: 'b' does not match '^a'"),
        ("\ud800", {"pattern": "a"}, "$: '\\ud800' does not match 'a'"),
        ({"ab": "x"}, {"patternProperties": {"^a": {"type": "number"}}}, "$.ab: 'x' is not of type 'number'"),
        ("0.075", {"multipleOf": 0.01}, None),
        (0.075, {"multipleOf": 0.01}, "$: 0.075 is not a multiple of 0.01"),
    ],
)
def test_a_violation_says_where_and_what(value: Any, schema: dict[str, Any], expected: str | None) -> None:
    assert violation(value, schema) == expected


def test_what_is_no_schema_is_told_in_one_line() -> None:
    assert problem_with({"type": "objekt"}) == "'objekt' is not valid under any of the given schemas"
    assert problem_with({"type": "object"}) is None
