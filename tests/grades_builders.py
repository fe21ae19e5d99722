"""Stored grades of a run: a rubric's scores, with the composite and the verdict that follow from them."""

from collections.abc import Sequence
from typing import Any

from builders import T0

from pipeline.model.contract import Contract
from pipeline.model.result import Judgment, Kind, Outcome, Result
from pipeline.model.rubric import Rubric
from pipeline.model.time import SECOND
from pipeline.model.verdict import Subject
from pipeline.stages.scorecard import scorecard
from pipeline.stages.stored_grades import StoredGrades

TRANSCRIPT = "ee" * 16
Known = float | Outcome | None
"""A score, why there is none, or None: pending."""


def a_result(rubric: Rubric, name: str, known: Known, authority: str = "alone", why: str = "") -> Result:
    """A judged result, with a reason that names its dimension."""
    low, high = float(rubric.scale_low), float(rubric.scale_high)
    if known is None:
        return Result(name, Kind.JUDGED, f"c-{name}", None, None, low, high, authority=authority)
    if isinstance(known, Outcome):
        reason = f"{known}: {why or 'unknown: nothing shows it'}"
        return Result(name, Kind.JUDGED, f"c-{name}", known, None, low, high, reason=reason, authority=authority)
    outcome = Outcome.PASS if rubric.passes(rubric.dimension(name), known) else Outcome.FAIL
    return Result(
        name,
        Kind.JUDGED,
        f"c-{name}",
        outcome,
        known,
        known,
        known,
        reason=why or f"what decided {name}",
        evidence=f"quote of {name}",
        authority=authority,
    )


def a_check(name: str, outcome: Outcome | None, reason: str = "") -> Result:
    """A result of code."""
    return Result(name, Kind.CODE, f"c-{name}", outcome, reason=reason, lower=0.0, upper=1.0)


def stored(
    rubric: Rubric | None,
    *known: Known,
    checks: Sequence[Result] = (),
    gating: frozenset[str] = frozenset(),
    authority: str = "alone",
    deciding: frozenset[str] = frozenset({"alone", "assisted"}),
    sampled: bool = True,
    run_id: str = "cd" * 16,
    model: str = "gpt-5",
    agent_models: tuple[str, ...] = ("claude-sonnet-4",),
    **definition: Any,
) -> StoredGrades:
    """The stored grades of a run with these scores, in the rubric's order; ``definition`` is added to the scorecard's contract."""
    dimensions = rubric.dimensions if rubric is not None else ()
    scored = tuple(
        a_result(rubric, one.name, score, authority) for one, score in zip(dimensions, known, strict=sampled) if rubric
    )
    contract = Contract(
        kind="verdict",
        dimension="verdict",
        rubric_hash=rubric.hash if rubric is not None else "",
        check_definition={
            "gates": {name: f"c-{name}" for name in sorted(gating)},
            "counts": {},
            "judged": {one.dimension: [one.contract, authority in deciding] for one in scored},
            **definition,
        },
    )
    card = scorecard((*checks, *scored), rubric, gating, deciding, sampled=sampled, contract=contract.hash)
    composite = () if card.composite is None else (card.composite,)
    return StoredGrades(
        subject=a_subject(run_id),
        results=(*checks, *scored, *composite, card.verdict_result),
        judgments=tuple(a_judgment(one, model) for one in scored if one.outcome is not None),
        agent_models=agent_models,
        graded_ns=T0 + 90 * SECOND,
        contract=contract,
        rubric=rubric,
        revision="c0ffee",
    )


def a_subject(run_id: str) -> Subject:
    """What was evaluated."""
    return Subject(
        project="default",
        run_id=run_id,
        run_version=8,
        trace_id="ab" * 16,
        agent="support",
        agent_version="1.0",
        environment="production",
        request="Please refund order A-1001.",
        answer="I refunded 42.50 USD.",
        transcript_hash=TRANSCRIPT,
    )


def a_judgment(result: Result, model: str) -> Judgment:
    """The judgment behind a result."""
    assert result.outcome is not None
    return Judgment(
        project="default",
        trace_id="ab" * 16,
        run_id="cd" * 16,
        run_version=8,
        transcript_hash=TRANSCRIPT,
        contract=result.contract,
        dimension=result.dimension,
        outcome=result.outcome,
        score=result.value,
        model=model,
        judged_ns=T0 + 60 * SECOND,
    )
