"""Scorecard: all that is said of a run in one composite and one verdict (spec sections 2.1 and 2.4).

A pure fold over the run's latest results: in any order, with any of them still missing. Gates come before the average and are never
cancelled by it.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from pipeline.model.result import Kind, Outcome, Result, Verdict
from pipeline.model.rubric import MeasuredBy, Rubric
from pipeline.stages.accounting import first_word
from pipeline.stages.composite import NOT_MEASURED, Interval, Score, composite_result, interval, scores

UNSAMPLED = "unsampled"
"""The reason of the verdict on a run that no judge was asked about, and that failed no check."""


class Scorecard(msgspec.Struct, frozen=True):
    """The composite as a result, None where no judged dimension was planned; the verdict, and the verdict as a result."""

    composite: Result | None
    verdict: Verdict
    verdict_result: Result


def scorecard(
    results: Sequence[Result],
    rubric: Rubric | None,
    gating: frozenset[str],
    deciding: frozenset[str],
    *,
    sampled: bool,
    contract: str = "",
) -> Scorecard:
    """Fold a run's results. ``gating`` names the code checks that gate, ``deciding`` the authorities whose judged scores count."""
    gates = tuple(_code_gates(results, gating))
    if rubric is None or (not sampled and _needs_judge(rubric)):
        verdict = _by_checks(gates, alone=rubric is None)
        return Scorecard(None, verdict, _verdict_result(verdict, contract))
    known = scores(rubric, results, deciding)
    total = interval(rubric, known)
    verdict = _by_rubric(rubric, (*gates, *_rubric_gates(rubric, known)), known, total)
    return Scorecard(composite_result(known, total, contract), verdict, _verdict_result(verdict, contract))


class _Gate(msgspec.Struct, frozen=True):
    """Where one gate stands for the run. ``outcome`` is None while it is pending."""

    outcome: Outcome | None
    reason: str


def _code_gates(results: Iterable[Result], gating: frozenset[str]) -> Iterator[_Gate]:
    """Yield the gates of the checks that applied, by name, so that the order of results cannot matter."""
    checked = (result for result in results if result.kind is Kind.CODE and result.dimension in gating)
    for result in sorted(checked, key=lambda one: one.dimension):
        if result.outcome is Outcome.FAIL:
            yield _Gate(Outcome.FAIL, f"{result.dimension}: {result.reason}".rstrip(": "))
        elif result.outcome is Outcome.PASS:
            yield _Gate(Outcome.PASS, result.dimension)
        else:
            yield _Gate(result.outcome, f"{first_word(result.reason) or result.outcome}: {result.dimension}")


def _rubric_gates(rubric: Rubric, known: Iterable[Score]) -> Iterator[_Gate]:
    for score in known:
        name, least = score.dimension.name, score.dimension.gate
        if least is None:
            continue
        if not score.decided:
            yield _Gate(score.outcome, f"{score.reason}: {name}")
        elif score.low < least:
            what = (
                "fails, and is a hard criterion"
                if rubric.is_of_criteria
                else f"{score.low.normalize():f} is below its gate of {least}"
            )
            yield _Gate(Outcome.FAIL, f"{name}: {what}")
        else:
            yield _Gate(Outcome.PASS, name)


def _needs_judge(rubric: Rubric) -> bool:
    return any(dimension.measured_by is MeasuredBy.JUDGE for dimension in rubric.dimensions)


def _by_checks(gates: Sequence[_Gate], *, alone: bool) -> Verdict:
    """Return what the checks say. Where they do not decide ``alone``, as there is a rubric that nobody was asked about, they only fail."""
    failed = next((gate for gate in gates if gate.outcome is Outcome.FAIL), None)
    if failed is not None:
        return Verdict(Outcome.FAIL, failed.reason)
    if not alone:
        return Verdict(Outcome.INSUFFICIENT_EVIDENCE, UNSAMPLED)
    if not gates:
        return Verdict(Outcome.INSUFFICIENT_EVIDENCE, f"{NOT_MEASURED}: no check gates")
    if any(gate.outcome is None for gate in gates):
        return Verdict(None)
    undecided = next((gate for gate in gates if gate.outcome is not Outcome.PASS), None)
    return Verdict(Outcome.PASS, "all gates passed") if undecided is None else Verdict(undecided.outcome, undecided.reason)


def _by_rubric(rubric: Rubric, gates: Sequence[_Gate], known: Sequence[Score], total: Interval) -> Verdict:
    outcome, reason = _decide(rubric, gates, known, total)
    low, high = total.bounds
    waits = outcome is not None and not outcome.decided
    unknown = tuple(score.dimension.name for score in known if score.dimension.gate is not None and score.is_unknown)
    return Verdict(outcome, reason, composite_low=low, composite_high=high, for_a_person=unknown if waits else ())


def _decide(rubric: Rubric, gates: Sequence[_Gate], known: Sequence[Score], total: Interval) -> tuple[Outcome | None, str]:
    failed = next((gate for gate in gates if gate.outcome is Outcome.FAIL), None)
    if failed is not None:
        return Outcome.FAIL, failed.reason
    if total.misses_bar:
        return Outcome.FAIL, f"composite: {_spoken(rubric, total)} is below the bar of {rubric.bar.normalize():f}"
    undecided = [gate for gate in gates if gate.outcome is not Outcome.PASS]
    if total.meets_bar and not undecided:
        return Outcome.PASS, f"composite: {_spoken(rubric, total)} meets the bar of {rubric.bar.normalize():f}"
    if _may_still_decide(rubric, undecided, known):
        return None, ""
    if undecided:
        return undecided[0].outcome, undecided[0].reason
    first = next(score for score in known if score.outcome is not None)
    return first.outcome, f"{first.reason}: {first.dimension.name}"


def _may_still_decide(rubric: Rubric, undecided: Sequence[_Gate], known: Sequence[Score]) -> bool:
    """Whether an outstanding judgment could give a verdict: at its worst a fail, or at its best a pass."""
    if any(gate.outcome is None for gate in undecided):
        return True
    if not any(score.pending for score in known):
        return False
    worst, best = (interval(rubric, [_at(score, top=top) for score in known]) for top in (False, True))
    return worst.misses_bar or (best.meets_bar and not undecided)


def _at(score: Score, *, top: bool) -> Score:
    """Return a pending score as if its judgment had come, at one end of the scale."""
    end = score.high if top else score.low
    return msgspec.structs.replace(score, low=end, high=end) if score.pending else score


def _spoken(rubric: Rubric, total: Interval) -> str:
    low, high = total.bounds
    number = f"{low:.10g}" if low == high else f"{low:.10g} to {high:.10g}"
    tiers = dict.fromkeys(tier.name for tier in map(rubric.tier, (total.low / total.parts, total.high / total.parts)) if tier)
    return f"{number} ({' to '.join(tiers)})" if tiers else number


def _verdict_result(verdict: Verdict, contract: str) -> Result:
    decided = verdict.outcome is not None and verdict.outcome.decided
    value = float(verdict.outcome is Outcome.PASS) if decided else None
    return Result(
        dimension="verdict",
        kind=Kind.VERDICT,
        contract=contract,
        outcome=verdict.outcome,
        value=value,
        lower=0.0 if value is None else value,
        upper=1.0 if value is None else value,
        reason=verdict.reason,
    )
