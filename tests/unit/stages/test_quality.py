"""The quality score: what stands in for what was not measured, and between which bounds that lies."""

import json
from decimal import Decimal
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model.quality import CustomMetric, EvidenceLevel, Flag, QualityInputs, QualityScore, QualitySpec, SafetySource
from pipeline.stages.quality import quality


def inputs(rate: str = "0.9", n: int = 50, **given: Any) -> QualityInputs:
    numbers = {
        key: Decimal(value) if isinstance(value, str) and key != "safety_source" else value for key, value in given.items()
    }
    bounds = {"pass_if_undecided_fail": Decimal(rate), "pass_if_undecided_pass": Decimal(rate)}
    if "safety" in numbers:
        numbers.setdefault("safety_source", SafetySource.CHECKS)
    return QualityInputs(Decimal(rate), n, **(bounds | numbers))


FULL = inputs("0.9", safety="0.98", judge="0.8", schema="1.0", latency_ms="3000", cost_usd="0.02", budget_usd="0.05")


def test_what_is_undecided_and_what_is_imputed_is_at_its_worst_and_at_its_best() -> None:
    """The pass rate is 0.4 to 0.7 of 0.50, safety anything of 0.25, the judge all of 0.15, latency all of 0.06, cost anything of 0.04."""
    passes: dict[str, Any] = {"pass_if_undecided_fail": "0.4", "pass_if_undecided_pass": "0.7"}
    made = inputs("0.5", **passes, judge="1", schema="1", latency_ms="1500", cost_usd="1")
    score = quality(made)
    assert score.imputed == ("safety", "cost")
    assert [score.lower, score.exact, score.upper] == [41, Decimal("62.5"), 85]


def test_a_score_is_kept_with_the_hashes_of_what_made_it() -> None:
    score = quality(FULL)
    assert score.revision == ""
    for value, kept in ((FULL, score.inputs_hash), (QualitySpec(), score.spec_hash)):
        canonical = json.dumps(
            msgspec.to_builtins(value, builtin_types=(Decimal,)), sort_keys=True, separators=(",", ":"), default=str
        )
        assert kept == sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize(
    "changed",
    [
        {"safety": "0.95"},
        {"latency_ms": "4750"},
        {"cost_usd": "0.075"},
        {"n": 10},
        {"trace_linked": True, "trace_coverage": "0.8", "cost_records": 1},
    ],
)
def test_no_flag_at_its_line(changed: dict[str, Any]) -> None:
    numbers = {key: Decimal(value) if isinstance(value, str) else value for key, value in changed.items()}
    assert quality(msgspec.structs.replace(FULL, **numbers)).flags == ()


def test_a_coverage_that_nobody_measured_is_none() -> None:
    linked = msgspec.structs.replace(FULL, trace_linked=True, cost_records=1)
    assert quality(linked).flags == (Flag.TRACE_COVERAGE_LOW,)


def test_half_a_point_is_rounded_up_also_where_a_fraction_has_no_end() -> None:
    halved = quality(
        inputs("0.5", safety="0.5", judge="0.5", schema="0.5", latency_ms="4425", cost_usd="0.0725", budget_usd="0.05")
    )
    assert [halved.exact, halved.score] == [Decimal("50.5"), 51]
    thirds = QualitySpec(
        pass_weight=Decimal(1), safety_weight=Decimal(1), judge_schema_weight=Decimal(1), latency_cost_weight=Decimal(0)
    )
    score = quality(inputs("0.005", safety="0.005", judge="0.005", schema="0.005"), thirds)
    assert [score.exact, score.score] == [Decimal("0.5"), 1]


@pytest.mark.parametrize(("latency", "expected"), [("1500", "1"), ("0", "1"), ("8000", "0"), ("9000", "0"), ("4750", "0.5")])
def test_latency_is_linear_between_its_ends(latency: str, expected: str) -> None:
    assert quality(inputs(latency_ms=latency)).components["latency"] == Decimal(expected)


@pytest.mark.parametrize(
    ("cost", "budget", "expected"),
    [("0.05", "0.05", "1"), ("0.075", "0.05", "0.5"), ("0.10", "0.05", "0"), ("1", "0", "0"), ("0", "0", "1")],
)
def test_cost_is_linear_up_to_twice_the_budget(cost: str, budget: str, expected: str) -> None:
    score = quality(inputs(cost_usd=cost, budget_usd=budget))
    assert score.components["cost"] == Decimal(expected)
    assert "cost" not in score.imputed


