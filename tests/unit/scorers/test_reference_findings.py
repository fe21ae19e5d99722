"""Findings against a reference whole: every number, and every word that a reader is shown."""

from decimal import Decimal
from typing import Any

import pytest
from run_builders import a_call, a_failure, a_model_step, a_run

from pipeline.model.reference import Matcher, MatcherKind, Order, Reference, ReferenceCall
from pipeline.model.result import Outcome
from pipeline.model.run import Ended, Run
from pipeline.model.step import ToolCall
from pipeline.scorers.check import Finding
from pipeline.scorers.reference.matching import tool_call_accuracy
from pipeline.scorers.reference.selection import f1, plan_adherence, tool_selection_f1
from pipeline.scorers.reference.task import task_success

UNSEEN = a_run(steps=(a_model_step("no_content"),))
NOT_CAPTURED = Finding(Outcome.INSUFFICIENT_EVIDENCE, None, 0.0, 1.0, "calls_not_captured: the models' content was not captured")


def passed(value: float = 1.0) -> Finding:
    return Finding(Outcome.PASS, value, value, value)


def failed(reason: str, evidence: str = "", value: float = 0.0) -> Finding:
    return Finding(Outcome.FAIL, value, value, value, reason, evidence)


def unknown(reason: str) -> Finding:
    return Finding(Outcome.INSUFFICIENT_EVIDENCE, None, 0.0, 1.0, reason)


def reference(*tools: str | ReferenceCall, **fields: Any) -> Reference:
    return Reference(tuple(ReferenceCall(one) if isinstance(one, str) else one for one in tools), **fields)


def calls(text: str) -> Run:
    return a_run(*(a_call(name) for name in text.split()))


@pytest.mark.parametrize("measure", [tool_selection_f1, plan_adherence, tool_call_accuracy])
def test_calls_that_nobody_captured(measure: Any) -> None:
    assert measure(UNSEEN, reference("a")) == NOT_CAPTURED


@pytest.mark.parametrize(
    ("run", "wanted", "expected"),
    [
        (calls("a b"), reference("a", "b"), passed()),
        (calls("a"), reference("a", "b", "c"), failed("not called: b, c", value=0.5)),
        (calls("a y x"), reference("a"), failed("not in the reference: x, y", value=0.5)),
        (calls("x"), reference("a"), failed("not called: a; not in the reference: x")),
    ],
)
def test_tool_selection(run: Run, wanted: Reference, expected: Finding) -> None:
    assert tool_selection_f1(run, wanted) == expected


def test_half_a_thousandth_is_rounded_up() -> None:
    """Recall 1/31, precision 1: F1 is 2/32, which is 0.0625."""
    tools = [f"t{number}" for number in range(31)]
    assert f1(tools, tools[:1], {*tools}) == Decimal("0.063")


@pytest.mark.parametrize(
    ("run", "expected"),
    [(calls("a b c"), passed()), (calls("a c"), failed("2 of 3 in order", value=2 / 3)), (calls(""), failed("0 of 3 in order"))],
)
def test_plan(run: Run, expected: Finding) -> None:
    assert plan_adherence(run, reference("a", "b", "c")) == expected


X = ReferenceCall("a", {"x": 1})
PAIR = ReferenceCall("a", {"x": [1, 2]})
SET = ReferenceCall("a", {"x": ["a", "b"]}, sets=frozenset({"x"}))


@pytest.mark.parametrize(
    ("run", "wanted", "expected"),
    [
        (calls("a"), reference("a"), passed()),
        (calls("b"), reference("a", order=Order.SUPERSET), failed("no call of a as it should be")),
        (
            a_run(a_call("a", {"y": 1})),
            reference("b", order=Order.SUBSET),
            failed("a call of a too many, or not as it should be", 'a({"y":1})'),
        ),
        (
            a_run(a_call("a"), a_call("drop", {"t": "u"})),
            reference("a", forbidden=frozenset({"drop"})),
            failed("drop must not be called", 'drop({"t":"u"})'),
        ),
        (calls("a"), reference(X), unknown("arguments_not_captured: no call of a as it should be")),
        # One call has no arguments, and whatever they were, another is one too many.
        (
            a_run(a_call("a"), a_call("b", {"y": 2})),
            reference(X),
            failed("a call of b too many, or not as it should be", 'b({"y":2})'),
        ),
        (a_run(a_call("a", {"x": [2, 1]})), reference(PAIR), failed("no call of a as it should be")),
        (a_run(a_call("a", {"x": "ab"})), reference(SET), failed("no call of a as it should be")),
        (a_run(a_call("a", {"x": ["b", "a"]})), reference(SET), passed()),
        # JSON null is no object, and says the same as an empty one.
        (a_run(ToolCall("a", raw_arguments="null")), reference(ReferenceCall("a", {})), passed()),
        (a_run(ToolCall("a", raw_arguments="null")), reference(X), failed("no call of a as it should be")),
        (a_run(a_call("a", [1])), reference(ReferenceCall("a", {})), failed("no call of a as it should be")),
        (a_run(a_call("a", [1])), reference(X), failed("no call of a as it should be")),
    ],
)
def test_accuracy(run: Run, wanted: Reference, expected: Finding) -> None:
    assert tool_call_accuracy(run, wanted) == expected


@pytest.mark.parametrize(
    ("wanted", "run"),
    [
        (reference(ReferenceCall("a", optional=True), "a"), calls("a")),
        (reference("a", ReferenceCall("a", optional=True)), calls("a")),
        (reference(*(ReferenceCall(name, optional=True) for name in "rst"), "a", "b"), calls("a b")),
        (reference("a", "b"), calls("x y z a b")),
        (reference("a", "b"), calls("a x y z b")),
        (reference("a", "b"), a_run(a_failure("a"), a_call("x"), a_call("a"), a_call("b"))),
    ],
)
def test_in_order_the_alignment_leaves_out_what_it_may(wanted: Reference, run: Run) -> None:
    assert tool_call_accuracy(run, Reference(wanted.calls, order=Order.IN_ORDER)) == passed()


LONG = "x" * 400


@pytest.mark.parametrize(
    ("matcher", "run", "expected"),
    [
        (Matcher(MatcherKind.EQUALS, "done"), a_run(answer="Done"), passed()),
        (Matcher(MatcherKind.EQUALS, "done"), a_run(answer=" "), failed("the final answer is empty")),
        (
            Matcher(MatcherKind.EQUALS, "done"),
            a_run(answer=None, ended=Ended.SILENCE),
            failed("the run ended without an answer"),
        ),
        (Matcher(MatcherKind.CONTAINS, "done"), a_run(answer=LONG), failed("the answer is not contains 'done'", "x" * 300)),
        (
            Matcher(MatcherKind.EQUALS, "done"),
            a_run(answer="do", flags=("truncated",)),
            unknown("answer_not_captured: texts of the run were cut"),
        ),
        (Matcher(MatcherKind.PATTERN, "^R"), a_run(answer="R \ud800"), passed()),
        (Matcher(MatcherKind.NUMBER, "-1234.5"), a_run(answer="-1234.50"), passed()),
    ],
)
def test_task(matcher: Matcher, run: Run, expected: Finding) -> None:
    assert task_success(run, matcher) == expected
