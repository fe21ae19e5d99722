"""Group: the steps of a trace into runs. Steps in, one group per run out (design section 4).

The grouping is a function of the set of steps: no arrival order, no clock. Every version of a trace regroups all of it.
"""

import heapq
from collections.abc import Iterable, Mapping

import msgspec

from pipeline.model.step import Step, StepKind


class Group(msgspec.Struct, frozen=True):
    """The steps of one run. ``parent_seen`` says that nothing above the head is still to come."""

    head: Step
    steps: tuple[Step, ...]
    """By start, parents before children."""
    parent_seen: bool
    missing_parent: bool = False
    """Some steps hang below a span that never came; they were attached to the run of their time."""


class _Tree:
    """Parents and children of a trace's steps, safe on cycles and on parents that never came."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps: dict[str, Step] = {step.span_id: step for step in steps}
        self.children: dict[str, list[Step]] = {}
        for step in self.steps.values():
            self.children.setdefault(step.parent_id, []).append(step)

    def ancestors(self, step: Step) -> list[Step]:
        """Known ancestors, nearest first; a cycle ends where it closes."""
        found: list[Step] = []
        seen = {step.span_id}
        above = self.steps.get(step.parent_id)
        while above is not None and above.span_id not in seen:
            found.append(above)
            seen.add(above.span_id)
            above = self.steps.get(above.parent_id)
        return found

    def below(self, tops: Iterable[Step]) -> dict[str, Step]:
        """The tops and all that hangs below them."""
        found: dict[str, Step] = {}
        waiting = list(tops)
        while waiting:
            step = waiting.pop()
            if step.span_id not in found:
                found[step.span_id] = step
                waiting.extend(self.children.get(step.span_id, ()))
        return found


def group(steps: Mapping[str, Step]) -> tuple[Group, ...]:
    """Return the runs of a trace, by start of their heads.

    A head is a topmost agent, or the highest orchestration above it (a root chain counts as one). Without agents the whole trace is one
    run, if it holds a model call or a tool call. No group: the trace is not an agent's.
    """
    tree = _Tree(steps.values())
    ignored = tree.below(step for step in steps.values() if step.kind is StepKind.IGNORED)
    if ignored:
        tree = _Tree(step for step in steps.values() if step.span_id not in ignored)
    heads = _agent_heads(tree)
    if heads:
        return _around(tree, heads, steps)
    if any(step.kind in (StepKind.MODEL, StepKind.TOOL) for step in tree.steps.values()):
        head = min(tree.steps.values(), key=lambda step: (step.parent_id != "", step.parent_id in tree.steps, *_order(step)))
        return (_group(head, tree.steps, steps, missing=_has_orphans(tree, head)),)
    return ()


def _order(step: Step) -> tuple[int, str]:
    return step.start_ns, step.span_id


def _agent_heads(tree: _Tree) -> list[Step]:
    heads: dict[str, Step] = {}
    for step in tree.steps.values():
        if step.kind is not StepKind.AGENT:
            continue
        above = tree.ancestors(step)
        if any(one.kind is StepKind.AGENT for one in above):
            continue
        head = next((one for one in reversed(above) if _stands_for_the_run(one)), step)
        heads[head.span_id] = head
    if not heads:  # agents that are each other's ancestors: a cycle; the earliest stands for it
        heads = {step.span_id: step for step in sorted(_agents(tree), key=_order)[:1]}
    return sorted(heads.values(), key=_order)


def _agents(tree: _Tree) -> list[Step]:
    return [step for step in tree.steps.values() if step.kind is StepKind.AGENT]


def _stands_for_the_run(step: Step) -> bool:
    return step.kind is StepKind.ORCHESTRATION or (step.kind is StepKind.CHAIN and step.parent_id == "")


def _around(tree: _Tree, heads: list[Step], seen: Mapping[str, Step]) -> tuple[Group, ...]:
    members = {head.span_id: tree.below([head]) for head in heads}
    taken = {span_id for below in members.values() for span_id in below}
    attached: set[str] = set()
    for step in tree.steps.values():
        if step.span_id in taken or step.parent_id == "" or step.parent_id in tree.steps:
            continue
        orphans = tree.below([step])
        if any(one.span_id in taken for one in orphans.values()):
            continue  # a span above an agent, not a lost part of it
        home = max((head for head in heads if head.start_ns <= step.start_ns), key=_order, default=heads[0])
        members[home.span_id].update(orphans)
        attached.add(home.span_id)
    return tuple(_group(head, members[head.span_id], seen, missing=head.span_id in attached) for head in heads)


def _has_orphans(tree: _Tree, head: Step) -> bool:
    return any(step.parent_id != "" and step.parent_id not in tree.steps for step in tree.steps.values() if step is not head)


def _group(head: Step, members: Mapping[str, Step], seen: Mapping[str, Step], *, missing: bool) -> Group:
    parent_seen = head.parent_id == "" or head.parent_is_remote or head.parent_id in seen
    return Group(head=head, steps=_in_order(members), parent_seen=parent_seen, missing_parent=missing)


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
