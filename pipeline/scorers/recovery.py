"""Recovery from tool errors, measured twice: per error, and per run by its verdict (spec section 4.2)."""

from collections.abc import Mapping
from typing import Final

from pipeline.model.result import Kind, Outcome, Result, Verdict
from pipeline.model.run import Run
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import began, describe, ended, failed, times_of
from pipeline.scorers.check import Check, Finding, check_of, contract_of, measured

RECOVERY_ERRORS: Final = "recovery_errors"
RECOVERY_RUNS: Final = "recovery_runs"

Alternatives = Mapping[str, tuple[str, ...]]
"""Which other tools make good for a tool that failed."""


def recovery_check(alternatives: Alternatives) -> Check:
    """Return the check of single errors."""
    definition = {
        "rule": "errors with a later success of the tool or an alternative / errors",
        "version": 1,
        "alternatives": {tool: sorted(others) for tool, others in alternatives.items()},
    }
    return check_of(RECOVERY_ERRORS, definition, lambda run: recovery_errors(run, alternatives))


def recovery_errors(run: Run, alternatives: Alternatives) -> Finding | None:
    """Measure the share of errors that a later call made good; absent without errors."""
    errors = sum(failed(call) for call in run.tool_calls)
    if not errors:
        return None
    lost = _lost(run, alternatives)
    share = (errors - len(lost)) / errors
    if not lost:
        return measured(share, holds=True)
    return measured(share, holds=False, reason=f"{len(lost)} of {errors} errors were not made good", evidence=describe(lost[-1]))


def _lost(run: Run, alternatives: Alternatives) -> list[ToolCall]:
    """Return the errors that no later call made good, last first. A call that ran beside the error is not later."""
    times = times_of(run)
    successes: dict[str, int] = {}
    """By tool, when the latest success began."""
    lost: list[ToolCall] = []
    for call in reversed(run.tool_calls):
        if call.error is None:
            successes[call.name] = max(successes.get(call.name, 0), began(call, times))
        elif failed(call):
            after = (successes[name] for name in (call.name, *alternatives.get(call.name, ())) if name in successes)
            if not any(start >= ended(call, times) for start in after):
                lost.append(call)
    return lost


def recovery_runs(run: Run, verdict: Verdict, verdict_contract: str) -> Result | None:
    """Say whether a run with a tool error succeeded: 1 if its verdict is pass, 0 if fail, undecided while the verdict is.

    Absent without errors. It is a composite, not a code result: it rests on the verdict and must be weighted like it.
    """
    if not any(failed(call) for call in run.tool_calls):
        return None
    decided = verdict.outcome is not None and verdict.outcome.decided
    value = float(verdict.outcome is Outcome.PASS) if decided else None
    return Result(
        dimension=RECOVERY_RUNS,
        kind=Kind.COMPOSITE,
        contract=contract_of(
            RECOVERY_RUNS, {"rule": "verdict of runs with a tool error", "version": 1, "verdict": verdict_contract}
        ),
        outcome=verdict.outcome,
        value=value,
        lower=0.0 if value is None else value,
        upper=1.0 if value is None else value,
        reason="" if verdict.outcome is Outcome.PASS else verdict.reason,
    )
