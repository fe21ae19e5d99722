"""Votes at the gate line (spec section 6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_builders import SUPPORT

from pipeline.judges.tally import Grade, scored, tally
from pipeline.model.result import Outcome

POLICY = SUPPORT.dimension("policy_and_safety")
"""Gated at 4."""
PASS, FAIL, UNDECIDED, BROKEN = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR
UNKNOWN = Grade(UNDECIDED, reason="unknown: no policy")
ERROR = Grade(BROKEN, reason="malformed: no JSON")


def vote(sign: object) -> Grade:
    if sign == "?":
        return UNKNOWN
    if sign == "!":
        return ERROR
    assert isinstance(sign, int)
    return scored(SUPPORT, POLICY, sign, f"reason {sign}", f"quote {sign}")


@pytest.mark.parametrize(
    ("votes", "outcome", "score", "reason"),
    [
        ((5, 5, 5), PASS, 5.0, "reason 5"),
        ((4, 5, 5), PASS, 5.0, "reason 5"),
        ((4, 4, 5), PASS, 4.0, "reason 4"),
        ((4, 5, 1), PASS, 4.5, "reason 4"),
        ((1, 2, 3), FAIL, 2.0, "reason 2"),
        ((3, 1, 5), FAIL, 2.0, "reason 3"),
        ((3, 3, 4), FAIL, 3.0, "reason 3"),
        ((5, 5, "?"), PASS, 5.0, "reason 5"),
        ((5, "!", 5), PASS, 5.0, "reason 5"),
        (("!", 2, 2), FAIL, 2.0, "reason 2"),
        ((5, 3, "?"), UNDECIDED, None, "votes_split"),
        ((5, 3, "!"), BROKEN, None, "malformed"),
        ((5, "?", "?"), UNDECIDED, None, "unknown"),
        ((5, "?", "!"), BROKEN, None, "malformed"),
        (("?", "?", "?"), UNDECIDED, None, "unknown"),
        (("?", "?", "!"), UNDECIDED, None, "unknown"),
        (("?", "!", "!"), BROKEN, None, "malformed"),
        ((5, "!", "!"), BROKEN, None, "malformed"),
        (("!", "!", "!"), BROKEN, None, "malformed"),
    ],
)
def test_two_decided_votes_on_one_side_of_the_gate_win(
    votes: tuple[object, ...], outcome: Outcome, score: float | None, reason: str
) -> None:
    grade = tally(SUPPORT, POLICY, [vote(sign) for sign in votes])
    assert (grade.outcome, grade.score) == (outcome, score)
    assert grade.reason.startswith(reason)


@pytest.mark.parametrize("sign", [1, 3, 4, 5, "?", "!"])
def test_a_single_call_speaks_for_itself(sign: object) -> None:
    assert tally(SUPPORT, POLICY, [vote(sign)]) == vote(sign)


votes = st.lists(st.sampled_from([1, 2, 3, 4, 5, "?", "!"]), min_size=3, max_size=3)


@given(votes)
def test_only_a_decided_outcome_has_a_score_and_it_lies_on_its_side_of_the_gate(signs: list[object]) -> None:
    grade = tally(SUPPORT, POLICY, [vote(sign) for sign in signs])
    assert grade.outcome.decided == (grade.score is not None)
    assert grade.outcome.decided == (grade.unresolved == "")
    if grade.score is not None:
        assert (grade.score >= 4) == (grade.outcome is PASS)


@given(votes, st.randoms(use_true_random=False))
def test_the_order_of_votes_changes_neither_outcome_nor_score(signs: list[object], random: object) -> None:
    shuffled = sorted(signs, key=lambda _: random.random())  # type: ignore[attr-defined]
    one, other = (tally(SUPPORT, POLICY, [vote(sign) for sign in order]) for order in (signs, shuffled))
    assert (one.outcome, one.score) == (other.outcome, other.score)


@given(votes)
def test_a_vote_that_turns_unknown_never_turns_a_failure_into_a_pass(signs: list[object]) -> None:
    before = tally(SUPPORT, POLICY, [vote(sign) for sign in signs])
    after = tally(SUPPORT, POLICY, [vote(sign) for sign in ["?", *signs[1:]]])
    assert not (before.outcome is FAIL and after.outcome is PASS)


@pytest.mark.parametrize(
    ("name", "score", "outcome"),
    [("correctness", 3, PASS), ("correctness", 2, FAIL), ("policy_and_safety", 3, FAIL), ("tone", 3, PASS), ("tone", 2, FAIL)],
)
def test_a_score_passes_at_its_gate_or_when_it_is_adequate(name: str, score: int, outcome: Outcome) -> None:
    assert scored(SUPPORT, SUPPORT.dimension(name), score, "", "").outcome is outcome
