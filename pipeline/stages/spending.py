"""Spending: what each model call of a run took, once, and which were only made again (spec section 4.3)."""

import re
from collections.abc import Iterable
from typing import Final

from pipeline.model.spending import Billed
from pipeline.model.step import Step, StepKind, Usage
from pipeline.stages.lineage import Lineage, ModelCall
from pipeline.stages.usages import total

SPOKESMEN: Final = (StepKind.AGENT, StepKind.ORCHESTRATION, StepKind.CHAIN)
"""Kinds of steps that may tell what all below them had to say, or spent."""
USAGE_INCOMPLETE: Final = "usage_incomplete"
"""Flag of a run of which some model call does not say how many tokens it took."""
_REFUSED: Final = re.compile(r"(?i)\b429\b|rate.?limit|too many requests")

Spending = tuple[tuple[Step, Billed], ...]
"""What was spent, and the step that says so."""


def spending_of(lineage: Lineage) -> Spending:
    """Return what model calls spent; an agent's own total counts only where no model call below it tells (reliability R94)."""
    told = {call.step.span_id for call in lineage.model_calls if call.usage is not None}
    totals = _silent(lineage, told)
    covered = {step.span_id for agent in totals for step in _below(lineage, agent)} if totals else set()
    calls = [
        (call.step, Billed(call.step.span_id, call.model, call.usage, _refusal(call)))
        for call in lineage.model_calls
        if call.usage is not None or call.step.span_id not in covered
    ]
    return (*calls, *((step, Billed(step.span_id, _model_of(lineage, step), step.usage)) for step in totals))


def usage_of(some: Iterable[Billed]) -> Usage:
    """Return what some calls took together; a refused one took nothing."""
    return total(one.usage for one in some if not one.refused)


def is_incomplete(spending: Spending) -> bool:
    """Whether some calls say what they took, and some do not, or only a part of it."""
    silent = [one for _, one in spending if one.usage is None and not one.refused]
    told = [one.usage for _, one in spending if one.usage is not None]
    return bool(told and silent) or any(one.input is None or one.output is None for one in told)


def retries(lineage: Lineage) -> int:
    """Return how many model calls only made one again that failed: the next of the same agent, given the same."""
    failed: dict[tuple[str, int], ModelCall] = {}
    found = 0
    for call in lineage.model_calls if any(one.step.error is not None for one in lineage.model_calls) else ():
        key = lineage.paths[call.step.span_id], len(call.input)
        before = failed.pop(key, None)
        found += before is not None and before.input == call.input
        if call.step.error is not None:
            failed[key] = call
    return found


def _refusal(call: ModelCall) -> str:
    error = call.step.error
    return error if error and call.usage is None and not call.output and _REFUSED.search(error) else ""


def _model_of(lineage: Lineage, agent: Step) -> str:
    """Return the model of an agent's total: its own word, else that of the calls below it where they are all of one."""
    models = {step.model for step in _below(lineage, agent) if step.kind is StepKind.MODEL and step.model}
    return agent.model or (models.pop() if len(models) == 1 else "")


def _below(lineage: Lineage, top: Step) -> Iterable[Step]:
    waiting = [top]
    while waiting:
        step = waiting.pop()
        yield step
        waiting.extend(lineage.children(step))


def _silent(lineage: Lineage, told: set[str]) -> list[Step]:
    """Return the topmost agents that say what they spent and have no model call with tokens below them."""
    order = list(_below(lineage, lineage.head))
    if all(step.usage is None for step in order if step.kind in SPOKESMEN):  # as in most runs
        return []
    counted_below: set[str] = set()
    for step in reversed(order):
        below = (child.span_id for child in lineage.children(step))
        if step.span_id in told or any(span_id in counted_below for span_id in below):
            counted_below.add(step.span_id)
    totals: list[Step] = []
    waiting = [lineage.head]
    while waiting:
        step = waiting.pop()
        if step.usage is not None and step.kind in SPOKESMEN and step.span_id not in counted_below:
            totals.append(step)
        else:
            waiting.extend(lineage.children(step))
    return totals
