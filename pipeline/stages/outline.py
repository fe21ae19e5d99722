"""Outline: the steps of a stored run as a tree, for a reader. Stored facts in, one entry for each step out."""

import msgspec

from pipeline.model.spending import Billed
from pipeline.model.step import Step
from pipeline.model.version import StoredTrace
from pipeline.stages.assemble import Read, TraceState
from pipeline.stages.lineage import Lineage
from pipeline.stages.place import place_of
from pipeline.stages.spending import spending_of


class Entry(msgspec.Struct, frozen=True):
    """A step where it stands in the tree. ``path`` is the sub-agent at work in it (:class:`~pipeline.model.run.Part`)."""

    step: Step
    depth: int
    below: int
    """How many steps hang below it, at whatever depth: the entries that follow it."""
    path: str
    billed: Billed | None = None
    """What the run's cost has of this step; None where it has nothing: an agent's total counts only where no model call below it tells."""


def outline(trace: StoredTrace, run_id: str, read: Read) -> tuple[Entry, ...]:
    """Return the steps of a run as a tree is read: each before what is below it, siblings by start.

    Nothing where the run is none of the trace's as its facts are now: its spans expired, or it was merged into another.
    A parent that never came and a cycle cost no step its place (reliability R22): what hangs nowhere hangs below the head.
    """
    state = TraceState.stored(trace)
    one = next((group for group in state.groups(read) if state.run_id(group.head.span_id) == run_id), None)
    if one is None:
        return ()
    lineage = Lineage(one.head, one.steps, place_of(one).cohort.agent)
    found: list[tuple[Step, int]] = []
    waiting = [(one.head, 0)]
    while waiting:
        step, depth = waiting.pop()
        found.append((step, depth))
        waiting.extend((child, depth + 1) for child in reversed(lineage.children(step)))
    sizes = _below([depth for _, depth in found])
    billed = {one.span_id: one for _, one in spending_of(lineage)}
    return tuple(
        Entry(step, depth, size, lineage.paths[step.span_id], billed.get(step.span_id))
        for (step, depth), size in zip(found, sizes, strict=True)
    )


def _below(depths: list[int]) -> list[int]:
    """Return how many of the depths that follow each one are greater, before one that is not."""
    sizes = [0] * len(depths)
    above: list[int] = []
    for at, depth in enumerate([*depths, -1]):
        while above and depths[above[-1]] >= depth:
            top = above.pop()
            sizes[top] = at - top - 1
        above.append(at)
    return sizes
