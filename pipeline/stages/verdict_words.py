"""Verdict words: what a structured verdict says in sentences. By rule, from stored grades: no model writes any of it."""

from collections.abc import Iterator
from decimal import Decimal
from math import ceil
from typing import Final

from pipeline.model.result import Authority, Outcome, Result, Unresolved
from pipeline.model.rubric import CompositeKind, Rubric, Tier
from pipeline.model.verdict import Ruling
from pipeline.stages.composite import UNCALIBRATED, Score
from pipeline.stages.stored_grades import StoredGrades

_HEADS: Final = {
    None: "PENDING",
    Outcome.PASS: "PASS",
    Outcome.FAIL: "FAIL",
    Outcome.INSUFFICIENT_EVIDENCE: "NOT DECIDED",
    Outcome.GRADER_ERROR: "NOT DECIDED",
}
_UNDECIDED: Final = {
    UNCALIBRATED: "Compare the judge with people on {name}: until then its scores are shown and decide nothing.",
    Unresolved.NO_JUDGE: "Name a judge that can be asked about {name}: none is configured.",
    Unresolved.INSUFFICIENT_EVIDENCE: "Capture what {name} needs ({needs}), or have a person grade it: {why}.",
}
_TOLD: Final = "unknown"
"""What stands before the words of a judge that answered so."""


def reached_tiers(grades: StoredGrades) -> tuple[Tier, ...]:
    """Return the tiers that the composite can be in, the worst first; none where the rubric has none, or there is no composite."""
    rubric, total = grades.rubric, grades.total
    if rubric is None or total is None or not rubric.tiers:
        return ()
    worst, best = (rubric.tiers.index(rubric.tier(end / total.parts) or rubric.tiers[-1]) for end in (total.low, total.high))
    return tuple(reversed(rubric.tiers[best : worst + 1]))


def summary(grades: StoredGrades, ruling: Ruling) -> str:
    """Return the verdict in a few sentences."""
    parts = [f"{_HEADS[ruling.outcome]}: {_sentence(ruling.reason) or 'A judgment is outstanding.'}"]
    if ruling.tiers:
        parts.append(f"{' to '.join(dict.fromkeys((ruling.tiers[0], ruling.tiers[-1])))}: {ruling.action}.")
    if ruling.may_be_called_complete is False:
        parts.append("It may not be called complete.")
    parts += _best_and_least(grades)
    known = grades.known
    if known:
        parts.append(f"{sum(score.decided for score in known)} of {len(known)} {_noun(grades.rubric)} are decided.")
    if shown_only := sum(score.reason == UNCALIBRATED and _is_uncalibrated(grades, score) for score in known):
        noun, verb = _noun(grades.rubric), "are" if shown_only > 1 else "is"
        parts.append(
            f"{shown_only} of the {noun} {verb} judged by an uncalibrated judge and {'do' if shown_only > 1 else 'does'} not count; "
            "judge.uncalibrated: decide lets it decide."
        )
    if by_choice := [score.dimension.name for score in known if score.decided and _is_uncalibrated(grades, score)]:
        parts.append(f"The judge is uncalibrated for {', '.join(by_choice)}, and counts there by choice.")
    return " ".join(parts)


def _is_uncalibrated(grades: StoredGrades, score: Score) -> bool:
    result = grades.result(score.dimension.name)
    return result is not None and result.authority == Authority.UNCALIBRATED


def required_actions(grades: StoredGrades, ruling: Ruling) -> Iterator[str]:
    """Yield what has to be done: where the run failed or nothing is decided, and where its tier is not above the bar.

    What gates comes first, then what would add most to the composite, where that is not enough already.
    """
    if not _are_required(grades, ruling):
        return
    yield from _checks(grades)
    short = [(score, target) for score in grades.known if score.decided and score.low < (target := _target(grades, score))]
    enough = grades.total is not None and grades.total.meets_bar and ruling.outcome is not Outcome.PASS
    short = [one for one in short if _trips(one[0]) or not enough]
    short.sort(key=lambda one: (not _trips(one[0]), -one[0].dimension.weight * (one[1] - one[0].low)))
    for score, target in short:
        yield _raise(grades, score, target)
    if ruling.outcome is not Outcome.FAIL:
        yield from _undecided(grades)


