"""Close: when to stop waiting for spans. Not part of what a version says, only of when it is said (design section 4)."""

import msgspec

from pipeline.model.run import CloseReason
from pipeline.model.settings import Duration, Settings
from pipeline.model.step import Step, StepKind
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.stages.group import Group


class AssembleSettings(Settings):
    """How long to wait for the rest of a run."""

    quiet_period: Duration = 10 * SECOND
    """After the head's end, when nothing above it is still to come."""
    parent_unseen: Duration = 60 * SECOND
    """After an agent's end, when the span above it has not come: it may be part of a larger run."""
    idle_timeout: Duration = 5 * MINUTE
    """After the last span or log record of the trace, when no head has ended."""
    greatest_age: Duration = 24 * HOUR
    """After the first span, whatever comes."""


class Due(msgspec.Struct, frozen=True):
    """When a group closes if nothing else comes, and why."""

    at_ns: int
    reason: CloseReason


def due(group: Group, settings: AssembleSettings, log_received_ns: int = 0, trace_received_ns: int = 0) -> Due:
    """Return when the group closes. ``log_received_ns`` is when the last log record of its spans came, ``trace_received_ns`` the last of its trace.

    A quiet period is quiet: it is counted from the head's end or from the last span or log record that came, whichever is later, so that a trace whose
    end lies in the past (a replay, a slow exporter) is not closed half-read (docs/adr/0003).
    """
    first, last = _received(group.steps, log_received_ns)
    idle = Due(max(last, trace_received_ns) + settings.idle_timeout, CloseReason.IDLE)
    oldest = Due(first + settings.greatest_age, CloseReason.GREATEST_AGE)
    ended = max(group.head.end_ns, last) if group.head.end_ns and not group.called else 0
    rules = [idle, oldest]
    if ended and group.parent_seen:
        rules.append(Due(ended + settings.quiet_period, CloseReason.HEAD_ENDED))
    elif ended and group.head.kind in (StepKind.AGENT, StepKind.ORCHESTRATION):
        rules.append(Due(ended + settings.parent_unseen, CloseReason.PARENT_UNSEEN))
    return min(rules, key=lambda rule: rule.at_ns)


def due_without_run(steps: tuple[Step, ...], settings: AssembleSettings, log_received_ns: int = 0) -> Due:
    """Return when a trace that holds no run is done with: a quiet period after its root ended, else when idle."""
    first, last = _received(steps, log_received_ns)
    rules = [Due(last + settings.idle_timeout, CloseReason.IDLE), Due(first + settings.greatest_age, CloseReason.GREATEST_AGE)]
    if any(step.parent_id == "" and step.end_ns for step in steps):
        rules.append(Due(last + settings.quiet_period, CloseReason.HEAD_ENDED))
    return min(rules, key=lambda rule: rule.at_ns)


def _received(steps: tuple[Step, ...], log_received_ns: int) -> tuple[int, int]:
    times = [step.received_ns for step in steps]
    return min(times), max(*times, log_received_ns)
