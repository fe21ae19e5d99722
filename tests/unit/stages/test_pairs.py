"""Pairs: both orders, what many come to, and recorded verdicts of real judges with the numbers that were published of them."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llmbar import ADVERSARIAL, adversarial, lines, pairs, table

from pipeline.model.pairwise import BothOrders, PairOutcome, Place, Preference
from pipeline.stages.pairs import held_against, tally_pairs
from pipeline.stats.sign import sign_test

A, B, TIE, UNKNOWN, ERROR = Preference.A, Preference.B, Preference.TIE, Preference.UNKNOWN, Preference.GRADER_ERROR
PLAIN, RULES = "Vanilla_NoRules", "Vanilla"
PAIRS = st.builds(BothOrders, st.sampled_from(Preference), st.sampled_from(Preference))


@pytest.mark.parametrize(
    ("forward", "swapped", "outcome", "agree", "favoured"),
    [
        (A, A, PairOutcome.A, True, None),
        (B, B, PairOutcome.B, True, None),
        (TIE, TIE, PairOutcome.TIE, True, None),
        # A is first in the first order and B in the second: whoever stands first is preferred.
        (A, B, PairOutcome.CONFLICT, False, Place.FIRST),
        (B, A, PairOutcome.CONFLICT, False, Place.SECOND),
        (A, TIE, PairOutcome.CONFLICT, False, Place.FIRST),
        (TIE, A, PairOutcome.CONFLICT, False, Place.SECOND),
        (B, TIE, PairOutcome.CONFLICT, False, Place.SECOND),
        (TIE, B, PairOutcome.CONFLICT, False, Place.FIRST),
        (A, UNKNOWN, PairOutcome.UNKNOWN, None, None),
        (ERROR, B, PairOutcome.GRADER_ERROR, None, None),
        (ERROR, UNKNOWN, PairOutcome.UNKNOWN, None, None),
        (ERROR, ERROR, PairOutcome.GRADER_ERROR, None, None),
    ],
)
def test_a_win_and_a_tie_count_only_in_both_orders(
    forward: Preference, swapped: Preference, outcome: PairOutcome, agree: bool | None, favoured: Place | None
) -> None:
    pair = BothOrders(forward, swapped)
    assert (pair.outcome, pair.orders_agree, pair.favoured) == (outcome, agree, favoured)


@given(pair=PAIRS)
def test_whoever_is_called_a_the_same_wins(pair: BothOrders) -> None:
    """Exchanging the runs exchanges the orders too; the places stay."""
    other = BothOrders(pair.swapped.other, pair.forward.other)
    exchanged = {PairOutcome.A: PairOutcome.B, PairOutcome.B: PairOutcome.A}.get(pair.outcome, pair.outcome)
    assert (other.outcome, other.orders_agree, other.favoured) == (exchanged, pair.orders_agree, pair.favoured)


def test_nothing_that_is_undecided_in_one_order_is_ever_a_win() -> None:
    for forward, swapped in product(Preference, Preference):
        outcome = BothOrders(forward, swapped).outcome
        assert outcome.decided == (forward is swapped and forward.decided)


def test_what_ten_pairs_come_to() -> None:
    said = [(A, A)] * 3 + [(B, B)] + [(TIE, TIE)] * 2 + [(A, B)] * 2 + [(UNKNOWN, A), (A, ERROR)]
    found = tally_pairs(BothOrders(*one) for one in said)
    assert (found.pairs, found.a, found.b, found.ties) == (10, 3, 1, 2)
    assert (found.conflicts, found.unknown, found.grader_errors) == (2, 1, 1)
    assert found.a_of_won is not None
    assert (found.a_of_won.count, found.a_of_won.of, found.a_of_won.share) == (3, 4, 0.75)
    # Four undecided beside four that were won: all for B, or all for A.
    assert (found.if_undecided_b, found.if_undecided_a) == (3 / 8, 7 / 8)
    assert found.place.conflicts is not None
    assert (found.place.conflicts.count, found.place.conflicts.of) == (2, 8)
    assert (found.place.first, found.place.second, found.place.p) == (2, 0, 0.5)


def test_of_nothing_there_is_no_share() -> None:
    found = tally_pairs([BothOrders(UNKNOWN, UNKNOWN), BothOrders(ERROR, A)])
    assert (found.a_of_won, found.place.conflicts, found.place.p) == (None, None, None)
    assert (found.if_undecided_b, found.if_undecided_a) == (0.0, 1.0)
    assert tally_pairs([]).if_undecided_a is None


@given(said=st.lists(PAIRS, max_size=30))
def test_every_pair_is_in_one_place_and_the_share_is_within_its_bounds(said: list[BothOrders]) -> None:
    found = tally_pairs(said)
    assert found.pairs == found.a + found.b + found.ties + found.conflicts + found.unknown + found.grader_errors
    assert found.conflicts == found.place.first + found.place.second
    if found.a_of_won is not None:
        assert found.if_undecided_b is not None
        assert found.if_undecided_a is not None
        assert found.if_undecided_b <= found.a_of_won.share <= found.if_undecided_a
        assert found.a_of_won.low <= found.a_of_won.share <= found.a_of_won.high


def test_agreement_counts_single_replies_and_pairs_apart() -> None:
    said = [(BothOrders(A, A), A), (BothOrders(A, B), A), (BothOrders(ERROR, ERROR), B), (BothOrders(B, B), A)]
    found = held_against(said)
    assert (found.pairs, found.each_order, found.alike) == (4, 3 / 8, 3 / 4)
    assert (found.coverage.count, found.coverage.of) == (2, 4)
    assert found.accuracy is not None
    assert (found.accuracy.count, found.accuracy.of) == (1, 2)
    undecided = held_against([(BothOrders(UNKNOWN, A), A)])
    assert (undecided.accuracy, undecided.each_order, undecided.coverage.share) == (None, 0.5, 0.0)
    for wrong in ([], [(BothOrders(A, A), UNKNOWN)]):
        with pytest.raises(ValueError, match="people"):
            held_against(wrong)


@pytest.mark.parametrize(
    ("one", "other", "p"),
    [
        (1, 0, 1.0),
        (5, 5, 1.0),
        (2, 0, 0.5),
        (9, 1, 22 / 1024),  # 2 × (1 + 10) of 2^10
        (18, 2, 422 / 2**20),  # 2 × (1 + 20 + 190) of 2^20
        (0, 54, 2 / 2**54),
        (0, 0, None),
    ],
)
def test_the_sign_test_is_exact_and_two_sided(one: int, other: int, p: float | None) -> None:
    assert sign_test(one, other) == sign_test(other, one) == p


def test_there_is_no_negative_count() -> None:
    with pytest.raises(ValueError, match="no counts"):
        sign_test(-1, 3)


def test_every_published_cell_of_llmbar_comes_out() -> None:
    rows = table()
    assert len(rows) == 349
    assert [(row.subset, row.judge) for row in rows if not row.is_right] == []
    assert len({row.judge for row in rows}) == 65
    assert sum(len(held) for (_, judge), held in pairs().items() if judge == ("GPT-4", PLAIN)) == 885


@pytest.mark.parametrize(
    ("prompt", "mean"),
    [
        (PLAIN, 73.1),
        (RULES, 80.8),
        ("CoT", 76.6),
        ("Metrics", 82.0),
        ("Reference", 82.6),
        ("Metrics_Reference", 82.8),
        ("Swap", 80.1),
    ],
)
def test_adversarial_means_of_gpt_4_are_the_published_ones(prompt: str, mean: float) -> None:
    assert adversarial(table(), ("GPT-4", prompt)) == pytest.approx(mean, abs=0.05)


def test_the_best_adversarial_mean_of_gpt_4_to_two_decimals() -> None:
    assert round(adversarial(table(), ("GPT-4", "Metrics_Reference")), 2) == 82.79


@pytest.mark.parametrize(
    ("model", "alone", "both", "coverage"),
    [("GPT-4", 0.765, 0.791, 0.912), ("ChatGPT", 0.400, 0.336, None), ("LLaMA2", 0.395, 0.365, None)],
)
def test_both_orders_make_a_good_judge_better_and_a_bad_one_worse(
    model: str, alone: float, both: float, coverage: float | None
) -> None:
    """Verbosity survives the exchange (judging, section 3, item 8)."""
    held = pairs()
    found = held_against([one for subset in (*ADVERSARIAL, "Natural") for one in held[subset, (model, PLAIN)]])
    assert found.accuracy is not None
    assert (round(found.each_order, 3), round(found.accuracy.share, 3)) == (alone, both)
    assert coverage is None or round(found.coverage.share, 3) == coverage


@pytest.mark.parametrize(("model", "conflicts", "share", "first"), [("ChatGPT", 54, 0.818, 54), ("GPT-4", 20, 0.303, 18)])
def test_the_place_decides_as_often_as_was_measured(model: str, conflicts: int, share: float, first: int) -> None:
    """Pairs of FairEval that people did not call a tie (judging, section 3, item 9)."""
    place = tally_pairs(orders for orders, _ in pairs()["FairEval", (model, PLAIN)]).place
    assert place.conflicts is not None
    assert (place.conflicts.count, place.conflicts.of, round(place.conflicts.share, 3)) == (conflicts, 66, share)
    assert (place.first, place.second) == (first, conflicts - first)
    assert place.p is not None
    assert place.p < 0.001


def test_the_table_is_printed() -> None:
    """Seen with ``-s``; ``make pairwise`` prints it too."""
    shown = list(lines())
    print("\n".join(shown))  # noqa: T201
    assert shown[-1] == "349 of 349 cells as published, in both numbers"
