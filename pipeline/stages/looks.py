"""Looks: when the owner of a trace looks at all of it. A look regroups every span, so a span must not cost a look of its own.

What came is looked at when it may have ended a run, when a run that waits is due, or when nothing came for long. So an open trace costs
what its new spans cost, whether it is a minute old or has been open for hours.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind
from pipeline.model.time import MILLISECOND
from pipeline.stages.close import AssembleSettings

PACE: Final = 10 * MILLISECOND
"""Time between two looks at a trace whose root has not come, for each of its spans: what looks cost a second does not grow with the trace.
Up to 1000 spans that is the usual quiet period."""
NEVER: Final = 2**63 - 1
_HEADS: Final = (StepKind.AGENT, StepKind.ORCHESTRATION)
_FAR: Final = 100
"""Steps that are climbed to find a caller."""


class Looks:
    """When a trace was looked at, what came since, and what was waited for then. It says when, never what a version says."""

    __slots__ = ("_agents", "_due_ns", "_looked_ns", "_news", "_root_came")

    def __init__(self) -> None:
        self._looked_ns = 0
        self._due_ns = 0
        self._news = False
        self._root_came = False
        self._agents: dict[str, Step] = {}
        """By span id, those that came since the last look and whose parent has not: children end first."""

    def came(self, span: Span) -> None:
        """Take note of a span. Above a root that has ended nothing is still to come, so it does not wait for its turn."""
        self._root_came = self._root_came or (span.end_ns > 0 and _ends_above(span))

    def changed(self) -> None:
        """Take note of what changes a run that may be written already."""
        self._news = True

    def read(self, fresh: Iterable[Step], steps: Mapping[str, Step]) -> None:
        """Take note of the steps that came since the last look, among all ``steps`` of the trace."""
        for step in fresh:
            self._news = self._news or _ends_above(step)
            if step.kind in _HEADS:
                self._agents[step.span_id] = step
        for step in [step for step in self._agents.values() if step.parent_id in steps]:
            self._news = self._news or _may_end_a_run(step, steps)
            del self._agents[step.span_id]

    def next_at(self, last_received_ns: int, spans: int, settings: AssembleSettings) -> int:
        """Return when to look at what came in a trace of so many spans, if nothing else comes."""
        quiet = last_received_ns + settings.quiet_period
        return quiet if self._root_came else max(quiet, self._looked_ns + min(spans * PACE, settings.idle_timeout))

    def rest_until(self, first_received_ns: int, last_received_ns: int, settings: AssembleSettings) -> int:
        """Return until when no look can find anything due; 0 where one may."""
        if self._news:
            return 0
        alone = min((step.received_ns for step in self._agents.values()), default=NEVER) + settings.parent_unseen
        return min(self._due_ns, alone, last_received_ns + settings.idle_timeout, first_received_ns + settings.greatest_age)

    def looked(self, now: int, due_ns: int) -> None:
        """Take note of a look, and of when the first of the runs that it left waiting is due if nothing else comes."""
        self._looked_ns, self._due_ns = now, due_ns
        self._news = self._root_came = False
        self._agents.clear()


def _ends_above(one: Span | Step) -> bool:
    return one.parent_id == "" or one.parent_is_remote


def _may_end_a_run(step: Step, steps: Mapping[str, Step]) -> bool:
    """Whether a run may be over with this agent's: unless another agent called it, as far as is known."""
    called = False
    for _ in range(_FAR):
        above = steps.get(step.parent_id)
        if above is None:
            return not called or _ends_above(step)
        if above.kind is StepKind.AGENT:
            return False
        called, step = called or above.kind is StepKind.TOOL, above
    return True
