"""Group: the steps of a trace into runs. Steps in, one group per run out (design section 4).

The grouping is a function of the set of steps: no arrival order, no clock. Every version of a trace regroups all of it, in time that
grows with the number of steps and with nothing else.
"""

import heapq
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pipeline.model.step import Step, StepKind


class Group(msgspec.Struct, frozen=True):
    """The steps of one run. ``parent_seen`` says that nothing above the head is still to come."""

    head: Step
    steps: tuple[Step, ...]
    """By start, parents before children."""
    parent_seen: bool
    called: bool = False
    """A tool is above the head, and the span above that one has not come: it was called by an agent that is still at work (docs/adr/0007)."""
    missing_parent: bool = False
    """Some steps hang below a span that never came; they were attached to the run of their time."""


class _Head(NamedTuple):
    step: Step
    called: bool


class _Forest:
    """A trace's steps below their tops, safe on cycles and on parents that never came."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps: dict[str, Step] = {step.span_id: step for step in steps}
        self.children: dict[str, list[Step]] = {}
        for step in self.steps.values():
            self.children.setdefault(step.parent_id, []).append(step)
        self.tops = [step for step in self.steps.values() if step.parent_id not in self.steps]
        reached = self.below(self.tops)
        for step in self.steps.values():
            if step.span_id not in reached:
                top = self._opened(step)
                self.tops.append(top)
                reached |= self.below([top])

    def _opened(self, step: Step) -> Step:
        """Return where the cycle above a step is cut open: at its earliest step."""
        cycle: dict[str, Step] = {}
        passed: set[str] = set()
        while step.span_id not in cycle:
            if step.span_id in passed:
                cycle[step.span_id] = step
            passed.add(step.span_id)
            step = self.steps[step.parent_id]
        return min(cycle.values(), key=_order)

    def below(self, tops: Iterable[Step], but: Container[str] = ()) -> dict[str, Step]:
        """The tops and all that hangs below them, apart from steps of these other ids: only in a cycle do heads hang below each other."""
        found: dict[str, Step] = {}
        waiting = list(tops)
        while waiting:
            step = waiting.pop()
            if step.span_id not in found:
                found[step.span_id] = step
                waiting.extend(child for child in self.children.get(step.span_id, ()) if child.span_id not in but)
        return found

    def heads_below(self, top: Step) -> Iterator["_Head"]:
        """Yield the heads of runs from a top on down: topmost agents, or what stands above them for the run."""
        seen: set[str] = set()
        waiting: list[tuple[Step, Step | None, bool]] = [(top, None, False)]
        while waiting:
            step, above, called = waiting.pop()
            if step.span_id in seen:
                continue
            seen.add(step.span_id)
            if step.kind is StepKind.AGENT:
                yield _Head(above or step, called and not _ends_above(top))
                continue
            if above is None and _stands_for_the_run(step):
                above = step
            called = called or (above is None and step.kind is StepKind.TOOL)
            waiting.extend((child, above, called) for child in self.children.get(step.span_id, ()))


def group(steps: Mapping[str, Step]) -> tuple[Group, ...]:
    """Return the runs of a trace, by start of their heads.

    A head is a topmost agent, or the highest orchestration above it (a root chain counts as one). Without agents the whole trace is one
    run, if it holds a model call or a tool call. No group: the trace is not an agent's.
    """
    forest = _Forest(steps.values())
    ignored = forest.below(step for step in steps.values() if step.kind is StepKind.IGNORED)
    if ignored:
        forest = _Forest(step for step in steps.values() if step.span_id not in ignored)
    heads = [(top, {head.step.span_id: head for head in forest.heads_below(top)}) for top in forest.tops]
    if any(found for _, found in heads):
        return _around(forest, heads, steps)
    if any(step.kind in (StepKind.MODEL, StepKind.TOOL) for step in forest.steps.values()):
        head = min(forest.steps.values(), key=lambda step: (step.parent_id != "", step.parent_id in forest.steps, *_order(step)))
        return (_group(head, forest.steps, steps, missing=_has_orphans(forest, head)),)
    return ()


def _order(step: Step) -> tuple[int, str]:
    return step.start_ns, step.span_id


def _ends_above(step: Step) -> bool:
    """Whether nothing is above the step, in this process at least."""
    return step.parent_id == "" or step.parent_is_remote


def _stands_for_the_run(step: Step) -> bool:
    return step.kind is StepKind.ORCHESTRATION or (step.kind is StepKind.CHAIN and step.parent_id == "")


def _around(forest: _Forest, heads: Sequence[tuple[Step, Mapping[str, _Head]]], seen: Mapping[str, Step]) -> tuple[Group, ...]:
    """Return a group around each head. ``heads`` come with the top that they are below; what is above them all belongs to none."""
    ordered = sorted((head for _, found in heads for head in found.values()), key=lambda one: _order(one.step))
    every = {head.step.span_id for head in ordered}
    members = {head.step.span_id: forest.below([head.step], but=every) for head in ordered}
    starts = [head.step.start_ns for head in ordered]
    attached: set[str] = set()
    for top, found in heads:
        if not found and top.parent_id != "":  # a lost part of the run of its time
            home = ordered[max(bisect_right(starts, top.start_ns) - 1, 0)].step
            members[home.span_id].update(forest.below([top]))
            attached.add(home.span_id)
    return tuple(
        _group(head.step, members[head.step.span_id], seen, missing=head.step.span_id in attached, called=head.called)
        for head in ordered
    )


def _has_orphans(forest: _Forest, head: Step) -> bool:
    return any(step.parent_id != "" and step.parent_id not in forest.steps for step in forest.steps.values() if step is not head)


def _group(head: Step, members: Mapping[str, Step], seen: Mapping[str, Step], *, missing: bool, called: bool = False) -> Group:
    parent_seen = _ends_above(head) or head.parent_id in seen
    return Group(head=head, steps=_in_order(members), parent_seen=parent_seen, called=called, missing_parent=missing)


def _in_order(members: Mapping[str, Step]) -> tuple[Step, ...]:
    """Order by start, but no child before its parent, whatever the clocks of two machines say."""
    children: dict[str, list[Step]] = {}
    ready: list[tuple[int, str]] = []
    for step in members.values():
        if step.parent_id in members and step.parent_id != step.span_id:
            children.setdefault(step.parent_id, []).append(step)
        else:
            ready.append(_order(step))
    heapq.heapify(ready)
    ordered: list[Step] = []
    while ready:
        _, span_id = heapq.heappop(ready)
        ordered.append(members[span_id])
        for child in children.pop(span_id, ()):
            heapq.heappush(ready, _order(child))
    ordered.extend(sorted((step for left in children.values() for step in left), key=_order))  # what a cycle holds
    return tuple(ordered)
