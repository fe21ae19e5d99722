"""Findings whole: outcome, value, both bounds, and every word of reason and evidence, which is what a reader is shown.

Each check is made anew as a configuration asks for it, and reads one run.
"""

from typing import Any

import pytest
from run_builders import REFUND, a_call, a_failure, a_model_step, a_run, a_wish, named, ran

from pipeline.model.result import Kind, Outcome, Result, Verdict
from pipeline.model.run import Ended, Run
from pipeline.model.step import ToolCall, ToolDefinition
from pipeline.scorers import ChecksSettings, checks
from pipeline.scorers.check import Finding
from pipeline.scorers.recovery import recovery_runs

UNSEEN = a_run(steps=(a_model_step("no_content"),))
CUT = "texts of the run were cut"
TOO_LONG = "x" * 400


def passed(value: float = 1.0, evidence: str = "") -> Finding:
    return Finding(Outcome.PASS, value, value, value, "", evidence)


def failed(reason: str, evidence: str = "", value: float = 0.0) -> Finding:
    return Finding(Outcome.FAIL, value, value, value, reason, evidence)


def unknown(reason: str, lower: float | None = 0.0, upper: float | None = 1.0) -> Finding:
    return Finding(Outcome.INSUFFICIENT_EVIDENCE, None, lower, upper, reason)


def found(settings: dict[str, Any], name: str, run: Run) -> Finding | None:
    """What the check of that name finds, configured so."""
    (check,) = (one for one in checks(ChecksSettings.model_validate(settings)) if one.name == name)
    return check.measure(run)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (a_run(), passed()),
        (a_run(answer=" "), failed("the final answer is empty")),
        (
            a_run(answer=None, ended=Ended.ERROR, error="boom"),
            failed("the run ended in an error, without an answer", "boom"),
        ),
        (a_run(answer=None, ended=Ended.ERROR), failed("the run ended in an error, without an answer")),
        (a_run(answer=None), unknown("answer_not_captured: the models' content was not captured")),
        (
            a_run(a_wish("a"), answer=None, ended=Ended.SILENCE, steps=(a_model_step(),)),
            unknown("execution_not_captured: a bare model call that asked for a tool: what followed is in another trace"),
        ),
        (a_run(answer=None, ended=Ended.SILENCE), failed("the run ended without an answer")),
    ],
)
def test_answer_present(run: Run, expected: Finding) -> None:
    assert found({}, "answer_present", run) == expected


@pytest.mark.parametrize(
    ("name", "most", "run", "expected"),
    [
        ("steps", 1, a_run(steps=(a_model_step(),)), passed(1.0)),
        ("steps", 1, a_run(steps=(a_model_step(), a_model_step())), failed("2 is over the limit of 1", value=2.0)),
        ("steps", "1.50", a_run(steps=(a_model_step(), a_model_step())), failed("2 is over the limit of 1.5", value=2.0)),
        ("tool_calls", 3, a_run(a_call("a"), a_failure("a"), a_wish("a")), passed(2.0)),
        ("tool_calls", 3, a_run(steps=(a_model_step(),)), passed(0.0)),
        ("tool_calls", 3, UNSEEN, unknown("calls_not_captured: the models' content was not captured", upper=None)),
        (
            "tool_calls",
            3,
            a_run(a_wish("a"), a_wish("b")),
            unknown("execution_not_captured: no span executed any of 2 calls", upper=2.0),
        ),
        ("seconds", 3, a_run(), passed(2.0)),
        ("seconds", 3, a_run(start_ns=5, end_ns=5), passed(0.0)),
        (
            "seconds",
            3,
            a_run(start_ns=5, end_ns=4),
            unknown("times_not_captured: start or end of the run is missing", upper=None),
        ),
        ("seconds", 3, a_run(start_ns=0), unknown("times_not_captured: start or end of the run is missing", upper=None)),
        ("input_tokens", 3, a_run(), unknown("usage_not_captured: no token counts", upper=None)),
    ],
)
def test_limits(name: str, most: Any, run: Run, expected: Finding) -> None:
    assert found({"limits": {name: most}}, name, run) == expected


