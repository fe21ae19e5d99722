"""Two runs compared by composite: exact, and decided only where nothing unknown could turn it (spec sections 2.2 and 2.4)."""

import pytest
from grades_builders import Known, a_check, stored
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.config.rubrics import load
from pipeline.errors import ConfigurationError
from pipeline.model.comparison import Answer, Comparison
from pipeline.model.result import Outcome
from pipeline.model.risk import Risk, at_risk
from pipeline.model.rubric import Rubric
from pipeline.stages.compare import compare
from pipeline.stages.stored_grades import StoredGrades

FAIL, UNKNOWN = Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE
SUPPORT, AGENT_OUTPUT, CRITERIA = load("support"), load("agent-output"), load("criteria")


def compared(first: tuple[Known, ...], second: tuple[Known, ...], rubric: Rubric = SUPPORT) -> Comparison:
    return compare(stored(rubric, *first, run_id="aa" * 16), stored(rubric, *second, run_id="bb" * 16))


@pytest.mark.parametrize(
    ("first", "second", "answer", "low", "high"),
    [
        ((4, 5, 4, 5, 5), (5, 5, 4, 5, 5), Answer.BETTER, 8.75, 8.75),
        ((5, 5, 4, 5, 5), (4, 5, 4, 5, 5), Answer.WORSE, -8.75, -8.75),
        ((4, 5, 2, 5, 5), (4, 5, 2, 5, 5), Answer.EQUAL, 0.0, 0.0),
        # (4, 5, 2, 5, 5) and (5, 4, 4, 3, 4) are both exactly 80: 0.35·4+0.25·5+0.15·2+0.15·5+0.10·5 = 0.35·5+0.25·4+0.15·4+0.15·3+0.10·4.
        ((4, 5, 2, 5, 5), (5, 4, 4, 3, 4), Answer.EQUAL, 0.0, 0.0),
        # The unknown format is worth 0.15·4/4·100 = 15 points: 85 to 100 against 80.
        ((4, 5, 2, 5, 5), (5, 5, 5, UNKNOWN, 5), Answer.BETTER, 5.0, 20.0),
        ((5, 5, 5, UNKNOWN, 5), (4, 5, 2, 5, 5), Answer.WORSE, -20.0, -5.0),
        # 63.75 to 78.75 against 75.
        ((4, 4, 4, 4, 4), (4, 4, 4, UNKNOWN, 4), Answer.NOT_DECIDED, -11.25, 3.75),
        # Unknown in both: the unknown of one says nothing of the other's.
        ((4, 4, 4, UNKNOWN, 4), (4, 4, 4, UNKNOWN, 4), Answer.NOT_DECIDED, -15.0, 15.0),
        # It may just reach 85: better or equal is not better.
        ((5, 5, 5, 1, 5), (5, 5, 5, UNKNOWN, 5), Answer.NOT_DECIDED, 0.0, 15.0),
    ],
)
def test_the_second_is_better_worse_equal_or_not_decided(
    first: tuple[Known, ...], second: tuple[Known, ...], answer: Answer, low: float, high: float
) -> None:
    found = compared(first, second).composite
    assert (found.answer, found.low, found.high) == (answer, low, high)


def test_each_dimension_is_compared_by_itself() -> None:
    found = compared((5, 3, 4, UNKNOWN, 5), (5, 5, 2, 4, UNKNOWN))
    assert {one.name: (one.answer, one.low, one.high) for one in found.dimensions} == {
        "correctness": (Answer.EQUAL, 0.0, 0.0),
        "completeness": (Answer.BETTER, 2.0, 2.0),
        "policy_and_safety": (Answer.WORSE, -2.0, -2.0),
        "format": (Answer.NOT_DECIDED, -1.0, 3.0),
        "tone": (Answer.NOT_DECIDED, -4.0, 0.0),
    }


def test_composites_of_other_kinds_are_compared_on_their_own_scale() -> None:
    assert compared((5, 4, 4, 3, 3), (5, 4, 4, 3, 4), AGENT_OUTPUT).composite.low == pytest.approx(0.1)
    hard = compared((1, 1, 0, 1), (1, 0, 1, 0), CRITERIA).composite
    assert (hard.answer, hard.low) == (Answer.BETTER, 0.5), "a failed hard criterion makes the first one 0"


def test_both_sides_are_told_with_their_verdicts() -> None:
    found = compared((5, 5, 2, 5, 5), (4, 4, 4, UNKNOWN, 4))
    assert (found.first.run_id, found.first.composite_low, found.first.outcome) == ("aa" * 16, 88.75, FAIL)
    assert (found.second.composite_low, found.second.composite_high, found.second.outcome) == (63.75, 78.75, UNKNOWN)
    assert found.note == "the first failed, whatever the composite"


