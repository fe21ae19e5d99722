"""efficiency: how many tool calls a run took, and whether that was more than its kind of task should (spec section 4.2).

Comparing with the cohort belongs to windows: a run's row has its kind of task, and its result how many calls it took.
"""

from typing import Annotated, Final

from pydantic import Field

from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.scorers.check import Check, Finding, check_of, measured
from pipeline.scorers.limits import AMOUNTS

EFFICIENCY: Final = "efficiency"
TaskKind = Annotated[str, Field(min_length=1)]


class EfficiencySettings(Settings):
    """What kinds of tasks there are, and how many tool calls they should take."""

    task_kind: str = ""
    """Attribute of a run's spans, or of their resource, that names its kind of task; the agent's name is it where there is none."""
    baseline: dict[TaskKind, Annotated[int, Field(ge=0)]] = Field(default={})
    """Tool calls that a task should take at most, by its kind. Without one a run is measured and passes."""


def efficiency_check(settings: EfficiencySettings) -> Check:
    """Return the check."""
    definition = {"rule": "executed tool calls at most the baseline of the kind of task", "version": 1, **settings.model_dump()}
    return check_of(EFFICIENCY, definition, lambda run: efficiency(run, settings))


def efficiency(run: Run, settings: EfficiencySettings) -> Finding:
    """Count the executed tool calls; without a baseline for the kind of task any number of them passes."""
    used = AMOUNTS["tool_calls"](run)
    if isinstance(used, Finding):
        return used
    least = settings.baseline.get(run.task_kind)
    if least is None:
        return measured(float(used), holds=True, reason=f"no baseline for {run.task_kind}: only counted")
    holds = used <= least
    return measured(float(used), holds=holds, reason="" if holds else f"{used} calls where {run.task_kind} takes {least}")