@pytest.mark.parametrize(
    ("name", "run", "expected"),
    [
        ("tool_errors", a_run(), None),
        ("tool_errors", a_run(a_call("a")), passed(0.0)),
        (
            "tool_errors",
            a_run(a_call("a"), a_failure("b", {"x": 1}), a_failure("c"), a_wish("d")),
            failed("2 of 3 calls failed", 'b({"x":1}) → timeout', 2 / 3),
        ),
        ("tool_errors", a_run(a_wish("a")), unknown("execution_not_captured: no span executed any of 1 calls")),
        ("recovery_errors", a_run(a_failure("a"), a_call("a")), passed()),
        (
            "recovery_errors",
            a_run(a_failure("a"), a_call("a"), a_failure("b")),
            failed("1 of 2 errors were not made good", "b() → timeout", 0.5),
        ),
        ("recovery_errors", a_run(a_failure("a"), a_call("spare")), passed()),
        ("loops", a_run(a_call("a", {"x": [1]}), a_call("a", {"x": [2]})), passed(0.0)),
        ("loops", a_run(a_call("a", {"x": True}), a_call("a", {"x": False})), passed(0.0)),
        (
            "loops",
            a_run(a_call("a", {"x": 1}), a_call("a", {"x": 1})),
            failed("1 repeated calls", 'a({"x":1})', 1.0),
        ),
        (
            "loops",
            a_run(a_call("a", {}, result=None), a_call("a", {}, result=None)),
            unknown("results_not_captured: 1 calls may be repeats, 0 are", upper=1.0),
        ),
        ("unknown_tools", a_run(a_call("a"), tools=(ToolDefinition("a"),)), passed(0.0)),
        (
            "unknown_tools",
            a_run(a_call("c", {}), a_call("b"), a_call("a"), tools=(ToolDefinition("a"),)),
            failed("called but not offered: b, c", "c({})", 2.0),
        ),
        (
            "unknown_tools",
            a_run(a_call("a"), a_call("b")),
            unknown("tools_not_captured: no span says which tools were offered", upper=2.0),
        ),
        ("invalid_arguments", a_run(a_call("refund", {"order_id": "A"}), tools=(REFUND,)), passed(0.0)),
        (
            "invalid_arguments",
            a_run(ToolCall("refund", raw_arguments="{"), tools=(REFUND,)),
            failed("the arguments do not parse as JSON", "refund({)", 1.0),
        ),
        (
            "invalid_arguments",
            a_run(ToolCall("refund", raw_arguments=" null "), tools=(REFUND,)),
            failed("$: None is not of type 'object'", "refund( null )", 1.0),
        ),
        ("invalid_arguments", a_run(a_call("refund"), tools=(REFUND,)), unknown("arguments_not_captured: call of refund")),
    ],
)
def test_trajectory(name: str, run: Run, expected: Finding | None) -> None:
    assert found({"alternatives": {"a": ["spare"]}}, name, run) == expected


LATE = (named(a_call("confirm"), "1"), named(a_call("confirm"), "2"), named(a_call("refund"), "3"))
EARLY = named(a_call("refund", {}), "4")
BEFORE = {"tool": "refund", "needs": "confirm"}


