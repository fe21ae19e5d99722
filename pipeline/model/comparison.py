"""Comparison: two runs, or what stands between them."""

from enum import StrEnum

import msgspec

from pipeline.model.result import Outcome


class Answer(StrEnum):
    """How the second of two is, compared with the first."""

    BETTER = "better"
    WORSE = "worse"
    EQUAL = "equal"
    NOT_DECIDED = "not_decided"
    """What is unknown could turn it."""


class Difference(msgspec.Struct, frozen=True):
    """The second minus the first: an interval, a number where ``low`` is ``high``."""

    name: str
    answer: Answer
    low: float
    high: float


class Side(msgspec.Struct, frozen=True):
    """One of the two runs."""

    run_id: str
    agent: str
    agent_version: str
    composite_low: float
    composite_high: float
    outcome: Outcome | None
    reason: str


class Comparison(msgspec.Struct, frozen=True):
    """Two runs compared by composite, and by each dimension that both have."""

    first: Side
    second: Side
    composite: Difference
    dimensions: tuple[Difference, ...]
    contracts_differ: tuple[str, ...]
    """What differs between the contracts under which they were graded: their difference may be the graders'. Empty where nothing does."""
    note: str
    """Which of them failed; empty where none did."""
