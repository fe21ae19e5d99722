"""Predicates on arguments."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError
from run_builders import a_call

from pipeline.model.step import ToolCall
from pipeline.scorers.check import Missing
from pipeline.scorers.predicates import Predicate, holds


def ask(predicate: dict[str, Any], value: Any) -> bool | Missing:
    return holds({"x": Predicate.model_validate(predicate)}, a_call("refund", {"x": value}))


@pytest.mark.parametrize(
    ("predicate", "value"),
    [
        ({"equals": 100}, 100),
        ({"equals": 100}, 100.0),
        ({"equals": 100}, "100.00"),
        ({"equals": "100"}, 100),
        ({"equals": 0.1}, 0.1),
        ({"equals": "EUR"}, " EUR "),
        ({"equals": "Zoë"}, "Zoe\u0308"),
        ({"equals": True}, True),
        ({"equals": None}, None),
        ({"in": ["EUR", 7]}, 7),
        ({"greater_than": 100}, 100.01),
        ({"greater_than": 100}, "150"),
        ({"greater_than": 0.1}, 0.30000000000000004),
        ({"greater_than": 9007199254740992}, 9007199254740993),
        ({"less_than": 0}, -1),
        ({"greater_than": 1, "less_than": 3}, 2),
        ({"matches": "^A-"}, "A-1001"),
        ({"matches": "^42$"}, 42),
        ({"matches": "true"}, True),
        ({"matches": "(a+)+$"}, "a" * 5000),
        ({"matches": "^.$"}, "\ud800"),
    ],
)
def test_it_holds(predicate: dict[str, Any], value: Any) -> None:
    assert ask(predicate, value) is True


@pytest.mark.parametrize(
    ("predicate", "value"),
    [
        ({"equals": 100}, 101),
        ({"equals": 1}, True),
        ({"equals": 42}, "0042"),
        ({"equals": "A-1"}, "a-1"),
        ({"equals": None}, ""),
        ({"in": []}, "EUR"),
        ({"greater_than": 100}, 100),
        ({"greater_than": 0.3}, 0.3),
        ({"greater_than": 100}, None),
        ({"greater_than": 1, "less_than": 3}, 3),
        ({"matches": "^A-"}, "B-A-"),
        ({"matches": "None"}, None),
        ({"matches": "^(a+)+$"}, "a" * 5000 + "!"),
        ({"matches": "A$"}, "A\n"),
    ],
)
def test_it_does_not_hold(predicate: dict[str, Any], value: Any) -> None:
    assert ask(predicate, value) is False


@pytest.mark.parametrize(
    ("predicate", "value"),
    [
        ({"greater_than": 100}, "a lot"),
        ({"greater_than": 100}, "NaN"),
        ({"greater_than": 100}, float("inf")),
        ({"less_than": 100}, True),
        ({"less_than": 100}, [1]),
        ({"matches": "x"}, {"x": 1}),
    ],
)
def test_what_cannot_be_compared_cannot_be_told(predicate: dict[str, Any], value: Any) -> None:
    assert ask(predicate, value) is Missing.ARGUMENTS_NOT_COMPARABLE


def test_an_argument_that_was_not_given_is_null() -> None:
    where = {"amount": Predicate.model_validate({"equals": None})}
    assert holds(where, a_call("refund", {})) is True
    assert holds(where, a_call("refund", {"amount": 1})) is False


def test_a_dotted_name_looks_inside_unless_an_argument_is_called_so() -> None:
    where = {"order.id": Predicate.model_validate({"equals": "A-1"})}
    assert holds(where, a_call("refund", {"order": {"id": "A-1"}})) is True
    assert holds(where, a_call("refund", {"order.id": "A-1", "order": {"id": "A-2"}})) is True
    assert holds(where, a_call("refund", {"order": "A-1"})) is False


def test_no_condition_needs_no_arguments_and_a_false_one_needs_no_others() -> None:
    large = Predicate.model_validate({"greater_than": 100})
    euro = Predicate.model_validate({"equals": "EUR"})
    assert holds({}, a_call("refund")) is True
    assert holds({"amount": large}, a_call("refund")) is Missing.ARGUMENTS_NOT_CAPTURED
    assert holds({"amount": large}, ToolCall("refund", raw_arguments='{"amo')) is Missing.ARGUMENTS_NOT_CAPTURED
    assert holds({"amount": large}, a_call("refund", "A-1")) is Missing.ARGUMENTS_NOT_COMPARABLE
    assert holds({"amount": large, "currency": euro}, a_call("refund", {"amount": "?", "currency": "USD"})) is False


def test_numbers_are_read_as_they_are_written() -> None:
    assert Predicate.model_validate({"greater_than": 0.1}).greater_than == Decimal("0.1")


@pytest.mark.parametrize(
    "written",
    [{}, {"is": 3}, {"matches": "("}, {"matches": "a(?=b)"}, {"greater_than": "NaN"}, {"greater_than": True}, {"equals": [1]}],
)
def test_what_is_no_predicate_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Predicate.model_validate(written)
