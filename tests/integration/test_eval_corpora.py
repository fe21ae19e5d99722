"""Scores in code against labelled real runs: what was fixed beforehand holds, and no label can be read."""

import msgspec
import pytest
from auroc import auroc
from eval_corpora import LABELS, agentdojo_runs, table, tau_runs, without_label
from hypothesis import given
from hypothesis import strategies as st


def test_the_two_scores_that_were_fixed_beforehand_tell_good_runs_from_bad_ones() -> None:
    fixed = {row.corpus: row for row in table() if row.fixed}
    assert {(row.corpus, row.score, row.good + row.bad) for row in fixed.values()} == {
        ("tau-bench", "the writing calls equal the reference's", 14),
        ("agentdojo", "tool_selection_f1", 26),
    }
    for row in fixed.values():
        assert row.area is not None
        assert row.area.lower > 0.5


def test_no_label_reaches_a_run() -> None:
    for one in (*tau_runs(), *agentdojo_runs()):
        text = msgspec.json.encode(one.run, enc_hook=str).decode()
        assert not [word for word in LABELS if f'"{word}"' in text]
        assert "reward_info" not in text


def test_a_label_is_found_however_deep_it_stands() -> None:
    document = {"a": [{"reward": 1, "b": {"security": True, "c": 2}}], "utility": False}
    assert without_label(document) == {"a": [{"b": {"c": 2}}]}


SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(good=SCORES, bad=SCORES)
def test_the_area_lies_in_its_interval_and_turns_round_with_the_sides(good: list[float], bad: list[float]) -> None:
    one, other = auroc(good, bad), auroc(bad, good)
    assert one is not None
    assert other is not None
    assert 0 <= one.lower <= one.area <= one.upper <= 1
    assert one.area == pytest.approx(1 - other.area)
    assert one.lower == pytest.approx(1 - other.upper, abs=1e-6)


def test_perfect_order_of_few_is_no_certainty_and_nothing_on_one_side_is_no_area() -> None:
    few, many = auroc([1.0] * 3, [0.0] * 3), auroc([1.0] * 50, [0.0] * 50)
    assert few is not None
    assert many is not None
    assert few.area == many.area == 1
    assert few.lower < many.lower < 1
    assert auroc([1.0], []) is None
    tied = auroc([2.0, 3.0], [1.0, 2.0])
    assert tied is not None
    assert tied.area == 0.875  # one tie of four pairs
