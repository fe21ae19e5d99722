"""Sample: which runs are judged. A hash of the trace and a function of the run's current version; never chance, never the past."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field

from pipeline.model import ids
from pipeline.model.result import Feedback
from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.model.version import Sampling
from pipeline.scorers.calls import failed


class KeepRule(StrEnum):
    """What makes a run worth judging whatever the draw says."""

    ERROR = "error"
    """A tool call or a step of the run failed."""
    THUMBS_DOWN = "thumbs_down"
    """Somebody gave negative feedback."""


class SampleSettings(Settings):
    """How many runs of an agent are judged, and which in any case."""

    rate: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of runs that the draw keeps, 0 to 1."""
    keep: tuple[KeepRule, ...] = (KeepRule.ERROR, KeepRule.THUMBS_DOWN)
    """Rules that keep a run with probability 1."""
    salt: str = "1"
    """Change it to draw another sample."""


def sample(run: Run, feedback: Sequence[Feedback], settings: SampleSettings) -> Sampling:
    """Decide whether a run is judged.

    A kept run has inclusion probability 1 in every estimate; the others have the rate (design section 4). All runs of a trace share one draw.
    """
    for rule in settings.keep:
        if _holds(rule, run, feedback):
            return Sampling(plan=f"keep:{rule}", sampled=True, inclusion_probability=1.0)
    drawn = ids.uniform(run.project, run.trace_id, settings.salt) < settings.rate
    return Sampling(plan=f"rate:{settings.rate:g}:{settings.salt}", sampled=drawn, inclusion_probability=settings.rate)


def _holds(rule: KeepRule, run: Run, feedback: Sequence[Feedback]) -> bool:
    if rule is KeepRule.ERROR:
        return run.error is not None or any(map(failed, run.tool_calls))
    return any(one.value < 0 for one in feedback)
