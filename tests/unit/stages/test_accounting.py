"""The accounting class of a run (spec section 1)."""

from itertools import product

import pytest

from pipeline.model.result import Kind, Outcome, Result, Unresolved
from pipeline.model.run import RunClass
from pipeline.stages.accounting import run_class

PENDING = Result("tone", Kind.JUDGED, "c", None)
JUDGED = Result("tone", Kind.JUDGED, "c", Outcome.PASS, 4.0, 4.0, 4.0, authority="uncalibrated")


def unresolved(reason: str, outcome: Outcome = Outcome.INSUFFICIENT_EVIDENCE) -> Result:
    return Result("tone", Kind.JUDGED, "c", outcome, reason=reason)


ONES = (PENDING, JUDGED, *(unresolved(reason) for reason in Unresolved))


def test_every_combination_falls_into_the_first_class_that_holds() -> None:
    for sampled, completed, one, other in product((True, False), (True, False), ONES, ONES):
        got = run_class((one, other), sampled=sampled, completed=completed)
        reasons = [reason for reason in Unresolved if reason in (one.reason, other.reason)]
        holds = (
            ((RunClass.UNSAMPLED, ""), not sampled),
            ((RunClass.UNRESOLVED, "incomplete"), not completed),
            ((RunClass.PENDING, ""), PENDING in (one, other)),
            *((((RunClass.UNRESOLVED, str(reason)), True)) for reason in reasons),
            ((RunClass.JUDGED, ""), True),
        )
        assert got == next(expected for expected, this in holds if this)
        assert got == run_class((other, one), sampled=sampled, completed=completed)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (unresolved("budget: 5 of 5 dollars spent today"), "budget"),
        (unresolved("expired", Outcome.GRADER_ERROR), "expired"),
        (unresolved("no quote found in the evidence", Outcome.GRADER_ERROR), "grader_error"),
        (unresolved("the judge answered Unknown"), "insufficient_evidence"),
        (unresolved(""), "insufficient_evidence"),
    ],
)
def test_the_reason_is_the_first_word_or_else_the_outcome(result: Result, reason: str) -> None:
    assert run_class((JUDGED, result), sampled=True, completed=True) == (RunClass.UNRESOLVED, reason)


def test_a_run_with_nothing_to_judge_is_judged_once_it_is_complete() -> None:
    assert run_class((), sampled=True, completed=True) == (RunClass.JUDGED, "")