def _are_required(grades: StoredGrades, ruling: Ruling) -> bool:
    if ruling.outcome is Outcome.PASS:
        tiers = reached_tiers(grades)
        return bool(tiers) and ruling.bar is not None and tiers[0].least <= ruling.bar
    return ruling.outcome is not None


def _checks(grades: StoredGrades) -> Iterator[str]:
    for one in grades.checks:
        if one.dimension in grades.gating and one.outcome is Outcome.FAIL:
            yield f"Mend {one.dimension}: {_sentence(one.reason) or 'it fails.'}"


def _target(grades: StoredGrades, score: Score) -> int:
    """Return the score that a dimension has to reach: its gate, and what the bar, or the tier above it, asks of all of them."""
    rubric = grades.rubric
    if rubric is None:
        return 0
    return max(score.dimension.gate or rubric.scale_low, min(ceil(_asked(rubric)), rubric.scale_high))


def _asked(rubric: Rubric) -> Decimal:
    if rubric.composite is CompositeKind.PERCENT:
        return rubric.scale_low + rubric.bar / 100 * (rubric.scale_high - rubric.scale_low)
    if rubric.is_of_criteria:
        return Decimal(rubric.scale_high)
    return min((tier.least for tier in rubric.tiers if tier.least > rubric.bar), default=rubric.bar)


def _trips(score: Score) -> bool:
    return score.dimension.gate is not None and score.low < score.dimension.gate


def _raise(grades: StoredGrades, score: Score, target: int) -> str:
    name, why = score.dimension.name, _why(grades.result(score.dimension.name))
    if grades.rubric is not None and grades.rubric.is_of_criteria:
        return f"Meet {name}: {why}"
    return f"Raise {name} from {score.low.normalize():f} to {target}{'' if target == _highest(grades) else ' or more'}: {why}"


def _undecided(grades: StoredGrades) -> Iterator[str]:
    waits = grades.for_a_person
    for score in grades.known:
        if score.decided or score.pending:
            continue
        name, why = score.dimension.name, _why(grades.result(score.dimension.name), score.reason, _TOLD)
        if name in waits:
            yield f"Have a person grade {name}, which gates and which the judge could not tell: {why}"
        else:
            words = _UNDECIDED.get(score.reason, "Have {name} graded again: {why}.")
            yield words.format(name=name, why=why.rstrip("."), needs="; ".join(score.dimension.requires) or "its evidence")
    for one in grades.checks:
        if one.dimension in grades.gating and one.outcome in (Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR):
            yield f"Capture what {one.dimension} reads: {_why(one)}"


def _best_and_least(grades: StoredGrades) -> Iterator[str]:
    decided = [score for score in grades.known if score.decided]
    if not decided or grades.rubric is None:
        return
    if grades.rubric.is_of_criteria:
        failed = [score.dimension.name for score in decided if score.low < grades.rubric.scale_high]
        yield f"Failed: {', '.join(failed)}." if failed else "No criterion failed."
        return
    best, least = max(score.low for score in decided), min(score.low for score in decided)
    for words, end in (("Best", best), ("Least", least)) if best > least else (("All", best),):
        names = ", ".join(score.dimension.name for score in decided if score.low == end)
        yield f"{words}: {end.normalize():f} for {names}."


def _noun(rubric: Rubric | None) -> str:
    return "criteria" if rubric is not None and rubric.is_of_criteria else "dimensions"


def _highest(grades: StoredGrades) -> int:
    return grades.rubric.scale_high if grades.rubric is not None else 0


def _why(result: Result | None, *said: str) -> str:
    """Return the reason of a result, without those of the words before it that are ``said`` already."""
    reason = result.reason if result is not None else ""
    for word in said:
        reason = reason.removeprefix(f"{word}: ")
    return _sentence(reason) or "no reason was given."


def _sentence(text: str) -> str:
    """Return a reason on one line that ends as a sentence does."""
    line = " ".join(text.split())
    return line if not line or line[-1] in ".!?" else f"{line}."
