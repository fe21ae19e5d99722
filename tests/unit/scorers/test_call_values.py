"""Values of arguments as numbers and as evidence."""

from decimal import Decimal
from typing import Any

import pytest
from run_builders import a_call

from pipeline.scorers.calls import canonical, describe, number
from pipeline.scorers.json_values import parsed


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, Decimal(1)),
        (0.1, Decimal("0.1")),
        ("-1.50", Decimal("-1.50")),
        (Decimal("2.5"), Decimal("2.5")),
        ("1" * 300, Decimal("1" * 300)),
        ("1" * 301, None),
        ("0042", None),
        ("1e5", None),
        (True, None),
        (float("nan"), None),
        (Decimal("NaN"), None),
        (Decimal("Infinity"), None),
        (None, None),
    ],
)
def test_what_is_a_number(value: Any, expected: Decimal | None) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(("one", "other"), [([1], [2]), (True, False), (None, False), ({"a": 1}, [1]), ("a b", "ab"), ([], {})])
def test_different_values_differ(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)


def test_json_is_read_without_floats() -> None:
    assert parsed("[0.1, 1e400]") == [Decimal("0.1"), Decimal("1e400")]


def test_evidence_is_cut_to_three_hundred_characters() -> None:
    frame = len('a({"x":""})')
    whole = describe(a_call("a", {"x": "y" * (300 - frame)}))
    assert (len(whole), whole[-4:]) == (300, 'y"})')
    cut = describe(a_call("a", {"x": "y" * (301 - frame)}))
    assert (len(cut), cut[-3:]) == (300, 'y"…')


def test_what_json_cannot_say_is_evidence_all_the_same() -> None:
    """Some frameworks record arguments as Python writes them, complex numbers too."""
    assert describe(a_call("a", {"z": 1j})) == 'a({"z":"1j"})'
