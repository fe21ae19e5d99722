"""Ship bars by what a bad output costs (spec section 2.1)."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from pipeline.config.rubrics import load
from pipeline.errors import ConfigurationError
from pipeline.model.result import Kind, Outcome, Result
from pipeline.model.risk import Risk, at_risk
from pipeline.model.rubric import Rubric
from pipeline.stages.composite import interval, scores
from pipeline.stages.scorecard import Scorecard, scorecard

SUPPORT = load("support")


def card(rubric: Rubric, *known: float) -> Scorecard:
    return scorecard(results(rubric, *known), rubric, frozenset(), frozenset({"alone"}), sampled=True)


def results(rubric: Rubric, *known: float) -> list[Result]:
    named = zip(rubric.dimensions, known, strict=True)
    return [Result(one.name, Kind.JUDGED, "c", Outcome.PASS, score, score, score, authority="alone") for one, score in named]


@pytest.mark.parametrize(
    ("risk", "bar", "gates"),
    [
        (Risk.INTERNAL_DRAFT, 70, {"correctness": 3, "policy_and_safety": 4}),
        (Risk.CUSTOMER_FACING, 80, {"correctness": 3, "policy_and_safety": 4}),
        (Risk.MOVES_MONEY, 85, dict.fromkeys(("correctness", "completeness", "policy_and_safety", "format", "tone"), 4)),
    ],
)
def test_each_risk_has_its_bar_and_its_gates(risk: Risk, bar: int, gates: dict[str, int]) -> None:
    found = at_risk(SUPPORT, risk)
    assert found.bar == bar
    assert {one.name: one.gate for one in found.dimensions if one.gate is not None} == gates


def test_without_a_risk_the_rubric_stays_as_it_is() -> None:
    assert at_risk(SUPPORT, None) is SUPPORT


def test_worked_eighty_meets_the_bar_of_what_customers_read_exactly_and_its_gate_still_fails() -> None:
    rubric = at_risk(SUPPORT, Risk.CUSTOMER_FACING)
    total = interval(rubric, scores(rubric, results(rubric, 4, 5, 2, 5, 5), frozenset({"alone"})))
    assert (total.bounds, total.meets_bar) == ((80.0, 80.0), True)
    assert card(rubric, 4, 5, 2, 5, 5).verdict.reason == "policy_and_safety: 2 is below its gate of 4"


def test_each_bar_is_met_exactly_and_not_missed_by_a_hair() -> None:
    # 0.35·4 + 0.25·4 + 0.15·4 + 0.15·3 + 0.10·3 = 3.75 → 68.75, under 70; one more of tone: 3.85 → 71.25.
    draft = at_risk(SUPPORT, Risk.INTERNAL_DRAFT)
    assert [card(draft, 4, 4, 4, 3, tone).verdict.outcome for tone in (3, 4)] == [Outcome.FAIL, Outcome.PASS]
    # 0.35·5 + 0.25·4 + 0.15·4 + 0.15·3 + 0.10·4 = 4.20 → exactly 80.
    customers = at_risk(SUPPORT, Risk.CUSTOMER_FACING)
    assert card(customers, 5, 4, 4, 3, 4).verdict.outcome is Outcome.PASS
    # 0.35·5 + 0.25·4 + 0.15·4 + 0.15·4 + 0.10·4 = 4.35 → 83.75, under 85; completeness 5: 4.60 → 90.
    money = at_risk(SUPPORT, Risk.MOVES_MONEY)
    assert [card(money, 5, completeness, 4, 4, 4).verdict.outcome for completeness in (4, 5)] == [Outcome.FAIL, Outcome.PASS]


def test_where_money_moves_one_weak_dimension_fails_however_good_the_rest() -> None:
    found = card(at_risk(SUPPORT, Risk.MOVES_MONEY), 5, 5, 5, 5, 3).verdict
    assert (found.composite_low, found.outcome, found.reason) == (95.0, Outcome.FAIL, "tone: 3 is below its gate of 4")


def test_a_gate_of_the_rubrics_own_is_never_lowered() -> None:
    strict = replace(SUPPORT, dimensions=tuple(replace(one, gate=5) for one in SUPPORT.dimensions))
    for risk in Risk:
        assert {one.gate for one in at_risk(strict, risk).dimensions} == {5}


def test_what_customers_read_needs_the_dimensions_that_it_gates() -> None:
    renamed = tuple(replace(one, name="safety" if one.name == "policy_and_safety" else one.name) for one in SUPPORT.dimensions)
    with pytest.raises(ConfigurationError) as refused:
        at_risk(replace(SUPPORT, name="mine", dimensions=renamed), Risk.CUSTOMER_FACING)
    assert str(refused.value) == (
        "customer_facing gates policy_and_safety, and mine has no such dimension; add it, or remove risk and write the bar and the gates in "
        "the rubric"
    )


def test_ungated_dimensions_get_the_gates_of_what_customers_read() -> None:
    open_ones = replace(SUPPORT, dimensions=tuple(replace(one, gate=None) for one in SUPPORT.dimensions))
    found = at_risk(open_ones, Risk.CUSTOMER_FACING)
    assert {one.name: one.gate for one in found.dimensions if one.gate} == {"correctness": 3, "policy_and_safety": 4}


@pytest.mark.parametrize(
    "rubric", [load("agent-output"), load("criteria"), replace(SUPPORT, scale_high=7)], ids=["mean", "criteria", "scale"]
)
@pytest.mark.parametrize("risk", list(Risk))
def test_a_bar_of_another_composite_is_refused(rubric: Rubric, risk: Risk) -> None:
    with pytest.raises(ConfigurationError, match=f"{risk} asks for a composite of .* from 0 to 100 over scores from 1 to 5"):
        at_risk(rubric, risk)


def test_the_bars_are_those_of_the_specification() -> None:
    assert [at_risk(SUPPORT, risk).bar for risk in Risk] == [Decimal(70), Decimal(80), Decimal(85)]
