"""Verdict: a run's stored grades into its structured verdict (spec section 2.2). Without a model: equal rows, equal words."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from pipeline.judges.family import family, related
from pipeline.model.conversation import Outcomes
from pipeline.model.result import Authority, Kind, Outcome, Result
from pipeline.model.rubric import CompositeKind
from pipeline.model.time import SECOND
from pipeline.model.verdict import Evaluator, PartScore, Ruling, StructuredVerdict
from pipeline.stages.composite import Score
from pipeline.stages.stored_grades import StoredGrades
from pipeline.stages.verdict_words import reached_tiers, required_actions, summary

SHIP: Final = "ship"
DO_NOT_SHIP: Final = "do not ship"
DECIDE_NOTHING: Final = "decide nothing on it yet"
"""Actions of a rubric without tiers, and of any where a gate failed or nothing is decided."""


def structured_verdict(grades: StoredGrades) -> StructuredVerdict:
    """Return what was evaluated, by whom, what came of it, and what has to be done."""
    dimensions = tuple(_dimension(grades, score) for score in grades.known)
    checks = tuple(_check(grades, one) for one in grades.checks)
    outcomes = _outcomes((*dimensions, *(one for one in checks if one.gates)))
    undecided = outcomes.insufficient_evidence + outcomes.grader_error
    closed = outcomes.passed + outcomes.failed + undecided
    ruling = _ruling(grades)
    return StructuredVerdict(
        evaluated=grades.subject,
        evaluator=_evaluator(grades),
        date=_iso(grades.graded_ns),
        dimensions=dimensions,
        checks=checks,
        verdict=ruling,
        outcomes=outcomes,
        coverage=(outcomes.passed + outcomes.failed) / closed if closed else None,
        pass_rate_low=outcomes.passed / closed if closed else None,
        pass_rate_high=(outcomes.passed + undecided) / closed if closed else None,
        summary=summary(grades, ruling),
        required_actions=tuple(required_actions(grades, ruling)),
        for_a_person=grades.for_a_person,
    )


def _evaluator(grades: StoredGrades) -> Evaluator:
    judged = [judgment for one in grades.results if (judgment := grades.judgment(one)) is not None]
    models = sorted({model for judgment in judged for model in judgment.models})
    rubric, verdict = grades.rubric, grades.verdict
    return Evaluator(
        models=tuple(models),
        families=tuple(sorted({family(model) for model in models} - {""})),
        same_family=any(related(agent, model) for agent in grades.agent_models for model in models),
        contract=verdict.contract if verdict is not None else "",
        revision=grades.revision,
        rubric=rubric.name if rubric is not None else "",
        rubric_version=rubric.version if rubric is not None else "",
        rubric_hash=grades.contract.rubric_hash if grades.contract is not None else "",
        risk=grades.risk,
    )


def _dimension(grades: StoredGrades, score: Score) -> PartScore:
    dimension, result = score.dimension, grades.result(score.dimension.name)
    judgment = grades.judgment(result) if result is not None else None
    of_criteria = grades.rubric is not None and grades.rubric.is_of_criteria
    return PartScore(
        name=dimension.name,
        kind=result.kind if result is not None else Kind.JUDGED,
        outcome=result.outcome if result is not None else Outcome.INSUFFICIENT_EVIDENCE,
        score=result.value if result is not None else None,
        lower=float(score.low),
        upper=float(score.high),
        quote=result.evidence if result is not None else "",
        rationale=result.reason if result is not None else score.reason,
        gates=dimension.gate is not None,
        gate=dimension.gate,
        weight=None if of_criteria else dimension.weight,
        counts=result is not None and (result.kind is Kind.CODE or result.authority in grades.deciding),
        authority=Authority(result.authority) if result is not None and result.authority else None,
        model=judgment.model if judgment is not None else "",
        contract=result.contract if result is not None else "",
        judged_at=_iso(judgment.judged_ns) if judgment is not None else "",
    )


def _check(grades: StoredGrades, result: Result) -> PartScore:
    return PartScore(
        name=result.dimension,
        kind=result.kind,
        outcome=result.outcome,
        score=result.value,
        lower=result.lower,
        upper=result.upper,
        quote=result.evidence,
        rationale=result.reason,
        gates=result.dimension in grades.gating,
        contract=result.contract,
    )


def _outcomes(parts: Sequence[PartScore]) -> Outcomes:
    found = Counter(_deciding(part) for part in parts)
    return Outcomes(
        passed=found[Outcome.PASS],
        failed=found[Outcome.FAIL],
        insufficient_evidence=found[Outcome.INSUFFICIENT_EVIDENCE],
        grader_error=found[Outcome.GRADER_ERROR],
        pending=found[None],
    )


def _deciding(part: PartScore) -> Outcome | None:
    """Return an outcome as it counts: a score that may not decide is shown, and decides as little as none."""
    shown_only = part.outcome is not None and part.outcome.decided and not part.counts
    return Outcome.INSUFFICIENT_EVIDENCE if shown_only else part.outcome


def _ruling(grades: StoredGrades) -> Ruling:
    verdict, composite, rubric, total = grades.verdict, grades.composite, grades.rubric, grades.total
    outcome = verdict.outcome if verdict is not None else None
    tiers = reached_tiers(grades)
    by_gate = outcome is Outcome.FAIL and not (total is not None and total.misses_bar)
    decided = outcome is not None and outcome.decided
    return Ruling(
        outcome=outcome,
        reason=verdict.reason if verdict is not None else "",
        composite=composite.value if composite is not None else None,
        composite_low=composite.lower if composite is not None else None,
        composite_high=composite.upper if composite is not None else None,
        bar=rubric.bar if rubric is not None else None,
        tiers=tuple(tier.name for tier in tiers),
        action=tiers[0].action if tiers and decided and not by_gate else _PLAIN_ACTIONS.get(outcome, DECIDE_NOTHING),
        may_be_called_complete=outcome is Outcome.PASS
        if decided and rubric is not None and rubric.composite is CompositeKind.MEAN
        else None,
    )


def _iso(ns: int) -> str:
    return datetime.fromtimestamp(ns // SECOND, UTC).isoformat() if ns else ""


_PLAIN_ACTIONS: Final[dict[Outcome | None, str]] = {Outcome.PASS: SHIP, Outcome.FAIL: DO_NOT_SHIP}
