"""Usages: token counts added up, and put together where several spans tell of one model call. Nothing is counted twice (spec section 4.3)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from pipeline.model.step import Step, Usage

_COUNTS: Final = ("input", "output", "cached", "reasoning", "cache_written")


def total(usages: Iterable[Usage | None]) -> Usage:
    """Add up the tokens that are known. What the sender says of costs counts only where it says so of everything: a part is not the cost."""
    every = list(usages)
    known = [one for one in every if one is not None]
    if len(known) == 1:
        return known[0] if len(every) == 1 else Usage(**{name: getattr(known[0], name) for name in _COUNTS})
    costs = [one.cost_usd for one in known if one.cost_usd is not None]
    whole = bool(costs) and len(costs) == len(every)
    return Usage(
        **{name: _sum(getattr(one, name) for one in known) for name in _COUNTS},
        cost_usd=float(sum(Decimal(str(cost)) for cost in costs)) if whole else None,
    )


def told_of(call: Step, inside: Sequence[tuple[Step, Step]]) -> Usage | None:
    """Return what a call took: each count as the outermost span that knows it has it (reliability R95).

    ``inside`` are the spans below it that tell of the same call, each with the one that it is directly inside of, parents before children.
    Those that ran one after another in it are its attempts, and what each of them took counts (reliability R100).
    """
    within: defaultdict[str, list[Step]] = defaultdict(list)
    for step, around in inside:
        within[around.span_id].append(step)
    told: dict[str, Usage | None] = {}
    for step in (*(one for one, _ in reversed(inside)), call):
        told[step.span_id] = _first([step.usage, _of_attempts(within.get(step.span_id, ()), told)])
    return told[call.span_id]


def _of_attempts(steps: Sequence[Step], told: dict[str, Usage | None]) -> Usage | None:
    """Spans whose times overlap tell of one attempt, the others of one after another."""
    attempts: list[list[Usage | None]] = []
    until = 0
    for step in sorted(steps, key=lambda one: (one.start_ns, one.span_id)):
        if not attempts or step.start_ns >= until > 0:
            attempts.append([])
        attempts[-1].append(told[step.span_id])
        until = max(until, step.end_ns)
    taken = [usage for attempt in attempts if (usage := _first(attempt)) is not None]
    return total(taken) if taken else None


def _first(told: Iterable[Usage | None]) -> Usage | None:
    """Return each count as the first that knows it has it."""
    known = [one for one in told if one is not None]
    if len(known) <= 1:
        return known[0] if known else None
    names = Usage.__struct_fields__
    return Usage(**{name: next((value for one in known if (value := getattr(one, name)) is not None), None) for name in names})


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
