"""Evaluation: what a cohort's window is worth in one number, with all that it takes to make it again (scoring, section 5)."""

from enum import StrEnum
from typing import Final

import msgspec

from pipeline.model import ids
from pipeline.model.quality import QualityScore
from pipeline.model.rate import Rate
from pipeline.model.run import Cohort

LIVE: Final = "live"
"""The series of results that are read unless another is asked for."""


class EvaluationKind(StrEnum):
    """What was evaluated."""

    WINDOW = "window"
    """A cohort over a window of event time."""


class Evaluation(msgspec.Struct, frozen=True):
    """The quality of a cohort over [start, start + length) of event time."""

    project: str
    id: str
    kind: EvaluationKind
    cohort: Cohort
    start_ns: int
    length_ns: int
    series: str
    rates: dict[str, Rate]
    """Of ``pass``, and of ``safety``, ``judge`` and ``schema`` where they were looked for; that of ``judge`` is the mean score, 0 to 1.

    The latter count results, several of one run among them, and their intervals take these as independent.
    """
    quality: QualityScore | None
    """None where no run is decided: nothing was measured."""
    rows: int
    """Results rows that it was made of, retired ones too."""
    fingerprint: int
    """Sum of their versions: with ``rows`` it only grows."""

    @property
    def end_ns(self) -> int:
        """Event time at which the window ends."""
        return self.start_ns + self.length_ns

    @property
    def version(self) -> int:
        """The greater one was made of more."""
        return self.rows + self.fingerprint


def evaluation_id(project: str, cohort_id: str, length_ns: int, end_ns: int, series: str = LIVE) -> str:
    """Name the evaluation of a window: 32 hex digits."""
    return ids.digest(16, EvaluationKind.WINDOW, project, cohort_id, str(length_ns), str(end_ns), series)
