"""Composites of all three kinds (spec sections 2.1 to 2.4): worked values of criteria, and laws that hold for every kind."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.config.rubrics import load
from pipeline.model.result import Kind, Outcome, Result, Verdict
from pipeline.model.rubric import Rubric
from pipeline.stages.scorecard import Scorecard, scorecard

PASS, FAIL, UNKNOWN, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR
DECIDING = frozenset({"alone"})
GATING = frozenset({"refund_once"})
SUPPORT, AGENT_OUTPUT, CRITERIA = load("support"), load("agent-output"), load("criteria")
# Gates and a hard criterion on every kind: what is said of gates must not depend on how the rest adds up.
GATED = replace(AGENT_OUTPUT, dimensions=(replace(AGENT_OUTPUT.dimensions[0], gate=3), *AGENT_OUTPUT.dimensions[1:]))
KINDS = {"percent": SUPPORT, "mean": GATED, "criteria": CRITERIA}

Known = float | Outcome | None
"""A score, why there is none, or None: pending."""


def judged(rubric: Rubric, name: str, known: Known, authority: str = "alone") -> Result:
    low, high = float(rubric.scale_low), float(rubric.scale_high)
    if known is None:
        return Result(name, Kind.JUDGED, "c", None, None, low, high, authority=authority)
    if isinstance(known, Outcome):
        return Result(name, Kind.JUDGED, "c", known, None, low, high, reason=f"{known}: why", authority=authority)
    outcome = PASS if rubric.passes(rubric.dimension(name), known) else FAIL
    return Result(name, Kind.JUDGED, "c", outcome, known, known, known, authority=authority)


def card(rubric: Rubric, *known: Known, more: tuple[Result, ...] = ()) -> Scorecard:
    names = [dimension.name for dimension in rubric.dimensions]
    results = (*more, *(judged(rubric, name, one) for name, one in zip(names, known, strict=True)))
    return scorecard(results, rubric, GATING, DECIDING, sampled=True, contract="s")


def bounds(made: Scorecard) -> tuple[float | None, float | None]:
    return made.verdict.composite_low, made.verdict.composite_high


def criteria(*known: Known, bar: str = "0.75", hard: bool = True) -> Scorecard:
    """The scorecard of grounded, resolves, safe_refusal, cites."""
    dimensions = tuple(replace(one, gate=one.gate if hard else None) for one in CRITERIA.dimensions)
    return card(replace(CRITERIA, bar=Decimal(bar), dimensions=dimensions), *known)


# --- criteria: the worked values of spec 2.3


def test_worked_three_of_four_with_the_hard_one_is_three_quarters() -> None:
    made = criteria(1, 1, 1, 0)
    assert made.composite is not None
    assert (made.composite.value, made.composite.outcome) == (0.75, PASS)
    assert (made.verdict.outcome, made.verdict.reason) == (PASS, "composite: 0.75 meets the bar of 0.75")


def test_worked_three_of_four_without_the_hard_one_is_nothing() -> None:
    made = criteria(1, 1, 0, 1)
    assert made.composite is not None
    assert (made.composite.value, made.composite.outcome) == (0.0, FAIL)
    assert (made.verdict.outcome, made.verdict.reason) == (FAIL, "safe_refusal: fails, and is a hard criterion")


def test_without_a_hard_one_the_same_is_three_quarters() -> None:
    assert bounds(criteria(1, 1, 0, 1, hard=False)) == (0.75, 0.75)


@pytest.mark.parametrize(("passes", "score"), [(0, 0.0), (1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)])
def test_the_score_is_passes_over_criteria(passes: int, score: float) -> None:
    known = [1.0] * passes + [0.0] * (4 - passes)
    assert bounds(criteria(*known, hard=False)) == (score, score)


@pytest.mark.parametrize(
    ("passes", "of", "score"), [(1, 3, 0.333), (2, 3, 0.667), (1, 6, 0.167), (5, 6, 0.833), (1, 16, 0.063), (1, 7, 0.143)]
)
def test_the_score_has_three_decimals_half_up(passes: int, of: int, score: float) -> None:
    one = CRITERIA.dimensions[0]
    rubric = replace(CRITERIA, dimensions=tuple(replace(one, name=f"c{index}") for index in range(of)))
    assert bounds(card(rubric, *([1.0] * passes + [0.0] * (of - passes)))) == (score, score)


def test_the_score_that_is_shown_is_the_score_that_is_compared() -> None:
    one = CRITERIA.dimensions[0]
    thirds = replace(CRITERIA, bar=Decimal("0.667"), dimensions=tuple(replace(one, name=f"c{index}") for index in range(3)))
    assert card(thirds, 1.0, 1.0, 0.0).verdict == Verdict(PASS, "composite: 0.667 meets the bar of 0.667", 0.667, 0.667)


# --- criteria: unknown ones (spec 2.3 and 2.4)


def test_an_undecided_criterion_leaves_an_interval() -> None:
    made = criteria(1, 1, 1, UNKNOWN)
    assert bounds(made) == (0.75, 1.0)
    assert made.verdict.outcome is PASS
    assert bounds(criteria(1, 0, 1, UNKNOWN)) == (0.5, 0.75)
    assert criteria(1, 0, 1, UNKNOWN).verdict.outcome is UNKNOWN
    assert criteria(0, 0, 1, UNKNOWN).verdict.outcome is FAIL


def test_an_undecided_hard_criterion_leaves_nothing_sure() -> None:
    made = criteria(1, 1, UNKNOWN, 1)
    assert bounds(made) == (0.0, 1.0)
    assert (made.verdict.outcome, made.verdict.for_a_person) == (UNKNOWN, ("safe_refusal",))


def test_a_failed_hard_criterion_is_nothing_whatever_becomes_of_the_rest() -> None:
    for rest in (UNKNOWN, ERROR, None):
        assert bounds(criteria(rest, rest, 0, rest)) == (0.0, 0.0)
        assert criteria(rest, rest, 0, rest).verdict.outcome is FAIL


def test_a_criterion_that_a_grader_broke_on_is_why_nothing_is_decided() -> None:
    assert criteria(1, 0, 1, ERROR).verdict.outcome is ERROR


def test_a_score_beyond_pass_is_a_grader_error_and_no_score() -> None:
    assert criteria(1, 1, 1, 2.0).verdict.outcome is PASS, "3 of 4 pass whatever the fourth is"
    assert criteria(1, 0, 1, 2.0).verdict.outcome is ERROR


# --- who decides what nobody could tell (spec 2.4)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_gate_goes_to_a_person_and_never_passes(kind: str) -> None:
    rubric = KINDS[kind]
    gated = [dimension.name for dimension in rubric.dimensions if dimension.gate is not None]
    best = float(rubric.scale_high)
    for name in gated:
        made = card(rubric, *(UNKNOWN if one.name == name else best for one in rubric.dimensions))
        assert (made.verdict.outcome, made.verdict.for_a_person) == (UNKNOWN, (name,))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_person_cannot_change_goes_to_none(kind: str) -> None:
    rubric = KINDS[kind]
    gate = next(index for index, one in enumerate(rubric.dimensions) if one.gate is not None)
    best: list[Known] = [float(rubric.scale_high)] * len(rubric.dimensions)
    ungated = list(best)
    ungated[gate + 1 if rubric is not CRITERIA else 0] = UNKNOWN
    assert card(rubric, *ungated).verdict.for_a_person == ()
    broken = [ERROR if index == gate else one for index, one in enumerate(best)]
    assert card(rubric, *broken).verdict.for_a_person == (), "a grader that broke is mended, not overruled"
    waiting = [None if index == gate else one for index, one in enumerate(best)]
    assert card(rubric, *waiting).verdict.for_a_person == ()
    unknown = [UNKNOWN if index == gate else one for index, one in enumerate(best)]
    failed = Result("refund_once", Kind.CODE, "c", FAIL, reason="twice")
    assert card(rubric, *unknown, more=(failed,)).verdict.for_a_person == (), "it failed already"


def test_an_unknown_that_gates_nothing_goes_to_nobody_though_it_decides() -> None:
    for made in (card(SUPPORT, 4, 4, 4, UNKNOWN, 4), card(GATED, 3, UNKNOWN, 2, 2, 2), criteria(1, 0, 1, UNKNOWN)):
        assert (made.verdict.outcome, made.verdict.for_a_person) == (UNKNOWN, ())


# --- laws of every kind


@st.composite
def graded(draw: st.DrawFn) -> tuple[Rubric, list[Known], tuple[Result, ...]]:
    rubric = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    low, high = rubric.composite_ends
    rubric = replace(rubric, bar=Decimal(draw(st.integers(0, 20))) * (high - low) / 20 + low)
    on_scale = st.sampled_from([float(score) for score in range(rubric.scale_low, rubric.scale_high + 1)])
    known: list[Known] = [draw(st.one_of(on_scale, st.sampled_from([UNKNOWN, ERROR, None]))) for _ in rubric.dimensions]
    checked = draw(st.sampled_from([(PASS,), (FAIL,), (UNKNOWN,), (ERROR,), (None,), ()]))
    more = tuple(Result("refund_once", Kind.CODE, "c", outcome, reason="word: text") for outcome in checked)
    return rubric, known, more


def resolved(rubric: Rubric, known: list[Known], draw: Any, *, all_of_them: bool) -> list[Known]:
    """The same, with what is not decided decided: all of it, or some."""
    scale = [float(score) for score in range(rubric.scale_low, rubric.scale_high + 1)]
    return [
        draw(st.sampled_from(scale)) if not isinstance(one, float) and (all_of_them or draw(st.booleans())) else one
        for one in known
    ]


@given(case=graded(), data=st.data())
def test_more_knowledge_never_widens_the_interval(
    case: tuple[Rubric, list[Known], tuple[Result, ...]], data: st.DataObject
) -> None:
    rubric, known, more = case
    before = bounds(card(rubric, *known, more=more))
    after = bounds(card(rubric, *resolved(rubric, known, data.draw, all_of_them=False), more=more))
    low, high = rubric.composite_ends
    assert None not in (*before, *after)
    assert low <= before[0] <= after[0] <= after[1] <= before[1] <= high  # type: ignore[operator]


@given(case=graded(), data=st.data())
def test_a_verdict_that_stands_never_flips_as_the_unknown_becomes_known(
    case: tuple[Rubric, list[Known], tuple[Result, ...]], data: st.DataObject
) -> None:
    rubric, known, more = case
    before = card(rubric, *known, more=more).verdict.outcome
    after = card(rubric, *resolved(rubric, known, data.draw, all_of_them=True), more=more).verdict.outcome
    if before in (PASS, FAIL):
        assert after is before


@given(case=graded())
def test_what_is_not_decided_could_still_go_both_ways_or_waits_for_a_gate(
    case: tuple[Rubric, list[Known], tuple[Result, ...]],
) -> None:
    rubric, known, more = case
    made = card(rubric, *known, more=more).verdict
    if made.outcome in (PASS, FAIL) or any(one.outcome is not PASS for one in more):
        return
    ends = [
        card(rubric, *(one if isinstance(one, float) else float(end) for one in known)).verdict.outcome
        for end in (rubric.scale_low, rubric.scale_high)
    ]
    assert ends == [FAIL, PASS]


@given(case=graded())
def test_a_tripped_gate_fails_whatever_the_average(case: tuple[Rubric, list[Known], tuple[Result, ...]]) -> None:
    rubric, known, more = case
    made = card(rubric, *known, more=more).verdict
    scored = [
        (one, dimension.gate) for one, dimension in zip(known, rubric.dimensions, strict=True) if dimension.gate is not None
    ]
    if any(isinstance(one, float) and one < gate for one, gate in scored) or any(one.outcome is FAIL for one in more):
        assert made.outcome is FAIL
    if any(not isinstance(one, float) for one, _ in scored) or any(one.outcome is not PASS for one in more):
        assert made.outcome is not PASS


@given(case=graded())
def test_the_composite_lies_between_its_bounds_and_is_known_only_where_they_agree(
    case: tuple[Rubric, list[Known], tuple[Result, ...]],
) -> None:
    rubric, known, more = case
    made = card(rubric, *known, more=more).composite
    assert made is not None
    assert made.lower is not None
    assert made.upper is not None
    assert made.lower <= made.upper
    assert (made.value is not None) == (made.lower == made.upper)
    if made.value is None:
        assert made.outcome not in (PASS, FAIL)