@pytest.mark.parametrize(
    ("rule", "run", "expected"),
    [
        ({"require": {"tool": "a"}}, a_run(a_failure("a"), a_call("a")), passed()),
        ({"require": {"tool": "a"}}, a_run(), failed("a succeeded 0 times, at least 1 wanted")),
        (
            {"require": {"tool": "a", "times": 2}},
            a_run(a_call("a", {})),
            failed("a succeeded 1 times, at least 2 wanted", "a({})"),
        ),
        (
            {"at_most": {"tool": "a", "times": 1}},
            a_run(a_call("a"), a_call("a")),
            failed("a succeeded 2 times, at most 1 allowed", "a()"),
        ),
        (
            {"exactly": {"tool": "a", "times": 1, "per": "id"}},
            a_run(a_call("a", {"id": 1}), a_call("a", {"id": 1})),
            failed("a succeeded 2 times for one id, exactly 1 allowed", 'a({"id":1})'),
        ),
        ({"exactly": {"tool": "a", "times": 1, "per": "id"}}, a_run(a_call("a")), unknown("arguments_not_captured: call of a")),
        ({"exactly": {"tool": "a", "times": 1, "per": "id"}}, a_run(), None),
        ({"forbid": {"tool": "a"}}, a_run(a_call("a", {"id": 1})), failed("a was called", 'a({"id":1})')),
        ({"forbid": {"tool": "a"}}, a_run(a_call("b")), passed()),
        ({"forbid": {"tool": "a"}}, UNSEEN, unknown("calls_not_captured: the models' content was not captured")),
        ({"forbid": {"tool": "a", "where": {"x": {"in": ["a", "b"]}}}}, a_run(a_call("a", {"x": "c"})), passed()),
        (
            {"forbid": {"tool": "a", "where": {"x": {"in": ["a", "b"]}}}},
            a_run(a_call("a", {"x": "b"})),
            failed("a was called", 'a({"x":"b"})'),
        ),
        ({"forbid": {"tool": "a", "where": {"x": {"matches": "^true$"}}}}, a_run(a_call("a", {"x": False})), passed()),
        (
            {"forbid": {"tool": "a", "where": {"x": {"matches": "^(true|false)$"}}}},
            a_run(a_call("a", {"x": True})),
            failed("a was called", 'a({"x":true})'),
        ),
        (
            {"forbid": {"tool": "a", "where": {"x": {"matches": "^false$"}}}},
            a_run(a_call("a", {"x": False})),
            failed("a was called", 'a({"x":false})'),
        ),
        ({"before": BEFORE}, a_run(a_call("confirm"), a_call("refund")), passed()),
        ({"before": BEFORE}, a_run(a_call("refund", {})), failed("refund was called before confirm had succeeded", "refund({})")),
        ({"before": BEFORE}, a_run(a_wish("confirm"), a_wish("refund")), unknown("execution_not_captured: call of refund")),
        (
            {"before": BEFORE | {"where": {"x": {"equals": 1}}}},
            a_run(a_call("refund")),
            unknown("arguments_not_captured: call of refund"),
        ),
        # Two were asked for side by side: the shorter one had succeeded when the refund began.
        ({"before": BEFORE}, a_run(*LATE, steps=(ran(LATE[0], 0, 3), ran(LATE[1], 0, 1), ran(LATE[2], 2, 5))), passed()),
        # The refund ended after the confirmation, and began before its end.
        (
            {"before": BEFORE},
            a_run(*LATE[1:], steps=(ran(LATE[1], 0, 3), ran(LATE[2], 2, 5))),
            failed("refund was called before confirm had succeeded", "refund()"),
        ),
        # One refund waited, and another that is listed after it did not.
        (
            {"before": BEFORE},
            a_run(*LATE[1:], EARLY, steps=(ran(LATE[1], 1, 3), ran(LATE[2], 4, 5), ran(EARLY, 2, 6))),
            failed("refund was called before confirm had succeeded", "refund({})"),
        ),
    ],
)
def test_policies(rule: dict[str, Any], run: Run, expected: Finding | None) -> None:
    assert found({"policies": [{"name": "mine", **rule}]}, "mine", run) == expected


AMOUNT = {"after": "$", "equals": {"tool": "lookup", "field": "total"}}
LOOKUP = a_call("lookup", {}, result='{"total": 1234.5}')


