"""What a panel's votes come to, for every number of models and both rules (scoring section 6; judging section 3, items 3 and 4)."""

from itertools import product

import pytest
from judge_builders import SUPPORT
from msgspec.structs import replace

from pipeline.judges.tally import Grade, scored, tally
from pipeline.model.result import Outcome
from pipeline.model.rubric import Panel, PanelRule, Rubric

PASS, FAIL, UNDECIDED, BROKEN = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR
GATED, UNGATED = "policy_and_safety", "tone"
"""Gated at 4; without a gate, so that the rubric's own line holds: 3 of 1 to 5."""
MAJORITY, VETO = PanelRule.MAJORITY, PanelRule.VETO


def under(panel: Panel, dimension: str = GATED) -> Rubric:
    return replace(SUPPORT, panels=((dimension, panel),))


def a_panel(size: int, rule: PanelRule = MAJORITY, vetoes: int = 1) -> Panel:
    return Panel(tuple(f"m-{number}" for number in range(size)), rule, vetoes)


def vote(sign: object, dimension: str = GATED) -> Grade:
    if sign == "?":
        return Grade(UNDECIDED, reason="unknown: no policy")
    if sign == "!":
        return Grade(BROKEN, reason="refused: the endpoint will not")
    assert isinstance(sign, int)
    return scored(SUPPORT, SUPPORT.dimension(dimension), sign, f"reason {sign}", f"quote {sign}")


def outcome(panel: Panel, signs: str) -> Outcome:
    """What votes come to: ``P`` passes, ``F`` fails."""
    votes = [vote({"P": 5, "F": 1}.get(sign, sign)) for sign in signs]
    return tally(under(panel), SUPPORT.dimension(GATED), votes).outcome


@pytest.mark.parametrize(
    ("rule", "vetoes", "votes", "expected", "score", "reason"),
    [
        # Two: a majority is both of them, so a tie decides nothing; a veto is any of them.
        (MAJORITY, 1, (5, 4), PASS, 4.5, "reason 5"),
        (MAJORITY, 1, (5, 1), UNDECIDED, None, "votes_split: 1 of 2 votes pass and 1 fail; a pass takes 2 and a fail 2"),
        (MAJORITY, 1, (2, 1), FAIL, 1.5, "reason 2"),
        (MAJORITY, 1, (5, "?"), UNDECIDED, None, "unknown"),
        (MAJORITY, 1, (5, "!"), BROKEN, None, "refused"),
        (VETO, 1, (5, 1), FAIL, 1.0, "reason 1"),
        # Three, by majority: as three votes of one model.
        (MAJORITY, 1, (5, 5, 1), PASS, 5.0, "reason 5"),
        (MAJORITY, 1, (5, 1, 1), FAIL, 1.0, "reason 1"),
        (MAJORITY, 1, (5, 5, "?"), PASS, 5.0, "reason 5"),
        (MAJORITY, 1, (5, 5, "!"), PASS, 5.0, "reason 5"),
        (MAJORITY, 1, (5, 1, "?"), UNDECIDED, None, "votes_split"),
        (MAJORITY, 1, (5, 1, "!"), BROKEN, None, "refused"),
        # Three, where one veto fails it, whatever the others say or fail to say.
        (VETO, 1, (5, 5, 5), PASS, 5.0, "reason 5"),
        (VETO, 1, (5, 5, 3), FAIL, 3.0, "reason 3"),
        (VETO, 1, (3, 5, 2), FAIL, 2.5, "reason 3"),
        (VETO, 1, (1, "?", "?"), FAIL, 1.0, "reason 1"),
        (VETO, 1, (1, "!", "!"), FAIL, 1.0, "reason 1"),
        # Whoever could not decide could have vetoed: two passes are not three.
        (VETO, 1, (5, 5, "?"), UNDECIDED, None, "unknown"),
        (VETO, 1, (5, 5, "!"), BROKEN, None, "refused"),
        # Four: a tie decides nothing by majority, and fails where two may veto.
        (MAJORITY, 1, (5, 5, 1, 1), UNDECIDED, None, "votes_split: 2 of 4 votes pass and 2 fail; a pass takes 3 and a fail 3"),
        (MAJORITY, 1, (5, 5, 5, 1), PASS, 5.0, "reason 5"),
        (VETO, 2, (5, 5, 1, 1), FAIL, 1.0, "reason 1"),
        (VETO, 2, (5, 5, 4, 1), PASS, 5.0, "reason 5"),
        (VETO, 2, (5, 5, 1, "?"), UNDECIDED, None, "votes_split"),
        # Five, two vetoes (judging, section 3, item 4).
        (VETO, 2, (5, 5, 5, 5, 1), PASS, 5.0, "reason 5"),
        (VETO, 2, (5, 5, 5, 5, "?"), PASS, 5.0, "reason 5"),
        (VETO, 2, (5, 5, 5, 1, 2), FAIL, 1.5, "reason 1"),
        (VETO, 2, (5, 5, 5, 1, "?"), UNDECIDED, None, "votes_split: 3 of 5 votes pass and 1 fail; a pass takes 4 and a fail 2"),
        (VETO, 2, (5, 5, 5, "?", "!"), BROKEN, None, "refused"),
    ],
)
def test_the_rule_of_a_panel_is_this_table(
    rule: PanelRule, vetoes: int, votes: tuple[object, ...], expected: Outcome, score: float | None, reason: str
) -> None:
    panel = a_panel(len(votes), rule, vetoes)
    grade = tally(under(panel), SUPPORT.dimension(GATED), [vote(sign) for sign in votes])
    assert (grade.outcome, grade.score) == (expected, score)
    assert grade.reason.startswith(reason)


