"""The structured verdict: what was evaluated, by whom, what came of it, and what has to be done (spec section 2.2)."""

from decimal import Decimal

import msgspec

from pipeline.model.conversation import Outcomes
from pipeline.model.result import Authority, Kind, Outcome


class Subject(msgspec.Struct, frozen=True):
    """What was evaluated: one version of one run."""

    project: str
    run_id: str
    run_version: int
    trace_id: str
    agent: str
    agent_version: str
    environment: str
    request: str
    answer: str | None
    transcript_hash: str
    """Of exactly what the judge was shown; empty where nothing was to be judged."""


class Evaluator(msgspec.Struct, frozen=True):
    """Who evaluated it, and under what."""

    models: tuple[str, ...]
    """Ids of the judge's models as requested; empty where only code measured."""
    families: tuple[str, ...]
    same_family: bool
    """Whether a judge is of the agent's own family."""
    contract: str
    """Hash of the scorecard's contract."""
    revision: str
    """Commit of the code that graded it; empty where it was not kept."""
    rubric: str
    rubric_version: str
    rubric_hash: str
    risk: str
    """What a bad output costs, where the configuration says so."""


class PartScore(msgspec.Struct, frozen=True):
    """One dimension, criterion or check. ``outcome`` is null while a judgment is outstanding."""

    name: str
    kind: Kind
    outcome: Outcome | None
    score: float | None
    """On the dimension's scale; null unless it is decided."""
    lower: float | None
    upper: float | None
    quote: str
    """The words that decided, or the evidence of a check."""
    rationale: str
    gates: bool
    """Whether its fail is a fail of the run, whatever the average."""
    gate: int | None = None
    """The least score that may pass, where it is a gated dimension."""
    weight: Decimal | None = None
    """In the composite; null for criteria, of which each counts one, and for what is not in it."""
    counts: bool = True
    """Whether it may decide; not where the judge has not earned it."""
    authority: Authority | None = None
    model: str = ""
    contract: str = ""
    judged_at: str = ""
    """ISO 8601, UTC; empty for what no judge was asked."""


class Ruling(msgspec.Struct, frozen=True):
    """What it came to. A composite with something unknown in it is an interval, and has a tier where the whole of it has one."""

    outcome: Outcome | None
    reason: str
    composite: float | None
    composite_low: float | None
    composite_high: float | None
    bar: Decimal | None
    tiers: tuple[str, ...]
    """From the worst that it can be to the best; one where it is known, none where the rubric has none."""
    action: str
    may_be_called_complete: bool | None
    """Below the bar it may not; null where it is not known yet, or the rubric says nothing of completeness."""


class StructuredVerdict(msgspec.Struct, frozen=True):
    """The verdict on a run, complete and reproducible: everything in it follows from stored rows."""

    evaluated: Subject
    evaluator: Evaluator
    date: str
    """When it was written: ISO 8601, UTC."""
    dimensions: tuple[PartScore, ...]
    """In the rubric's order."""
    checks: tuple[PartScore, ...]
    """What code measured, by name."""
    verdict: Ruling
    outcomes: Outcomes
    """How many dimensions and gating checks have which outcome."""
    coverage: float | None
    """Decided ones of all that are not pending; null where there are none."""
    pass_rate_low: float | None
    """Share of passes with everything undecided counted as a fail."""
    pass_rate_high: float | None
    """And as a pass."""
    summary: str
    required_actions: tuple[str, ...]
    for_a_person: tuple[str, ...]
    """Gated dimensions that the judge could not tell: a person has to."""
