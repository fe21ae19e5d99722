"""tool_errors, recovery_errors, recovery_runs."""

import pytest
from msgspec.structs import replace
from run_builders import a_call, a_failure, a_run, a_wish, named, ran

from pipeline.model.result import Kind, Outcome, Verdict
from pipeline.model.step import ToolCall
from pipeline.scorers.recovery import recovery_check, recovery_errors, recovery_runs
from pipeline.scorers.tool_errors import tool_errors


def test_runs_without_calls_have_no_error_rate() -> None:
    assert tool_errors(a_run()) is None


def test_the_error_rate_is_failed_calls_over_executed_calls() -> None:
    finding = tool_errors(a_run(a_call("lookup"), a_failure("lookup"), a_call("refund"), a_wish("refund")))
    assert finding is not None
    assert finding.outcome is Outcome.FAIL
    assert finding.value == pytest.approx(1 / 3)
    assert finding.evidence == "lookup() → timeout"


def test_calls_without_errors_pass_at_zero() -> None:
    finding = tool_errors(a_run(a_call("lookup", {"order_id": "A-1"})))
    assert finding is not None
    assert (finding.outcome, finding.value, finding.lower, finding.upper) == (Outcome.PASS, 0.0, 0.0, 0.0)


def test_where_no_span_executes_any_call_the_error_rate_is_unknown() -> None:
    finding = tool_errors(a_run(a_wish("lookup")))
    assert finding is not None
    assert (finding.outcome, finding.value) == (Outcome.INSUFFICIENT_EVIDENCE, None)
    assert finding.reason.startswith("execution_not_captured: ")


def recovered(*calls: ToolCall, **fields: object) -> float | None:
    finding = recovery_errors(a_run(*calls, **fields), {"lookup": ("search",)})
    return None if finding is None else finding.value


def test_runs_without_errors_have_nothing_to_recover_from() -> None:
    assert recovered() is None
    assert recovered(a_call("lookup"), a_wish("lookup")) is None


@pytest.mark.parametrize(
    ("calls", "share"),
    [
        ((a_failure("lookup"), a_call("lookup")), 1.0),
        ((a_failure("lookup"), a_call("search")), 1.0),
        ((a_failure("search"), a_call("lookup")), 0.0),
        ((a_call("lookup"), a_failure("lookup")), 0.0),
        ((a_failure("lookup"), a_failure("lookup"), a_call("lookup")), 1.0),
        ((a_failure("lookup"), a_call("lookup"), a_failure("refund")), 0.5),
        ((a_failure("lookup"), a_wish("lookup")), 0.0),
        ((a_failure("lookup"), a_failure("lookup")), 0.0),
    ],
)
def test_an_error_is_made_good_by_a_later_success_of_its_tool_or_of_an_alternative(
    calls: tuple[ToolCall, ...], share: float
) -> None:
    assert recovered(*calls) == share


def test_only_full_recovery_passes() -> None:
    half = recovery_errors(a_run(a_failure("lookup"), a_call("lookup"), a_failure("refund")), {})
    assert half is not None
    assert (half.outcome, half.reason, half.evidence) == (
        Outcome.FAIL,
        "1 of 2 errors were not made good",
        "refund() → timeout",
    )


def test_a_call_that_ran_beside_the_error_does_not_make_it_good() -> None:
    error, beside, after = named(a_failure("lookup"), "1"), named(a_call("lookup"), "2"), named(a_call("lookup"), "3")
    parallel = (ran(error, 0, 5), ran(beside, 1, 4))
    assert recovered(error, beside, steps=parallel) == 0.0
    assert recovered(error, beside, after, steps=(*parallel, ran(after, 5, 6))) == 1.0


def test_calls_that_share_one_id_are_told_apart_by_their_order() -> None:
    error, retry = named(a_failure("lookup"), "call_0"), named(a_call("lookup"), "call_0")
    assert recovered(error, retry, steps=(ran(error, 0, 5), ran(retry, 6, 7))) == 1.0


def test_many_errors_are_read_in_linear_time() -> None:
    assert recovered(*[a_failure("lookup")] * 20_000) == 0.0


def test_the_alternatives_are_part_of_the_contract() -> None:
    assert recovery_check({}).contract != recovery_check({"lookup": ("search",)}).contract


@pytest.mark.parametrize(
    ("verdict", "value"),
    [
        (Verdict(Outcome.PASS, "composite: 100 meets the bar of 75"), 1.0),
        (Verdict(Outcome.FAIL, "answer_present"), 0.0),
        (Verdict(Outcome.INSUFFICIENT_EVIDENCE, "uncalibrated: tone"), None),
        (Verdict(Outcome.GRADER_ERROR, "grader_error: tone"), None),
        (Verdict(None), None),
    ],
)
def test_a_run_with_an_error_recovered_if_its_verdict_is_pass(verdict: Verdict, value: float | None) -> None:
    result = recovery_runs(a_run(a_failure("lookup")), verdict, "s")
    assert result is not None
    assert (result.outcome, result.value) == (verdict.outcome, value)
    assert (result.lower, result.upper) == ((0.0, 1.0) if value is None else (value, value))


def test_recovery_of_runs_is_weighted_like_the_verdict_it_rests_on_and_changes_its_contract_with_it() -> None:
    run = a_run(a_failure("lookup"))
    result = recovery_runs(run, Verdict(Outcome.PASS), "one")
    assert result is not None
    assert result.kind is Kind.COMPOSITE
    assert result != recovery_runs(run, Verdict(Outcome.PASS), "two")
    assert recovery_runs(replace(run, tool_calls=(a_call("lookup"),)), Verdict(Outcome.PASS), "one") is None
