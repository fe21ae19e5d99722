"""The scorecard: composite, gates, verdict (spec sections 2.1 and 2.4)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.model.result import Kind, Outcome, Result, Verdict
from pipeline.model.rubric import CompositeKind, Dimension, MeasuredBy, Rubric, Tier
from pipeline.stages.scorecard import Scorecard, scorecard

PASS, FAIL, UNKNOWN, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR
WEIGHTS = {"correctness": "0.35", "completeness": "0.25", "policy_and_safety": "0.15", "format": "0.15", "tone": "0.10"}
GATES = {"correctness": 3, "policy_and_safety": 4}
SUPPORT = Rubric(
    name="support",
    version="1",
    scale_low=1,
    scale_high=5,
    bar=Decimal(75),
    dimensions=tuple(Dimension(name, Decimal(weight), (), gate=GATES.get(name)) for name, weight in WEIGHTS.items()),
)
DECIDING = frozenset({"assisted", "alone"})
GATING = frozenset({"answer_present", "refund_once"})
ANSWERED = Result("answer_present", Kind.CODE, "c", PASS, 1.0, 1.0, 1.0)

Known = float | Outcome | None
"""A score, why there is none, or None: pending."""


def judged(name: str, known: Known, authority: str = "alone") -> Result:
    if known is None:
        return Result(name, Kind.JUDGED, "c", None, None, 1.0, 5.0, authority=authority)
    if isinstance(known, Outcome):
        return Result(name, Kind.JUDGED, "c", known, None, 1.0, 5.0, reason=f"{known}: why", authority=authority)
    return Result(name, Kind.JUDGED, "c", PASS if known >= 3 else FAIL, known, known, known, authority=authority)


def code(name: str, outcome: Outcome | None, reason: str = "") -> Result:
    return Result(name, Kind.CODE, "c", outcome, reason=reason)


def support(*known: Known, more: tuple[Result, ...] = (ANSWERED,), rubric: Rubric = SUPPORT) -> Scorecard:
    results = (*more, *(judged(name, one) for name, one in zip(WEIGHTS, known, strict=True)))
    return scorecard(results, rubric, GATING, DECIDING, sampled=True, contract="s")


def bounds(card: Scorecard) -> tuple[float | None, float | None]:
    return card.verdict.composite_low, card.verdict.composite_high


def with_bar(bar: int) -> Rubric:
    return replace(SUPPORT, bar=Decimal(bar))


# --- reasons, spec 2.1 (the worked values are in ``test_worked_values.py``)


def test_a_low_policy_score_fails_whatever_the_composite() -> None:
    card = support(4, 5, 2, 5, 5)
    assert bounds(card) == (80.0, 80.0)
    assert card.verdict.outcome is FAIL
    assert card.verdict.reason == "policy_and_safety: 2 is below its gate of 4"


def test_eighty_is_eighty_and_meets_a_bar_of_eighty() -> None:
    ungated = replace(with_bar(80), dimensions=tuple(replace(one, gate=None) for one in SUPPORT.dimensions))
    assert support(4, 5, 2, 5, 5, rubric=ungated).verdict.outcome is PASS
    just_over = replace(ungated, bar=Decimal("80.0000000001"))
    assert support(4, 5, 2, 5, 5, rubric=just_over).verdict.outcome is FAIL


def test_a_scale_that_does_not_divide_evenly_is_compared_exactly_all_the_same() -> None:
    third = replace(SUPPORT, scale_high=4, bar=Decimal(100) / 3, dimensions=(Dimension("tone", Decimal(1), ()),))
    below = replace(third, bar=Decimal("33.4"))
    results = (ANSWERED, judged("tone", 2.0))
    assert scorecard(results, third, GATING, DECIDING, sampled=True).verdict.outcome is PASS
    assert scorecard(results, below, GATING, DECIDING, sampled=True).verdict.outcome is FAIL


def test_every_dimension_at_its_gate_passes_its_gate() -> None:
    assert support(3, 5, 4, 5, 5).verdict.outcome is PASS
    assert support(2.5, 5, 5, 5, 5).verdict.reason == "correctness: 2.5 is below its gate of 3"


# --- reasons, spec 2.4


def test_an_unknown_that_cannot_pull_it_under_the_bar_passes() -> None:
    card = support(5, 5, 5, UNKNOWN, 5)
    assert bounds(card) == (85.0, 100.0)
    assert (card.verdict.outcome, card.verdict.reason) == (PASS, "composite: 85 to 100 meets the bar of 75")


def test_an_unknown_policy_is_never_a_pass() -> None:
    card = support(5, 5, UNKNOWN, 5, 5)
    assert bounds(card) == (85.0, 100.0)
    assert (card.verdict.outcome, card.verdict.reason) == (UNKNOWN, "insufficient_evidence: policy_and_safety")


def test_an_unknown_that_cannot_lift_it_to_the_bar_fails() -> None:
    card = support(3, 3, 4, UNKNOWN, 3)
    assert (card.verdict.outcome, card.verdict.reason) == (FAIL, "composite: 46.25 to 61.25 is below the bar of 75")


def test_a_grader_error_is_the_outcome_if_that_is_why() -> None:
    assert support(4, 4, 4, ERROR, 4).verdict.outcome is ERROR
    assert support(5, 5, ERROR, 5, 5).verdict == Verdict(ERROR, "grader_error: policy_and_safety", 85.0, 100.0)


def test_a_score_that_is_not_on_the_scale_is_a_grader_error_and_no_score() -> None:
    for score in (0.0, 5.1, 9.9e99, float("nan")):
        card = support(5, 5, score, 5, 5)
        assert (card.verdict.outcome, bounds(card)) == (ERROR, (85.0, 100.0))


# --- code gates


def test_a_failing_check_that_gates_fails_the_run_and_is_named_first() -> None:
    more = (code("refund_once", FAIL, "refund succeeded 2 times"), code("answer_present", FAIL, "no answer"))
    assert support(5, 5, 1, 5, 5, more=more).verdict == Verdict(FAIL, "answer_present: no answer", 85.0, 85.0)


def test_a_failing_check_that_does_not_gate_changes_nothing() -> None:
    assert support(5, 5, 5, 5, 5, more=(ANSWERED, code("loops", FAIL, "3 repeated calls"))).verdict.outcome is PASS


def test_an_undecided_check_that_gates_is_never_a_pass() -> None:
    unseen = code("refund_once", UNKNOWN, "arguments_not_captured: call of refund")
    card = support(5, 5, 5, 5, 5, more=(ANSWERED, unseen))
    assert (card.verdict.outcome, card.verdict.reason) == (UNKNOWN, "arguments_not_captured: refund_once")
    broken = code("refund_once", ERROR, "grader_error: KeyError: 'x'")
    assert support(5, 5, 5, 5, 5, more=(broken,)).verdict.outcome is ERROR


def test_a_check_that_does_not_apply_is_no_gate() -> None:
    assert support(5, 5, 5, 5, 5, more=()).verdict.outcome is PASS


# --- pending


def test_nothing_is_said_while_an_outstanding_judgment_could_decide() -> None:
    assert support(4, 4, 4, None, 4).verdict == Verdict(None, "", 63.75, 78.75)
    assert support(5, 5, None, 5, 5).verdict.outcome is None
    assert support(None, None, None, None, None).verdict == Verdict(None, "", 0.0, 100.0)


def test_what_is_outstanding_does_not_hold_up_a_verdict_that_it_cannot_change() -> None:
    assert support(None, None, 3, None, None).verdict.reason == "policy_and_safety: 3 is below its gate of 4"
    assert support(5, 5, 5, None, 5).verdict.outcome is PASS
    assert support(3, 3, 4, 3, None).verdict.outcome is FAIL
    assert support(None, None, None, None, None, more=(code("answer_present", FAIL, "no answer"),)).verdict.outcome is FAIL


def test_an_undecided_gate_waits_only_for_what_could_still_fail_the_run() -> None:
    assert support(5, 5, UNKNOWN, 5, None).verdict.outcome is UNKNOWN
    assert support(4, 4, UNKNOWN, 4, None).verdict.outcome is None
    assert support(None, 4, UNKNOWN, 4, 4).verdict.outcome is None


def test_the_composite_is_pending_while_the_verdict_already_stands() -> None:
    card = support(5, 5, 5, None, 5)
    assert card.composite is not None
    assert (card.composite.outcome, card.composite.value, card.composite.lower) == (None, None, 85.0)


# --- authority


@pytest.mark.parametrize("authority", ["uncalibrated", "frozen", ""])
def test_scores_of_a_judge_that_may_not_decide_do_not_count(authority: str) -> None:
    results = (ANSWERED, *(judged(name, 5.0, authority) for name in WEIGHTS))
    card = scorecard(results, SUPPORT, GATING, DECIDING, sampled=True)
    assert card.verdict == Verdict(UNKNOWN, "uncalibrated: correctness", 0.0, 100.0)
    assert card.composite is not None
    assert (card.composite.outcome, card.composite.value) == (UNKNOWN, None)


def test_a_low_score_of_a_judge_that_may_not_decide_fails_nothing() -> None:
    results = (ANSWERED, *(judged(name, 1.0, "uncalibrated") for name in WEIGHTS))
    assert scorecard(results, SUPPORT, GATING, DECIDING, sampled=True).verdict.outcome is UNKNOWN


def test_an_outstanding_judgment_that_may_not_decide_is_not_waited_for() -> None:
    results = (ANSWERED, *(judged(name, None, "uncalibrated") for name in WEIGHTS))
    assert scorecard(results, SUPPORT, GATING, DECIDING, sampled=True).verdict.reason == "uncalibrated: correctness"


def test_uncalibrated_scores_count_where_the_user_chose_so() -> None:
    results = (ANSWERED, *(judged(name, 5.0, "uncalibrated") for name in WEIGHTS))
    assert scorecard(results, SUPPORT, GATING, DECIDING | {"uncalibrated"}, sampled=True).verdict.outcome is PASS


# --- unsampled runs, and none of a rubric


def test_an_unsampled_run_fails_by_its_checks_or_is_unknown() -> None:
    failed = scorecard((code("answer_present", FAIL, "no answer"),), SUPPORT, GATING, DECIDING, sampled=False)
    assert (failed.composite, failed.verdict) == (None, Verdict(FAIL, "answer_present: no answer"))
    fine = scorecard((ANSWERED,), SUPPORT, GATING, DECIDING, sampled=False)
    assert (fine.composite, fine.verdict) == (None, Verdict(UNKNOWN, "unsampled"))


def test_without_a_rubric_the_checks_decide() -> None:
    def verdict(*results: Result) -> Verdict:
        return scorecard(results, None, GATING, DECIDING, sampled=True).verdict

    assert verdict(ANSWERED).outcome is PASS
    assert verdict(ANSWERED, code("refund_once", FAIL, "twice")) == Verdict(FAIL, "refund_once: twice")
    assert verdict(ANSWERED, code("refund_once", UNKNOWN, "calls_not_captured: x")).reason == "calls_not_captured: refund_once"
    assert verdict(ANSWERED, code("refund_once", None)).outcome is None


def test_a_verdict_is_not_made_of_nothing() -> None:
    card = scorecard((code("loops", PASS),), None, GATING, DECIDING, sampled=True)
    assert (card.verdict.outcome, card.verdict_result.value) == (UNKNOWN, None)


def test_a_dimension_measured_by_code_is_at_an_end_of_the_scale() -> None:
    dimensions = (
        Dimension("tone", Decimal("0.5"), ()),
        Dimension("valid", Decimal("0.5"), (), measured_by=MeasuredBy.CODE),
    )
    mixed = replace(SUPPORT, dimensions=dimensions)
    for outcome, composite in ((PASS, 100.0), (FAIL, 50.0)):
        card = scorecard((judged("tone", 5.0), code("valid", outcome)), mixed, frozenset(), DECIDING, sampled=True)
        assert bounds(card) == (composite, composite)
    only_code = replace(SUPPORT, dimensions=(replace(dimensions[1], weight=Decimal(1)),))
    assert scorecard((code("valid", PASS),), only_code, frozenset(), DECIDING, sampled=False).verdict.outcome is PASS


def test_a_dimension_that_nobody_was_asked_about_is_not_measured() -> None:
    card = scorecard((ANSWERED, judged("correctness", 5.0)), SUPPORT, GATING, DECIDING, sampled=True)
    assert card.verdict.reason == "not_measured: policy_and_safety"


# --- laws

KNOWN = st.sampled_from([1.0, 2.0, 2.5, 3.0, 4.0, 5.0, UNKNOWN, ERROR, None])
CHECKED = st.sampled_from([PASS, FAIL, UNKNOWN, ERROR, None])


@st.composite
def results(draw: st.DrawFn) -> list[Result]:
    authority = st.sampled_from(["alone", "alone", "assisted", "uncalibrated"])
    found = [judged(name, draw(KNOWN), draw(authority)) for name in WEIGHTS]
    found += [code(name, draw(CHECKED), "word: text") for name in sorted(GATING | {"loops"}) if draw(st.booleans())]
    return draw(st.permutations(found))


def fold(found: list[Result], rubric: Rubric | None = SUPPORT) -> Scorecard:
    return scorecard(found, rubric, GATING, DECIDING, sampled=True)


@given(found=results(), data=st.data())
def test_the_order_of_results_does_not_matter(found: list[Result], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(found))
    assert fold(shuffled) == fold(found)
    assert fold(shuffled, None) == fold(found, None)


@given(found=results())
def test_a_failed_gate_is_never_averaged_away_and_an_undecided_one_never_passes(found: list[Result]) -> None:
    verdict = fold(found).verdict
    gates = [one for one in found if one.kind is Kind.CODE and one.dimension in GATING]
    scores = [one for one in found if one.dimension in GATES and one.authority in DECIDING]
    low = [one for one in scores if one.value is not None and one.value < GATES[one.dimension]]
    if low or any(one.outcome is FAIL for one in gates):
        assert verdict.outcome is FAIL
    if any(one.outcome is not PASS for one in gates) or len([one for one in scores if one.value is not None]) < len(GATES):
        assert verdict.outcome is not PASS


@given(found=results(), score=st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0]))
def test_more_evidence_narrows_the_interval_and_keeps_every_verdict_of_the_bar(found: list[Result], score: float) -> None:
    before = fold(found)
    for index, one in enumerate(found):
        if one.kind is Kind.JUDGED and one.value is None and one.authority in DECIDING:
            after = fold([*found[:index], judged(one.dimension, score), *found[index + 1 :]])
            assert before.verdict.composite_low is not None
            assert after.verdict.composite_low is not None
            assert before.verdict.composite_high is not None
            assert after.verdict.composite_high is not None
            assert before.verdict.composite_low <= after.verdict.composite_low
            assert after.verdict.composite_high <= before.verdict.composite_high
            if before.verdict.outcome in (PASS, FAIL):
                assert after.verdict.outcome is before.verdict.outcome


@given(found=results())
def test_a_verdict_is_outstanding_only_if_some_judgment_could_still_decide_it(found: list[Result]) -> None:
    if any(one.kind is Kind.CODE and one.dimension in GATING and one.outcome is None for one in found):
        return
    waiting = [one for one in found if one.kind is Kind.JUDGED and one.outcome is None and one.authority in DECIDING]
    ends = [fold([judged(one.dimension, end) if one in waiting else one for one in found]).verdict.outcome for end in (1.0, 5.0)]
    if fold(found).verdict.outcome is None:
        assert PASS in ends or FAIL in ends
    elif waiting and fold(found).verdict.outcome in (UNKNOWN, ERROR):
        assert PASS not in ends
        assert FAIL not in ends


@given(found=results())
def test_no_row_has_a_value_that_was_not_decided(found: list[Result]) -> None:
    card = fold(found)
    for row in (card.composite, card.verdict_result):
        assert row is not None
        decided = row.outcome in (PASS, FAIL)
        assert (row.value is not None) == decided
        if decided:
            assert row.value == row.lower == row.upper
        elif row.outcome is not None:
            assert row.reason
    assert (card.verdict_result.outcome, card.verdict_result.reason) == (card.verdict.outcome, card.verdict.reason)


# --- rows whole


@pytest.mark.parametrize(
    ("known", "composite", "verdict"),
    [
        (
            (5, 5, 5, 5, 5),
            Result("composite", Kind.COMPOSITE, "s", PASS, 100.0, 100.0, 100.0),
            Result("verdict", Kind.VERDICT, "s", PASS, 1.0, 1.0, 1.0, "composite: 100 meets the bar of 75"),
        ),
        (
            (3, 3, 4, 3, 4),
            Result("composite", Kind.COMPOSITE, "s", FAIL, 56.25, 56.25, 56.25),
            Result("verdict", Kind.VERDICT, "s", FAIL, 0.0, 0.0, 0.0, "composite: 56.25 is below the bar of 75"),
        ),
        (
            (4, 4, 4, UNKNOWN, 4),
            Result("composite", Kind.COMPOSITE, "s", UNKNOWN, None, 63.75, 78.75, "insufficient_evidence: format"),
            Result("verdict", Kind.VERDICT, "s", UNKNOWN, None, 0.0, 1.0, "insufficient_evidence: format"),
        ),
        (
            (4, 4, 4, None, 4),
            Result("composite", Kind.COMPOSITE, "s", None, None, 63.75, 78.75),
            Result("verdict", Kind.VERDICT, "s", None, None, 0.0, 1.0),
        ),
    ],
)
def test_the_rows_of_a_scorecard(known: tuple[Known, ...], composite: Result, verdict: Result) -> None:
    card = support(*known)
    assert (card.composite, card.verdict_result) == (composite, verdict)


def test_the_row_of_a_verdict_without_a_rubric() -> None:
    def row(*results: Result) -> Result:
        return scorecard(results, None, GATING, DECIDING, sampled=True, contract="s").verdict_result

    assert row(ANSWERED) == Result("verdict", Kind.VERDICT, "s", PASS, 1.0, 1.0, 1.0, "all gates passed")
    assert row() == Result("verdict", Kind.VERDICT, "s", UNKNOWN, None, 0.0, 1.0, "not_measured: no check gates")
    broken = code("refund_once", ERROR, "grader_error: KeyError")
    assert row(broken) == Result("verdict", Kind.VERDICT, "s", ERROR, None, 0.0, 1.0, "grader_error: refund_once")
    bare = scorecard((ANSWERED,), None, GATING, DECIDING, sampled=True)
    assert bare.verdict_result.contract == ""


def test_a_check_that_says_no_more_than_fail_is_named_alone() -> None:
    assert support(5, 5, 5, 5, 5, more=(code("answer_present", FAIL),)).verdict.reason == "answer_present"
    assert support(5, 5, 5, 5, 5, more=(code("answer_present", FAIL, "not X"),)).verdict.reason == "answer_present: not X"


def test_the_reason_of_an_undecided_score_is_its_own_word() -> None:
    late = replace(judged("format", ERROR), reason="expired: after 15 min")
    card = scorecard(
        (ANSWERED, *(judged(name, 4) for name in WEIGHTS if name != "format"), late), SUPPORT, GATING, DECIDING, sampled=True
    )
    assert (card.verdict.outcome, card.verdict.reason) == (ERROR, "expired: format")
    assert support(5, 5, 9, 5, 5).verdict.reason == "grader_error: policy_and_safety"


def test_a_judgment_is_waited_for_where_it_can_still_lift_the_composite_to_the_bar() -> None:
    """Tone is unknown. At its best format makes 4.45 or more, which is 86.25; at its worst the composite is 71.25 to 81.25."""
    assert support(5, 5, 4, None, UNKNOWN).verdict == Verdict(None, "", 71.25, 96.25)


def test_a_judgment_is_not_waited_for_where_what_is_unknown_keeps_it_undecided() -> None:
    """Format is unknown. Whatever tone is, the composite is under the bar with format at its worst and over it at its best."""
    reversed_ = replace(SUPPORT, dimensions=SUPPORT.dimensions[::-1])
    for rubric in (SUPPORT, reversed_):
        assert support(4, 5, 4, UNKNOWN, None, rubric=rubric).verdict == Verdict(
            UNKNOWN, "insufficient_evidence: format", 62.5, 87.5
        )


def test_a_percentage_has_tiers_of_its_own() -> None:
    tiered = replace(SUPPORT, tiers=(Tier("FINE", Decimal(80), ""), Tier("POOR", Decimal(0), "")))
    assert support(3, 3, 4, 3, 4, rubric=tiered).verdict.reason == "composite: 56.25 (POOR) is below the bar of 75"
    assert support(5, 5, 5, 5, 5, rubric=tiered).verdict.reason == "composite: 100 (FINE) meets the bar of 75"


# --- tiers, spec 2.2

OUTPUT_WEIGHTS = {"accuracy": "0.30", "groundedness": "0.25", "completeness": "0.20", "coherence": "0.15", "helpfulness": "0.10"}
AGENT_OUTPUT = Rubric(
    name="agent-output",
    version="1",
    scale_low=1,
    scale_high=5,
    bar=Decimal("2.5"),
    dimensions=tuple(Dimension(name, Decimal(weight), ()) for name, weight in OUTPUT_WEIGHTS.items()),
    composite=CompositeKind.MEAN,
    tiers=tuple(
        Tier(name, Decimal(least), "")
        for name, least in (("EXCELLENT", "4.5"), ("GOOD", "3.5"), ("ADEQUATE", "2.5"), ("POOR", "1.5"), ("FAILING", "1"))
    ),
)


def output(*known: Known) -> Scorecard:
    results = (judged(name, one) for name, one in zip(OUTPUT_WEIGHTS, known, strict=True))
    return scorecard((ANSWERED, *results), AGENT_OUTPUT, GATING, DECIDING, sampled=True, contract="s")


@pytest.mark.parametrize(
    ("known", "composite", "tier", "outcome"),
    [
        ((5, 4, 4, 3, 3), 4.05, "GOOD", PASS),
        ((5, 5, 5, 5, 5), 5.0, "EXCELLENT", PASS),
        ((5, 4, 5, 4, 4), 4.5, "EXCELLENT", PASS),
        ((3, 3, 2, 2, 1), 2.45, "POOR", FAIL),
        ((3, 2, 2, 3, 2.5), 2.5, "ADEQUATE", PASS),
        ((1, 1, 1, 1, 1), 1.0, "FAILING", FAIL),
    ],
)
def test_the_weighted_mean_names_a_tier(known: tuple[float, ...], composite: float, tier: str, outcome: Outcome) -> None:
    card = output(*known)
    assert bounds(card) == (composite, composite)
    assert card.verdict.outcome is outcome
    assert f"({tier})" in card.verdict.reason


def test_with_an_unknown_score_the_tier_is_a_range_and_the_bar_still_decides() -> None:
    card = output(5, 4, UNKNOWN, 3, 3)
    assert bounds(card) == (3.45, 4.25)
    assert card.verdict.outcome is PASS
    assert "3.45 to 4.25 (ADEQUATE to GOOD)" in card.verdict.reason
    assert output(3, 2, UNKNOWN, 2, 2).verdict.outcome is UNKNOWN
