"""Parts: what each agent of a run did and spent. Together they are the run: nothing is in two of them, and nothing in none."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from pipeline.model.run import Part
from pipeline.model.step import Step, StepKind, ToolCall, Usage
from pipeline.stages.lineage import Lineage

SPOKESMEN = (StepKind.AGENT, StepKind.ORCHESTRATION, StepKind.CHAIN)
"""Kinds of steps that may tell what all below them had to say, or spent."""

Spending = Sequence[tuple[Step, Usage]]
"""What was spent, and the step that says so."""


def parts_of(lineage: Lineage, calls: Sequence[ToolCall], spending: Spending) -> tuple[Part, ...]:
    """Return the run's own agent and its sub-agents, in order of their first step."""
    paths = lineage.paths
    if not any(paths.values()):
        failures = sum(call.error is not None for call in calls)
        usage = total(usage for _, usage in spending)
        return (Part("", lineage.agent, len(lineage.steps), len(lineage.model_calls), len(calls), failures, usage),)
    steps = Counter(paths[step.span_id] for step in lineage.steps)
    model_calls = Counter(paths[call.step.span_id] for call in lineage.model_calls)
    tool_calls = Counter(call.agent for call in calls)
    failed = Counter(call.agent for call in calls if call.error is not None)
    spent: defaultdict[str, list[Usage]] = defaultdict(list)
    for step, usage in spending:
        spent[paths[step.span_id]].append(usage)
    return tuple(
        Part(
            path=path,
            agent=path.rpartition("/")[2].replace("%2F", "/") or lineage.agent,
            steps=count,
            model_calls=model_calls[path],
            tool_calls=tool_calls[path],
            failed_calls=failed[path],
            usage=total(spent[path]),
        )
        for path, count in steps.items()
    )


def spending_of(lineage: Lineage) -> Spending:
    """Return what model calls spent; an agent's own total counts only where no model call below it tells (spec section 4.3)."""
    told = [(call.step, call.usage) for call in lineage.model_calls if call.usage is not None]
    return [*told, *_silent(lineage, {step.span_id for step, _ in told})]


def total(usages: Iterable[Usage]) -> Usage:
    """Add up what is known; what nobody knows stays unknown."""
    every = list(usages)
    costs = [one.cost_usd for one in every if one.cost_usd is not None]
    return Usage(
        input=_sum(one.input for one in every),
        output=_sum(one.output for one in every),
        cached=_sum(one.cached for one in every),
        reasoning=_sum(one.reasoning for one in every),
        cost_usd=sum(costs) if costs else None,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _silent(lineage: Lineage, told: set[str]) -> Spending:
    """Return the totals of the topmost agents that have no model call with tokens below them."""
    counted_below: set[str] = set()
    order: list[Step] = []
    waiting = [lineage.head]
    while waiting:
        step = waiting.pop()
        order.append(step)
        waiting.extend(lineage.children(step))
    for step in reversed(order):
        below = (child.span_id for child in lineage.children(step))
        if step.span_id in told or any(span_id in counted_below for span_id in below):
            counted_below.add(step.span_id)
    totals: list[tuple[Step, Usage]] = []
    waiting = [lineage.head]
    while waiting:
        step = waiting.pop()
        if step.usage is not None and step.kind in SPOKESMEN and step.span_id not in counted_below:
            totals.append((step, step.usage))
        else:
            waiting.extend(lineage.children(step))
    return totals
