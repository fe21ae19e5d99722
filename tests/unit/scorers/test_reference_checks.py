"""A run against its reference: which tools, which calls, in which order, with which answer (spec section 4.1)."""

from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_builders import a_call, a_failure, a_model_step, a_run, a_wish

from pipeline.model.reference import Matcher, MatcherKind, Order, Reference, ReferenceCall
from pipeline.model.result import Outcome
from pipeline.model.run import Ended
from pipeline.model.step import ToolCall
from pipeline.scorers.reference.matching import tool_call_accuracy
from pipeline.scorers.reference.selection import f1, plan_adherence, tool_selection_f1
from pipeline.scorers.reference.task import task_success

PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE


def reference(*tools: str | ReferenceCall, **fields: Any) -> Reference:
    return Reference(tuple(ReferenceCall(one) if isinstance(one, str) else one for one in tools), **fields)


def calls(text: str) -> tuple[ToolCall, ...]:
    return tuple(a_call(name) for name in text.split())


@pytest.mark.parametrize(
    ("wanted", "called", "value"),
    [
        ("a b", "a b", 1.0),
        ("a a", "a a", 1.0),
        ("a a", "a", 0.667),
        ("a b", "c", 0.0),
    ],
)
def test_tool_selection_f1(wanted: str, called: str, value: float) -> None:
    finding = tool_selection_f1(a_run(*calls(called)), reference(*wanted.split()))
    assert finding.value == value
    assert finding.outcome is (PASS if value == 1 else FAIL)


def test_an_optional_tool_is_neither_missed_nor_one_too_many_and_a_forbidden_one_is() -> None:
    wanted = reference("refund", ReferenceCall("lookup", optional=True), forbidden=frozenset({"delete"}))
    assert tool_selection_f1(a_run(*calls("refund")), wanted).value == 1
    assert tool_selection_f1(a_run(*calls("lookup lookup refund")), wanted).value == 1
    assert tool_selection_f1(a_run(*calls("refund delete")), wanted).value == 0.667
    assert tool_selection_f1(a_run(*calls("email")), wanted).reason == "not called: refund; not in the reference: email"


NAMES = st.lists(st.sampled_from("abc"), max_size=6)


@given(wanted=NAMES, called=NAMES, data=st.data())
def test_f1_asks_for_no_order_and_lies_between_nothing_and_all(wanted: list[str], called: list[str], data: st.DataObject) -> None:
    value = f1(wanted, called, {*wanted})
    assert 0 <= value <= 1
    assert value == f1(wanted, data.draw(st.permutations(called)), {*wanted})
    assert f1(wanted, wanted, {*wanted}) == 1


@pytest.mark.parametrize(
    ("wanted", "called", "value"),
    [("a b c", "a b c", 1.0), ("a b c", "a x b y c", 1.0), ("a b c", "c b a", 1 / 3), ("a b c d", "b d", 0.5), ("a", "", 0.0)],
)
def test_plan_adherence(wanted: str, called: str, value: float) -> None:
    finding = plan_adherence(a_run(*calls(called)), reference(*wanted.split()))
    assert finding is not None
    assert finding.value == value


def test_without_a_plan_there_is_no_adherence() -> None:
    assert plan_adherence(a_run(*calls("a")), reference()) is None


PAY = ReferenceCall(
    "pay",
    {"to": "Ann Lee", "amount": 42.5, "tags": ["a", "b"], "note": "any"},
    ignored=frozenset({"note"}),
    within={"amount": Decimal("0.01")},
    sets=frozenset({"tags"}),
    alternatives={"to": ("A. Lee",)},
)
PAID = {"to": "Ann Lee", "amount": 42.5, "tags": ["a", "b"]}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, PASS),
        ({"to": " Ann  Lee"}, PASS),
        ({"to": "A. Lee"}, PASS),
        ({"to": "ann lee"}, FAIL),
        ({"amount": "42.50"}, PASS),
        ({"amount": 42.51}, PASS),
        ({"amount": 42.52}, FAIL),
        ({"tags": ["b", "a", "a"]}, PASS),
        ({"tags": ["b"]}, FAIL),
        ({"tags": "a"}, FAIL),
        ({"note": "something else"}, PASS),
        ({"extra": None}, FAIL),
    ],
)
def test_arguments_are_compared_by_what_they_are(changed: dict[str, Any], expected: Outcome) -> None:
    assert tool_call_accuracy(a_run(a_call("pay", PAID | changed)), reference(PAY)).outcome is expected


def test_numbers_are_compared_without_floats_and_no_arguments_are_no_arguments() -> None:
    big = ReferenceCall("a", {"id": 9007199254740993})
    assert tool_call_accuracy(a_run(a_call("a", {"id": 9007199254740992})), reference(big)).outcome is FAIL
    none = ReferenceCall("a", {})
    assert tool_call_accuracy(a_run(a_call("a", {})), reference(none)).outcome is PASS
    assert tool_call_accuracy(a_run(a_call("a", {"x": 1})), reference(none)).outcome is FAIL


@pytest.mark.parametrize(
    ("called", "right"),
    [
        ("a b", {Order.EXACT, Order.IN_ORDER, Order.ANY, Order.SUBSET, Order.SUPERSET}),
        ("b a", {Order.ANY, Order.SUBSET, Order.SUPERSET}),
        ("a x b", {Order.IN_ORDER, Order.SUPERSET}),
        ("b x a", {Order.SUPERSET}),
        ("a", {Order.SUBSET}),
        ("", {Order.SUBSET}),
        ("a a b", {Order.IN_ORDER, Order.SUPERSET}),
        ("x", set()),
    ],
)
def test_five_orders(called: str, right: set[Order]) -> None:
    run = a_run(*calls(called))
    assert {order for order in Order if tool_call_accuracy(run, reference("a", "b", order=order)).outcome is PASS} == right