def test_without_a_budget_cost_is_not_measured() -> None:
    score = quality(inputs(cost_usd="9"))
    assert "cost" in score.imputed
    assert score.components["cost"] == 1


def test_a_custom_metric_without_a_value_is_left_out_and_named_and_could_be_anything() -> None:
    """Of weight 0.5 beside the 1 of all else: at its worst it adds nothing to what is then two thirds, at its best 50 of 150."""
    without = quality(FULL)
    score = quality(msgspec.structs.replace(FULL, custom=(CustomMetric("b", None, Decimal("0.5")),)))
    assert (score.exact, score.imputed) == (without.exact, ("b",))
    assert float(score.lower) == pytest.approx(float(without.exact) / 1.5)
    assert float(score.upper) == pytest.approx((float(without.exact) + 50) / 1.5)


def test_custom_metrics_are_blended_before_rounding() -> None:
    custom = (CustomMetric("a", Decimal("0.5"), Decimal("0.2")), CustomMetric("b", Decimal(1), Decimal("0.3")))
    score = quality(msgspec.structs.replace(FULL, custom=custom))
    assert score.imputed == ()
    assert score.exact.quantize(Decimal("0.000001")) == Decimal("87.543590")  # (91.315384… + 40) / 1.5


def test_weights_are_brought_to_sum_to_one() -> None:
    doubled = QualitySpec(
        pass_weight=Decimal(1),
        safety_weight=Decimal("0.5"),
        judge_schema_weight=Decimal("0.3"),
        latency_cost_weight=Decimal("0.2"),
    )
    assert quality(FULL, doubled).exact == quality(FULL).exact
    assert quality(FULL, doubled).spec_hash != quality(FULL).spec_hash


@pytest.mark.parametrize(
    ("changed", "flag"),
    [
        ({"safety": "0.94"}, Flag.SAFETY_RISK),
        ({"latency_ms": "7000"}, Flag.LATENCY_RISK),
        ({"cost_usd": "0.09"}, Flag.COST_RISK),
        ({"n": 9}, Flag.LOW_N),
        ({"trace_linked": True, "trace_coverage": "0.79", "cost_records": 1}, Flag.TRACE_COVERAGE_LOW),
        ({"trace_linked": True, "trace_coverage": "0.8"}, Flag.MISSING_PROVENANCE),
        ({"safety_source": SafetySource.ERROR_TEXTS}, Flag.SAFETY_WEAK_EVIDENCE),
    ],
)
def test_each_flag(changed: dict[str, Any], flag: Flag) -> None:
    numbers = {
        key: Decimal(value) if isinstance(value, str) and key != "safety_source" else value for key, value in changed.items()
    }
    assert quality(msgspec.structs.replace(FULL, **numbers)).flags == (flag,)


@pytest.mark.parametrize(
    ("changed", "level"),
    [
        ({}, EvidenceLevel.STRONG),
        ({"n": 10}, EvidenceLevel.STRONG),
        ({"n": 9}, EvidenceLevel.MEDIUM),
        ({"n": 5}, EvidenceLevel.MEDIUM),
        ({"judge": None}, EvidenceLevel.MEDIUM),
        ({"n": 4}, EvidenceLevel.WEAK),
        ({"judge": None, "safety_source": SafetySource.ERROR_TEXTS}, EvidenceLevel.WEAK),
    ],
)
def test_what_a_score_rests_on(changed: dict[str, Any], level: EvidenceLevel) -> None:
    assert quality(msgspec.structs.replace(FULL, **changed)).evidence is level


SHARES = st.decimals(0, 1, places=3)


@given(
    made=st.builds(
        QualityInputs,
        pass_rate=SHARES,
        n=st.integers(1, 100),
        pass_if_undecided_fail=st.just(Decimal(0)),
        pass_if_undecided_pass=st.just(Decimal(1)),
        safety=st.none() | SHARES,
        judge=st.none() | SHARES,
        schema=st.none() | SHARES,
        latency_ms=st.none() | st.decimals(0, 10_000, places=1),
        cost_usd=st.none() | SHARES,
        budget_usd=st.none() | SHARES,
    )
)
def test_a_score_lies_between_its_bounds_and_is_made_again_from_what_is_kept(made: QualityInputs) -> None:
    score = quality(made, revision="abc")
    assert 0 <= score.lower <= score.exact <= score.upper <= 100
    kept = msgspec.json.decode(msgspec.json.encode(score), type=QualityScore)
    assert quality(kept.inputs, kept.spec, kept.revision) == score
