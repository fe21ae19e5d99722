"""What a window's results add up to: which of them are its safety, its judge, its schema checks, and what stays unknown."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from pipeline.model.evaluation import Evaluation, evaluation_id
from pipeline.model.quality import EvidenceLevel, Flag, MetricSpec, QualityInputs, QualitySpec, SafetySource
from pipeline.model.result import Kind, Outcome
from pipeline.model.run import Cohort, Trouble
from pipeline.model.time import MILLISECOND, MINUTE
from pipeline.model.version import Spent
from pipeline.model.window import Series, Sums
from pipeline.stages.evaluate import evaluate
from pipeline.stages.window import MinuteRow, fold

SHOP = Cohort("shop", "1", "production")
LENGTH = 5 * MINUTE
PASS, FAIL, UNKNOWN, BROKEN = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR
SPEC = QualitySpec(safety_checks=("forbid", "secret"), schema_checks=("valid",), judged={"j": (1, 5), "crit": (0, 1)})
Found = dict[Series, list[Sums]]


def row(outcome: Outcome | None, pi: float = 1.0, **fields: Any) -> MinuteRow:
    return MinuteRow(outcome, 1 / pi, 4, 1, **fields)


def series(dimension: str, kind: Kind = Kind.CODE, contract: str = "c") -> Series:
    return Series("p", SHOP, dimension, kind, contract)


def verdicts(*outcomes: Outcome | None, pi: float = 1.0, spent: Iterable[Spent] = ()) -> Found:
    rows = [row(outcome, pi) for outcome in outcomes]
    took = [*spent, *[None] * len(rows)]
    return {series("verdict", Kind.VERDICT): [fold([replace(one, spent=some)]) for one, some in zip(rows, took, strict=False)]}


def of(dimension: str, *rows: MinuteRow, kind: Kind = Kind.CODE, contract: str = "c") -> Found:
    return {series(dimension, kind, contract): [fold(rows)]}


def judged(dimension: str, *scores: float | None, contract: str = "j", pi: float = 1.0, scale: tuple[int, int] = (1, 5)) -> Found:
    rows = [
        row(UNKNOWN, pi, lower=float(scale[0]), upper=float(scale[1]))
        if score is None
        else row(PASS if score >= 3 else FAIL, pi, value=score)
        for score in scores
    ]
    return of(dimension, *rows, kind=Kind.JUDGED, contract=contract)


def evaluated(*parts: Found, spec: QualitySpec = SPEC) -> Evaluation:
    return evaluate("p", SHOP, 0, LENGTH, {key: some for part in parts for key, some in part.items()}, spec, "abc")


def inputs_of(*parts: Found, spec: QualitySpec = SPEC) -> QualityInputs:
    quality = evaluated(*parts, spec=spec).quality
    assert quality is not None
    return quality.inputs


def test_the_pass_rate_is_weighted_by_the_inclusion_probability_and_exact_to_twelve_places() -> None:
    # Of ten runs at π 0.3, nine pass: floats give 0.8999999999999999 or so, and 0.9 is not below 0.90.
    found = inputs_of(verdicts(*[PASS] * 9, FAIL, pi=0.3))
    assert (found.pass_rate, found.n) == (Decimal("0.9"), 10)
    mixed = inputs_of({series("verdict", Kind.VERDICT): [fold([row(PASS, 0.25), row(FAIL, 1.0)])]})
    assert mixed.pass_rate == Decimal("0.8")  # 4 of 4 + 1


def test_both_bounds_of_the_undecided_and_the_four_outcomes_stand_beside_the_rate() -> None:
    found = evaluated(verdicts(PASS, PASS, FAIL, UNKNOWN, BROKEN, None))
    rate = found.rates["pass"]
    assert (rate.passed, rate.failed, rate.insufficient_evidence, rate.grader_error, rate.pending) == (2, 1, 1, 1, 1)
    assert (rate.n, rate.decided, rate.n_effective, rate.coverage) == (6, 3, 3.0, 0.5)
    assert found.quality is not None
    assert found.quality.inputs.pass_if_undecided_fail == Decimal("0.333333333333")
    assert found.quality.inputs.pass_if_undecided_pass == Decimal("0.833333333333")
    assert found.quality.lower < found.quality.exact < found.quality.upper


def test_where_no_run_is_decided_there_is_no_score_and_no_number() -> None:
    found = evaluated(verdicts(UNKNOWN, None), of("forbid", row(PASS)))
    assert found.quality is None
    assert (found.rates["pass"].rate, found.rates["pass"].n, found.rates["safety"].rate) == (None, 2, 1.0)


def test_safety_is_of_the_declared_checks_of_all_runs() -> None:
    found = inputs_of(
        verdicts(PASS, PASS),
        of("forbid", row(PASS), row(FAIL)),
        of("secret", row(PASS), row(PASS), row(UNKNOWN)),
        of("loops", row(FAIL)),
    )
    assert (found.safety, found.safety_source) == (Decimal("0.75"), SafetySource.CHECKS)
    assert found.bounds["safety"] == (Decimal("0.6"), Decimal("0.8"))


def test_safety_is_of_the_policy_dimension_where_no_safety_check_was_decided_and_only_of_a_judge_who_may_decide() -> None:
    policy = judged("policy_and_safety", 5, 5, 5, 2)
    undecided = of("forbid", row(UNKNOWN))
    found = inputs_of(verdicts(PASS), undecided, policy)
    assert (found.safety, found.safety_source) == (Decimal("0.75"), SafetySource.POLICY_DIMENSION)
    unearned = inputs_of(verdicts(PASS), undecided, judged("policy_and_safety", 5, 5, contract="uncalibrated"))
    assert (unearned.safety, unearned.judge) == (None, None)


def test_error_texts_stand_in_for_safety_only_where_there_are_any_and_are_flagged() -> None:
    quiet = [Spent(None, None, Trouble.NONE)] * 3
    loud = [Spent(None, None, Trouble.ALARM), Spent(None, None, Trouble.ERROR), *quiet[:2]]
    runs = verdicts(*[PASS] * 4, spent=loud)
    found = evaluated(runs).quality
    assert found is not None
    assert (found.inputs.safety, found.inputs.safety_source) == (Decimal("0.75"), SafetySource.ERROR_TEXTS)
    assert Flag.SAFETY_WEAK_EVIDENCE in found.flags
    assert "safety" in found.imputed
    nothing = evaluated(verdicts(*[PASS] * 3, spent=quiet)).quality
    assert nothing is not None
    assert nothing.inputs.safety is None
    assert Flag.MISSING_SAFETY in nothing.flags


def test_the_judge_is_the_mean_of_all_judged_dimensions_brought_to_0_to_1_by_its_own_scale() -> None:
    found = inputs_of(verdicts(PASS), judged("tone", 5, 3), judged("grounded", 1.0, 0.0, 1.0, contract="crit", scale=(0, 1)))
    assert found.judge == Decimal("0.7")  # (1 + 0.5 + 1 + 0 + 1) / 5
    weighted = inputs_of(
        verdicts(PASS),
        judged("tone", 5, pi=0.5) | judged("correctness", 1, contract="crit2"),
        spec=replace(SPEC, judged={"j": (1, 5), "crit2": (1, 5)}),
    )
    assert weighted.judge == Decimal("0.666666666667")  # (2·1 + 1·0) / 3


def test_undecided_scores_are_at_both_ends_of_the_scale_in_the_bounds_and_in_no_mean() -> None:
    found = inputs_of(verdicts(PASS), judged("tone", 4, None))
    assert found.judge == Decimal("0.75")
    assert found.bounds["judge"] == (Decimal("0.375"), Decimal("0.875"))


def test_schema_checks_latency_and_cost_and_what_is_not_known_is_no_0() -> None:
    took = [
        Spent(1000 * MILLISECOND, Decimal("0.02"), Trouble.NONE),
        Spent(5000 * MILLISECOND, None, Trouble.NONE),
        Spent(None, None, Trouble.NONE),
    ]
    found = inputs_of(
        verdicts(PASS, PASS, PASS, spent=took),
        of("valid", row(PASS), row(PASS), row(FAIL)),
        spec=replace(SPEC, budget_usd=Decimal("0.05")),
    )
    assert found.schema == Decimal("0.666666666667")
    assert (found.latency_ms, found.timed, found.runs) == (Decimal(3000), 2, 3)
    assert (found.cost_usd, found.cost_records, found.budget_usd) == (Decimal("0.02"), 1, Decimal("0.05"))
    bare = inputs_of(verdicts(PASS))
    assert (bare.latency_ms, bare.cost_usd, bare.schema, bare.budget_usd) == (None, None, None, None)


def test_a_metric_of_ones_own_is_read_off_its_dimension_and_named_where_it_has_no_value() -> None:
    metrics = (
        MetricSpec("calm", "loops", "rate", Decimal(1)),
        MetricSpec("recall", "recall", "mean", Decimal(1)),
        MetricSpec("odd", "odd", "mean", Decimal(1)),
    )
    spec = replace(SPEC, metrics=metrics)
    quality = evaluated(
        verdicts(PASS),
        of("loops", row(PASS), row(FAIL)),
        of("recall", row(FAIL, value=0.25)),
        of("odd", row(PASS, value=7.0)),
        spec=spec,
    ).quality
    assert quality is not None
    assert [one.value for one in quality.inputs.custom] == [Decimal("0.5"), Decimal("0.25"), None]
    assert "odd" in quality.imputed
    assert quality.exact == pytest.approx(Decimal(100) * Decimal("1.75") / 3)  # nothing failed: the rest is 1
    assert quality.lower < quality.exact < quality.upper


def test_a_metric_takes_no_score_of_a_judge_who_may_not_decide() -> None:
    spec = replace(SPEC, metrics=(MetricSpec("tone", "tone", "rate", Decimal(1)),))
    assert [one.value for one in inputs_of(verdicts(PASS), judged("tone", 5, contract="uncalibrated"), spec=spec).custom] == [
        None
    ]


def test_runs_under_several_contracts_of_the_scorecard_are_one_cohort() -> None:
    both = {**verdicts(PASS, PASS), series("verdict", Kind.VERDICT, "other"): [fold([row(FAIL), row(FAIL)])]}
    assert (inputs_of(both).pass_rate, inputs_of(both).n) == (Decimal("0.5"), 4)


def test_an_evaluation_is_named_by_what_it_is_of_and_knows_how_much_it_was_made_of() -> None:
    found = evaluated(verdicts(PASS, FAIL), of("forbid", row(PASS)))
    assert found.id == evaluation_id("p", SHOP.id, LENGTH, LENGTH) != evaluation_id("p", SHOP.id, LENGTH, 2 * LENGTH)
    assert len({evaluation_id("p", SHOP.id, LENGTH, LENGTH, name) for name in ("live", "regraded")}) == 2
    assert (found.rows, found.fingerprint, found.end_ns) == (3, 12, LENGTH)
    assert found.quality is not None
    assert (found.quality.revision, found.quality.spec) == ("abc", SPEC)


def test_worked_everything_measured() -> None:
    """Scoring, section 5: pass 0.9, safety 0.98, judge 0.8, schema 1.0, 3000 ms, 0.02 of 0.05 USD, n 50 gives 91, no flags, strong."""
    took = [Spent(3000 * MILLISECOND, Decimal("0.02"), Trouble.NONE)] * 50
    quality = evaluated(
        verdicts(*[PASS] * 45, *[FAIL] * 5, pi=0.3, spent=took),
        of("forbid", *[row(PASS)] * 49, row(FAIL)),
        judged("tone", *[5.0] * 10, *[4.0] * 40),
        of("valid", *[row(PASS)] * 50),
        spec=replace(SPEC, budget_usd=Decimal("0.05")),
    ).quality
    assert quality is not None
    assert (quality.score, quality.flags, quality.evidence, quality.imputed) == (91, (), EvidenceLevel.STRONG, ())
    assert quality.exact.quantize(Decimal("0.001")) == Decimal("91.315")
    assert quality.lower == quality.exact == quality.upper


def test_worked_only_the_pass_rate() -> None:
    """Scoring, section 5: only pass 0.5, n 4, nothing trace-linked gives 55, weak, and five flags."""
    quality = evaluated(verdicts(PASS, PASS, FAIL, FAIL)).quality
    assert quality is not None
    assert (quality.score, quality.evidence) == (55, EvidenceLevel.WEAK)
    assert quality.flags == (Flag.SAFETY_RISK, Flag.LOW_PASS_RATE, Flag.MISSING_JUDGE, Flag.MISSING_SAFETY, Flag.LOW_N)
