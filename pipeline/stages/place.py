"""Place: which cohort and which minute a run counts in (design sections 3 and 4)."""

from typing import Final

from pipeline.model.run import BACKFILL, UNKNOWN, Cohort, Place
from pipeline.model.step import Step, StepKind
from pipeline.model.time import DAY, MINUTE, minute_of
from pipeline.stages.group import Group

EARLIEST: Final = 7 * DAY
LATEST: Final = 5 * MINUTE


def cohort_of(group: Group) -> Cohort:
    """Return (agent, version, environment): the head's own words, else those of the first agent below, else of the service."""
    agent = next((step for step in (group.head, *group.steps) if step.kind is StepKind.AGENT and step.agent), group.head)
    return Cohort(
        agent=agent.agent or group.head.agent or _first(group, "service"),
        version=agent.agent_version or group.head.agent_version or _first(group, "service_version"),
        environment=_first(group, "environment"),
    )


def _first(group: Group, field: str) -> str:
    return next((value for step in (group.head, *group.steps) if (value := getattr(step, field))), UNKNOWN)


def first_received(group: Group) -> int:
    """Return when the run was first heard of."""
    return min(step.received_ns for step in group.steps)


def end_of(group: Group, environment: str) -> int:
    """Return the run's end in event time.

    An end that is zero or before the start counts as missing: then the latest valid end of any step, else the first receipt. A clock that is
    off by more than −7 d … +5 min is not believed, except in replayed history.
    """
    received = first_received(group)
    end = _valid_end(group.head) or max(map(_valid_end, group.steps)) or received
    return end if environment == BACKFILL else min(max(end, received - EARLIEST), received + LATEST)


def start_of(group: Group, end_ns: int) -> int:
    """Return the run's start: the head's, else the earliest known, never after its end."""
    start = group.head.start_ns or min((step.start_ns for step in group.steps if step.start_ns), default=end_ns)
    return min(start, end_ns)


def place_of(group: Group) -> Place:
    """Return where the run counts."""
    cohort = cohort_of(group)
    return Place(cohort=cohort, minute_ns=minute_of(end_of(group, cohort.environment)))


def _valid_end(step: Step) -> int:
    return step.end_ns if step.end_ns and step.end_ns >= step.start_ns else 0