def test_other_contracts_are_refused_unless_asked_for_and_then_named() -> None:
    first = stored(SUPPORT, 4, 5, 4, 5, 5)
    second = stored(SUPPORT, 5, 5, 4, 5, 5, checks=(a_check("once", Outcome.PASS),), gating=frozenset({"once"}))
    with pytest.raises(ConfigurationError) as refused:
        compare(first, second)
    assert "check_definition.gates.once: nothing and c-once" in str(refused.value)
    assert "ask with --across-contracts" in str(refused.value)
    found = compare(first, second, across_contracts=True)
    assert (found.composite.answer, found.contracts_differ) == (
        Answer.BETTER,
        ("check_definition.gates.once: nothing and c-once",),
    )


def test_another_rubric_is_refused_and_compared_only_on_the_same_scale() -> None:
    heavier = replace(SUPPORT, name="mine")
    with pytest.raises(ConfigurationError, match=r"rubric: support and mine; .*rubric_hash"):
        compare(stored(SUPPORT, 4, 5, 4, 5, 5), stored(heavier, 4, 5, 4, 5, 5))
    assert (
        compare(stored(SUPPORT, 4, 5, 4, 5, 5), stored(heavier, 4, 5, 4, 5, 5), across_contracts=True).composite.answer
        is Answer.EQUAL
    )
    with pytest.raises(ConfigurationError) as refused:
        compare(stored(SUPPORT, 4, 5, 4, 5, 5), stored(AGENT_OUTPUT, 4, 5, 4, 5, 5), across_contracts=True)
    assert str(refused.value) == (
        "support adds up to 0 to 100 (percent) and agent-output to 1 to 5 (mean): their composites cannot be compared"
    )


def test_another_risk_is_another_contract() -> None:
    with pytest.raises(ConfigurationError, match=r"check_definition\.risk: nothing and moves_money"):
        compare(stored(SUPPORT, 5, 5, 5, 5, 5), stored(at_risk(SUPPORT, Risk.MOVES_MONEY), 5, 5, 5, 5, 5, risk="moves_money"))


def test_contracts_that_were_not_stored_are_known_by_their_hash() -> None:
    first, second = (replace(stored(SUPPORT, 5, 5, 5, 5, 5), contract=None) for _ in range(2))
    assert compare(first, second).contracts_differ == ()


@pytest.mark.parametrize(
    ("grades", "why"),
    [
        (stored(SUPPORT, sampled=False), "nobody was asked to judge it"),
        (stored(None), "nobody was asked to judge it"),
        (replace(stored(SUPPORT, 5, 5, 5, 5, 5), rubric=None), "its rubric is not stored"),
    ],
    ids=["unsampled", "no rubric", "rubric not stored"],
)
def test_what_has_no_composite_cannot_be_compared(grades: StoredGrades, why: str) -> None:
    for pair in ((grades, stored(SUPPORT, 5, 5, 5, 5, 5)), (stored(SUPPORT, 5, 5, 5, 5, 5), grades)):
        with pytest.raises(ConfigurationError, match=f"has no composite to compare: {why}"):
            compare(*pair)


SCORES = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, UNKNOWN]), min_size=5, max_size=5).map(tuple)
OPPOSITE = {
    Answer.BETTER: Answer.WORSE,
    Answer.WORSE: Answer.BETTER,
    Answer.EQUAL: Answer.EQUAL,
    Answer.NOT_DECIDED: Answer.NOT_DECIDED,
}


@given(first=SCORES, second=SCORES)
def test_the_other_way_round_it_is_the_opposite(first: tuple[Known, ...], second: tuple[Known, ...]) -> None:
    one, other = compared(first, second).composite, compared(second, first).composite
    assert (OPPOSITE[one.answer], -one.high, -one.low) == (other.answer, other.low, other.high)


@given(first=SCORES, second=SCORES, data=st.data())
def test_what_was_decided_stays_so_as_the_unknown_becomes_known(
    first: tuple[Known, ...], second: tuple[Known, ...], data: st.DataObject
) -> None:
    def resolved(known: tuple[Known, ...]) -> tuple[Known, ...]:
        return tuple(one if isinstance(one, float) else data.draw(st.sampled_from([1.0, 3.0, 5.0])) for one in known)

    before, after = compared(first, second).composite, compared(resolved(first), resolved(second)).composite
    assert before.low <= after.low <= after.high <= before.high
    assert before.answer in (Answer.NOT_DECIDED, after.answer)
