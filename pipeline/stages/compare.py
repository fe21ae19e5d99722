"""Compare: two runs by their composites, as far as both are known (spec sections 2.2 and 2.4). Stored grades in, a comparison out."""

from collections.abc import Iterator
from fractions import Fraction

from pipeline.errors import ConfigurationError
from pipeline.model.comparison import Answer, Comparison, Difference, Side
from pipeline.model.result import Outcome
from pipeline.model.rubric import Rubric
from pipeline.stages.composite import Interval, Score
from pipeline.stages.stored_grades import StoredGrades
from pipeline.stages.verify import parts_that_differ


def compare(first: StoredGrades, second: StoredGrades, *, across_contracts: bool = False) -> Comparison:
    """Compare the second run with the first: better, worse, equal, or not decided while what is unknown could turn it.

    Raises:
        ConfigurationError: one has no composite, they were graded under different contracts and nobody asked for that, or their
            composites are not on one scale.
    """
    (rubric, one), (other_rubric, other) = (_composite(grades) for grades in (first, second))
    differs = tuple(_differences(first, second))
    if differs and not across_contracts:
        raise ConfigurationError(
            f"the two runs were graded under different contracts ({'; '.join(differs)}), so a difference may be the graders'; "
            "ask with --across-contracts to compare them all the same"
        )
    if (rubric.composite, rubric.composite_ends) != (other_rubric.composite, other_rubric.composite_ends):
        raise ConfigurationError(
            f"{rubric.name} adds up to {_scale(rubric)} and {other_rubric.name} to {_scale(other_rubric)}: their composites cannot be compared"
        )
    known = {score.dimension.name: score for score in second.known}
    shared = [(score, known[score.dimension.name]) for score in first.known if score.dimension.name in known]
    return Comparison(
        first=_side(first, one),
        second=_side(second, other),
        composite=_difference("composite", _ends(one), _ends(other)),
        dimensions=tuple(_difference(score.dimension.name, _bounds(score), _bounds(also)) for score, also in shared),
        contracts_differ=differs,
        note=_note(first, second),
    )


def _composite(grades: StoredGrades) -> tuple[Rubric, Interval]:
    if grades.rubric is None or grades.total is None:
        why = "its rubric is not stored" if grades.composite is not None else "nobody was asked to judge it"
        raise ConfigurationError(f"run {grades.subject.run_id} has no composite to compare: {why}")
    return grades.rubric, grades.total


def _differences(first: StoredGrades, second: StoredGrades) -> Iterator[str]:
    if first.verdict is not None and second.verdict is not None and first.verdict.contract == second.verdict.contract:
        return
    if first.rubric is not None and second.rubric is not None and first.rubric.name != second.rubric.name:
        yield f"rubric: {first.rubric.name} and {second.rubric.name}"
    for part, one, other in parts_that_differ(first.contract, second.contract):
        yield f"{part}: {one} and {other}"


def _scale(rubric: Rubric) -> str:
    low, high = rubric.composite_ends
    return f"{low} to {high} ({rubric.composite})"


Ends = tuple[Fraction, Fraction]


def _ends(total: Interval) -> Ends:
    return Fraction(total.low) / total.parts, Fraction(total.high) / total.parts


def _bounds(score: Score) -> Ends:
    return Fraction(score.low), Fraction(score.high)


def _difference(name: str, first: Ends, second: Ends) -> Difference:
    """Subtract intervals: what is unknown of one run says nothing of the other."""
    low, high = second[0] - first[1], second[1] - first[0]
    if low > 0:
        answer = Answer.BETTER
    elif high < 0:
        answer = Answer.WORSE
    else:
        answer = Answer.EQUAL if low == high == 0 else Answer.NOT_DECIDED
    return Difference(name, answer, float(low), float(high))


def _side(grades: StoredGrades, total: Interval) -> Side:
    low, high = total.bounds
    verdict = grades.verdict
    return Side(
        run_id=grades.subject.run_id,
        agent=grades.subject.agent,
        agent_version=grades.subject.agent_version,
        composite_low=low,
        composite_high=high,
        outcome=verdict.outcome if verdict is not None else None,
        reason=verdict.reason if verdict is not None else "",
    )


def _note(first: StoredGrades, second: StoredGrades) -> str:
    """Say which of them fails, whatever its composite: a gate is not averaged away by a comparison either."""
    verdicts = {"the first": first.verdict, "the second": second.verdict}
    failed = [name for name, verdict in verdicts.items() if verdict is not None and verdict.outcome is Outcome.FAIL]
    return f"{' and '.join(failed)} failed, whatever the composite" if failed else ""
