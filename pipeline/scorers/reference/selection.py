"""tool_selection_f1 and plan_adherence: which tools were called, whatever their arguments (spec section 4.1)."""

from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Final

from pipeline.model.reference import Reference
from pipeline.model.run import Run
from pipeline.scorers.calls import calls_unseen
from pipeline.scorers.check import Finding, Missing, measured, unknown

TOOL_SELECTION_F1: Final = "tool_selection_f1"
PLAN_ADHERENCE: Final = "plan_adherence"
_PLACES: Final = Decimal("0.001")


def tool_selection_f1(run: Run, reference: Reference) -> Finding:
    """Measure F1 of the tools called, 3 decimals; 1 is a pass. A tool that the reference has twice is to be called twice."""
    if calls_unseen(run):
        return unknown(Missing.CALLS_NOT_CAPTURED, "the models' content was not captured")
    called = [call.name for call in run.tool_calls]
    known = {call.tool for call in reference.calls} - reference.forbidden
    value = f1([call.tool for call in reference.required], called, known)
    if value == 1:
        return measured(1.0, holds=True)
    extras = sorted({name for name in called if name not in known})
    absent = sorted((Counter(call.tool for call in reference.required) - Counter(called)).elements())
    reason = "; ".join(
        f"{what}: {', '.join(names)}" for what, names in (("not called", absent), ("not in the reference", extras)) if names
    )
    return measured(float(value), holds=False, reason=reason)


def f1(required: Sequence[str], called: Sequence[str], known: set[str]) -> Decimal:
    """Return 2pr/(p+r) of tool names: recall over ``required``, precision over calls of ``known`` tools; 3 decimals, half up."""
    found = Counter(required) & Counter(called)
    recall = Fraction(found.total(), len(required)) if required else Fraction(1)
    extras = sum(name not in known for name in called)
    precision = 1 - Fraction(extras, len(called)) if called else Fraction(1)
    exact = 2 * precision * recall / (precision + recall) if precision + recall else Fraction(0)
    return (Decimal(exact.numerator) / exact.denominator).quantize(_PLACES, ROUND_HALF_UP)


def plan_adherence(run: Run, reference: Reference) -> Finding | None:
    """Measure the longest common subsequence of tools over the reference's length; absent where the reference has no call."""
    plan = [call.tool for call in reference.required]
    if not plan:
        return None
    if calls_unseen(run):
        return unknown(Missing.CALLS_NOT_CAPTURED, "the models' content was not captured")
    common = _common(plan, [call.name for call in run.tool_calls])
    share = common / len(plan)
    return measured(share, holds=common == len(plan), reason="" if common == len(plan) else f"{common} of {len(plan)} in order")


def _common(plan: Sequence[str], called: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(plan) + 1)
    for name in called:
        above = 0
        for index, wanted in enumerate(plan, 1):
            above, row[index] = row[index], above + 1 if name == wanted else max(row[index], row[index - 1])
    return row[-1]