@pytest.mark.parametrize(
    ("rule", "run", "expected"),
    [
        ({"json": "strict"}, a_run(answer="{}"), passed()),
        ({"json": "strict"}, a_run(answer="NaN"), failed("the answer is not JSON: NaN is no JSON value", "NaN")),
        ({"json": "strict"}, a_run(answer="[" * 100_000), failed("the answer is not JSON: nested too deep", "[" * 300)),
        (
            {"json": "strict"},
            a_run(answer="{", flags=("truncated",)),
            unknown(f"answer_not_captured: {CUT}, and what is left of the answer is not JSON"),
        ),
        ({"json": "strict"}, a_run(answer=None), unknown("answer_not_captured: the answer was not captured")),
        ({"schema": {"type": "array"}}, a_run(answer='"x"'), failed("$: 'x' is not of type 'array'", '"x"')),
        (
            {"schema": {"type": "array"}},
            a_run(answer=f'"{TOO_LONG}"'),
            failed(f"$: '{TOO_LONG}"[:200], f'"{TOO_LONG}"'[:300]),
        ),
        ({"schema": {"multipleOf": 0.01}}, a_run(answer="0.07"), passed()),
        ({"schema": {"patternProperties": {"^a": {"type": "string"}}}}, a_run(answer="[1]"), passed()),
        ({"schema": {"$ref": "#/nowhere"}}, a_run(answer="1"), unknown("schema_unusable: the declared schema")),
        ({"fields": ["a", "b", "c"]}, a_run(answer='{"b": 1}'), failed("the answer has no a, c", '{"b": 1}')),
        (
            {"amount": AMOUNT},
            a_run(LOOKUP, answer="nothing"),
            failed("the answer names no amount; lookup returned 1234.5"),
        ),
        ({"amount": AMOUNT}, a_run(LOOKUP, answer="$1,234.50"), passed(evidence="lookup({})")),
        (
            {"amount": AMOUNT},
            a_run(LOOKUP, answer="$1,234.60"),
            failed("the answer says 1234.60, lookup returned 1234.5", "lookup({})"),
        ),
        ({"amount": AMOUNT | {"within": 0.5}}, a_run(LOOKUP, answer="$1235"), passed(evidence="lookup({})")),
        (
            {"amount": AMOUNT},
            a_run(a_wish("lookup"), answer="$1"),
            unknown("execution_not_captured: no call of lookup succeeded"),
        ),
        ({"amount": AMOUNT}, a_run(a_call("lookup", result=None), answer="$1"), unknown("results_not_captured: call of lookup")),
        (
            {"amount": AMOUNT},
            a_run(a_call("lookup", result="{}"), answer="$1"),
            unknown("results_not_comparable: lookup returned no number at total"),
        ),
        (
            {"amount": {"after": "$", "equals": {"tool": "lookup"}}},
            a_run(a_call("lookup", result="{}"), answer="$1"),
            unknown("results_not_comparable: lookup returned no number at all"),
        ),
        # A space that JSON does not know.
        (
            {"amount": {"after": "$", "equals": {"tool": "lookup"}}},
            a_run(a_call("lookup", result="\u00a042.5"), answer="$42.50"),
            passed(evidence="lookup()"),
        ),
        (
            {"banned": ["sure", "no risk"]},
            a_run(answer="There is no RISK."),
            failed("the answer says 'no risk'", "there is no risk."),
        ),
        (
            {"banned": ["sure"]},
            a_run(answer=f"{'a' * 70} sure {'b' * 70}"),
            failed("the answer says 'sure'", f"{'a' * 59} sure {'b' * 59}"),
        ),
        ({"banned": ["sure"]}, a_run(answer="Done", flags=("truncated",)), unknown(f"answer_not_captured: {CUT}")),
        ({"matches": "R-[0-9]"}, a_run(answer="R-7 \ud800"), passed()),
        ({"matches": "R-[0-9]"}, a_run(answer=TOO_LONG), failed("the answer does not match 'R-[0-9]'", "x" * 120)),
        ({"matches": "R-[0-9]"}, a_run(answer="Done", flags=("truncated",)), unknown(f"answer_not_captured: {CUT}")),
        (
            {"no_secret": True},
            a_run(answer="[redacted:stripe] [redacted:github] [redacted:email]"),
            failed("the answer held a secret: github, stripe", "[redacted:github]"),
        ),
        ({"no_secret": True}, a_run(answer="Done", flags=("truncated",)), unknown(f"answer_not_captured: {CUT}")),
    ],
)
def test_output(rule: dict[str, Any], run: Run, expected: Finding) -> None:
    assert found({"output": [{"name": "mine", **rule}]}, "mine", run) == expected


class Told:
    """Stands for the model of languages."""

    def __init__(self, language: str, probability: float) -> None:
        self.said = language, probability
        self.labels = ["en", "it"]

    def classify(self, _: str) -> tuple[str, float]:
        return self.said


@pytest.mark.parametrize(
    ("language", "probability", "expected"),
    [
        ("en", 0.8, passed(evidence="x" * 120)),
        ("it", 0.8, failed("the answer is in it, not in en", "x" * 120)),
        ("it", 0.799, unknown("language_not_clear: it looks like it, at a probability of 0.80")),
        ("it", 0.06, unknown("language_not_clear: it looks like it, at a probability of 0.06")),
    ],
)
def test_language(language: str, probability: float, expected: Finding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.scorers.language._identifier", lambda: Told(language, probability))
    assert found({"output": [{"name": "mine", "language": "en"}]}, "mine", a_run(answer=TOO_LONG)) == expected


@pytest.mark.parametrize(
    ("verdict", "value", "bounds", "reason"),
    [
        (Verdict(Outcome.PASS, "fine"), 1.0, (1.0, 1.0), ""),
        (Verdict(Outcome.FAIL, "bad"), 0.0, (0.0, 0.0), "bad"),
        (Verdict(Outcome.INSUFFICIENT_EVIDENCE, "unsampled"), None, (0.0, 1.0), "unsampled"),
        (Verdict(None), None, (0.0, 1.0), ""),
    ],
)
def test_recovery_runs(verdict: Verdict, value: float | None, bounds: tuple[float, float], reason: str) -> None:
    whole = recovery_runs(a_run(a_failure("a")), verdict, "v")
    assert whole is not None
    assert whole == Result("recovery_runs", Kind.COMPOSITE, whole.contract, verdict.outcome, value, *bounds, reason)
    assert recovery_runs(a_run(a_call("a")), verdict, "v") is None