@pytest.mark.parametrize("order", Order)
def test_what_is_optional_may_be_left_out_in_every_order(order: Order) -> None:
    wanted = reference("a", ReferenceCall("read", optional=True), "b", order=order)
    assert tool_call_accuracy(a_run(*calls("a b")), wanted).outcome is PASS
    assert tool_call_accuracy(a_run(*calls("a read b")), wanted).outcome is PASS


@pytest.mark.parametrize("order", Order)
def test_a_retry_after_a_failure_is_no_call_too_many(order: Order) -> None:
    assert tool_call_accuracy(a_run(a_failure("a"), a_call("a")), reference("a", order=order)).outcome is PASS


def test_the_right_call_that_failed_was_the_right_call() -> None:
    assert tool_call_accuracy(a_run(a_failure("a")), reference("a")).outcome is PASS


def test_the_same_call_twice_counts_twice() -> None:
    assert tool_call_accuracy(a_run(*calls("a")), reference("a", "a")).outcome is FAIL
    assert tool_call_accuracy(a_run(*calls("a a")), reference("a", "a")).outcome is PASS
    assert tool_call_accuracy(a_run(*calls("a a")), reference("a")).outcome is FAIL


def test_calls_are_paired_so_that_most_fit() -> None:
    narrow, wide = ReferenceCall("a", {"x": 1}), ReferenceCall("a")
    for wanted in permutations((narrow, wide, ReferenceCall("a", {"x": 2}, optional=True))):
        run = a_run(a_call("a", {"x": 1}), a_call("a", {"x": 2}))
        assert tool_call_accuracy(run, reference(*wanted)).outcome is PASS


def test_a_forbidden_call_fails_whatever_else_is_right() -> None:
    finding = tool_call_accuracy(a_run(*calls("a delete")), reference("a", order=Order.SUPERSET, forbidden=frozenset({"delete"})))
    assert (finding.outcome, finding.reason) == (FAIL, "delete must not be called")


def test_what_was_asked_for_counts_only_where_no_execution_is_seen() -> None:
    assert tool_call_accuracy(a_run(a_call("a"), a_wish("b")), reference("a")).outcome is PASS
    assert tool_call_accuracy(a_run(a_wish("a")), reference("a")).outcome is PASS
    assert tool_call_accuracy(a_run(a_wish("b")), reference("a")).outcome is FAIL


@pytest.mark.parametrize("order", Order)
def test_arguments_that_were_not_captured_are_in_doubt_only_where_they_decide(order: Order) -> None:
    wanted = reference(ReferenceCall("a", {"x": 1}), order=order)
    assert tool_call_accuracy(a_run(a_call("a", None)), wanted).outcome is UNKNOWN
    assert tool_call_accuracy(a_run(a_call("a", None), a_call("b")), wanted).outcome is (
        UNKNOWN if order in (Order.IN_ORDER, Order.SUPERSET) else FAIL
    )


@pytest.mark.parametrize("measure", [tool_selection_f1, plan_adherence, tool_call_accuracy])
def test_calls_that_nobody_captured_are_no_measurement(measure: Any) -> None:
    finding = measure(a_run(steps=(a_model_step("no_content"),)), reference("a"))
    assert (finding.outcome, finding.value) == (UNKNOWN, None)


@pytest.mark.parametrize(
    ("kind", "expected", "answer", "outcome"),
    [
        (MatcherKind.EQUALS, "Paid  in full", "paid in FULL ", PASS),
        (MatcherKind.EQUALS, "STRASSE", "straße", PASS),
        (MatcherKind.EQUALS, "paid", "paid.", FAIL),
        (MatcherKind.CONTAINS, "in full", "It is paid\nin full.", PASS),
        (MatcherKind.CONTAINS, "in full", "It is not paid in full.", PASS),
        (MatcherKind.PATTERN, r"R-[0-9]+$", "Your refund is R-77", PASS),
        (MatcherKind.PATTERN, r"^R-[0-9]+$", "Your refund is R-77", FAIL),
        (MatcherKind.JSON, '{"a": 1, "b": [2]}', '```json\n{"b": [2.0], "a": 1}\n```', PASS),
        (MatcherKind.JSON, '{"a": 1}', "a is 1", FAIL),
        (MatcherKind.NUMBER, "1234.5", "It comes to 1,234.50 in all.", PASS),
        (MatcherKind.NUMBER, "1234.5", "1234.56", FAIL),
        (MatcherKind.NUMBER, "42", "order A42", FAIL),
    ],
)
def test_task_success(kind: MatcherKind, expected: str, answer: str, outcome: Outcome) -> None:
    assert task_success(a_run(answer=answer), Matcher(kind, expected)).outcome is outcome


def test_a_number_may_differ_by_its_tolerance() -> None:
    matcher = Matcher(MatcherKind.NUMBER, "10", within=Decimal("0.1"))
    assert task_success(a_run(answer="10.1"), matcher).outcome is PASS
    assert task_success(a_run(answer="10.11"), matcher).outcome is FAIL


def test_no_answer_fails_and_one_that_nobody_captured_is_unknown() -> None:
    matcher = Matcher(MatcherKind.EQUALS, "done")
    assert task_success(a_run(answer=None, ended=Ended.ERROR), matcher).outcome is FAIL
    assert task_success(a_run(answer=None, ended=Ended.ANSWER), matcher).outcome is UNKNOWN
    assert task_success(a_run(answer="do", flags=("truncated",)), matcher).outcome is UNKNOWN