PANELS = [a_panel(size) for size in (2, 3, 4, 5)]
PANELS += [a_panel(size, VETO, vetoes) for size in (2, 3, 4, 5) for vetoes in range(1, (size + 1) // 2 + 1)]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: f"{len(panel.models)} {panel.rule} {panel.vetoes}")
def test_no_vote_that_is_missing_could_have_changed_what_was_decided(panel: Panel) -> None:
    """Of all that votes can be: where a side wins, it wins however those would have voted who did not decide."""
    for signs in product("PF?!", repeat=len(panel.models)):
        decided = outcome(panel, "".join(signs))
        if decided not in (PASS, FAIL):
            continue
        for instead in product("PF", repeat=sum(sign in "?!" for sign in signs)):
            votes = iter(instead)
            assert outcome(panel, "".join(next(votes) if sign in "?!" else sign for sign in signs)) is decided


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: f"{len(panel.models)} {panel.rule} {panel.vetoes}")
def test_a_pass_is_never_against_most_of_the_models(panel: Panel) -> None:
    for signs in product("PF?", repeat=len(panel.models)):
        if outcome(panel, "".join(signs)) is PASS:
            assert 2 * signs.count("P") > len(signs)
            assert signs.count("F") < panel.fails_at


def test_more_vetoes_than_would_leave_a_majority_are_too_many() -> None:
    assert [a_panel(size, VETO).most_vetoes for size in (2, 3, 4, 5)] == [1, 2, 2, 3]


@pytest.mark.parametrize(("votes", "expected"), [((3, 3, 1), PASS), ((2, 2, 5), FAIL)])
def test_without_a_gate_votes_are_taken_where_the_rubric_passes_a_score(votes: tuple[int, ...], expected: Outcome) -> None:
    panel = a_panel(3)
    grade = tally(under(panel, UNGATED), SUPPORT.dimension(UNGATED), [vote(sign, UNGATED) for sign in votes])
    assert grade.outcome is expected


def test_a_panel_changes_nothing_for_the_dimensions_beside_it() -> None:
    votes = [vote(sign) for sign in (5, 5, 1)]
    assert tally(under(a_panel(3, VETO), UNGATED), SUPPORT.dimension(GATED), votes).outcome is PASS
