"""tool_errors: the share of executed tool calls that failed (spec section 4.2)."""

from typing import Final

from pipeline.model.run import Run
from pipeline.scorers.calls import describe, failed, took_place
from pipeline.scorers.check import Check, Finding, Missing, check_of, measured, unknown

TOOL_ERRORS: Final = "tool_errors"


def tool_errors_check() -> Check:
    """Return the check."""
    return check_of(TOOL_ERRORS, {"rule": "failed calls / executed calls", "version": 1}, tool_errors)


def tool_errors(run: Run) -> Finding | None:
    """Measure failed calls over executed calls; absent without calls."""
    if not run.tool_calls:
        return None
    executed = [call for call in run.tool_calls if took_place(call)]
    if not executed:
        return unknown(Missing.EXECUTION_NOT_CAPTURED, f"no span executed any of {len(run.tool_calls)} calls")
    errors = [call for call in executed if failed(call)]
    if not errors:
        return measured(0.0, holds=True)
    reason = f"{len(errors)} of {len(executed)} calls failed"
    return measured(len(errors) / len(executed), holds=False, reason=reason, evidence=describe(errors[0]))
