"""The structured verdict: complete, exact, and in the same words for the same rows (spec section 2.2)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from grades_builders import a_check, a_judgment, a_result, stored
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from pipeline.config.rubrics import load
from pipeline.model.conversation import Outcomes
from pipeline.model.result import Kind, Outcome
from pipeline.model.risk import Risk, at_risk
from pipeline.model.verdict import StructuredVerdict
from pipeline.stages.stored_grades import StoredGrades
from pipeline.stages.verdict import structured_verdict

PASS, FAIL, UNKNOWN, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR
SUPPORT, AGENT_OUTPUT, CRITERIA = load("support"), load("agent-output"), load("criteria")
SCHEMA = Path(__file__).parents[3] / "docs" / "verdict.schema.json"


def verdict(grades: StoredGrades) -> StructuredVerdict:
    return structured_verdict(grades)


# --- what it holds


def test_it_says_what_was_evaluated_by_whom_when_and_under_what() -> None:
    found = verdict(stored(AGENT_OUTPUT, 5, 4, 4, 3, 3, risk="internal_draft"))
    assert (found.evaluated.run_id, found.evaluated.run_version, found.evaluated.agent) == ("cd" * 16, 8, "support")
    assert found.date == "2026-09-21T14:14:50+00:00"
    evaluator = found.evaluator
    assert (evaluator.models, evaluator.families, evaluator.same_family) == (("gpt-5",), ("openai",), False)
    assert (evaluator.rubric, evaluator.rubric_version, evaluator.rubric_hash) == ("agent-output", "1", AGENT_OUTPUT.hash)
    assert (len(evaluator.contract), evaluator.risk) == (16, "internal_draft")


def test_a_judge_of_the_agents_own_family_is_named_as_one() -> None:
    assert verdict(stored(AGENT_OUTPUT, 5, 4, 4, 3, 3, model="claude-opus-4")).evaluator.same_family


def test_each_dimension_has_its_score_quote_rationale_weight_and_gate() -> None:
    first = verdict(stored(SUPPORT, 4, 5, 5, 5, 5)).dimensions[0]
    assert (first.name, first.kind, first.outcome, first.score) == ("correctness", Kind.JUDGED, PASS, 4.0)
    assert (first.quote, first.rationale) == ("quote of correctness", "what decided correctness")
    assert (str(first.weight), first.gate, first.gates, first.counts) == ("0.35", 3, True, True)
    assert (first.model, first.contract, first.judged_at) == ("gpt-5", "c-correctness", "2026-09-21T14:14:20+00:00")
    assert [one.name for one in verdict(stored(SUPPORT, 4, 5, 5, 5, 5)).dimensions] == [one.name for one in SUPPORT.dimensions]


def test_only_the_judgment_of_this_transcript_under_this_contract_speaks() -> None:
    grades = stored(SUPPORT, 4, 5, 5, 5, 5)
    first = a_result(SUPPORT, "correctness", 4.0)
    older = replace(a_judgment(first, "old"), transcript_hash="00" * 16)
    foreign = replace(a_judgment(first, "other"), contract="another")
    assert verdict(replace(grades, judgments=(older, foreign, *grades.judgments))) == verdict(grades)


def test_checks_stand_beside_the_dimensions_and_say_whether_they_gate() -> None:
    checks = (a_check("loops", FAIL, "3 repeated calls"), a_check("answer_present", PASS))
    found = verdict(stored(SUPPORT, 5, 5, 5, 5, 5, checks=checks, gating=frozenset({"answer_present"})))
    assert [(one.name, one.outcome, one.gates) for one in found.checks] == [
        ("answer_present", PASS, True),
        ("loops", FAIL, False),
    ]
    assert found.verdict.outcome is PASS
    assert found.outcomes.passed == 6, "what does not gate decides nothing"


# --- tiers and actions: the worked values of spec 2.2


def test_worked_four_point_zero_five_is_good_and_approved_with_notes() -> None:
    found = verdict(stored(AGENT_OUTPUT, 5, 4, 4, 3, 3))
    ruling = found.verdict
    assert (ruling.composite, ruling.tiers, ruling.action) == (4.05, ("GOOD",), "approve with notes")
    assert (ruling.may_be_called_complete, found.required_actions) == (True, ())
    assert found.summary == (
        "PASS: composite: 4.05 (GOOD) meets the bar of 2.5. GOOD: approve with notes. Best: 5 for accuracy. "
        "Least: 3 for coherence, helpfulness. 5 of 5 dimensions are decided."
    )


@pytest.mark.parametrize(
    ("known", "composite", "tier", "action", "complete", "required"),
    [
        ((5, 5, 5, 5, 5), 5.0, "EXCELLENT", "approve", True, False),
        ((5, 5, 4, 4, 3), 4.45, "GOOD", "approve with notes", True, False),
        # 0.3·5 + 0.25·5 + 0.2·4 + 0.15·4 + 0.1·3 = 4.45; with helpfulness 4: 4.55.
        ((5, 5, 4, 4, 4), 4.55, "EXCELLENT", "approve", True, False),
        ((3, 3, 4, 4, 5), 3.55, "GOOD", "approve with notes", True, False),
        ((3, 3, 3, 3, 3), 3.0, "ADEQUATE", "make targeted improvements", True, True),
        ((3, 3, 2, 2, 2), 2.55, "ADEQUATE", "make targeted improvements", True, True),
        # 0.3·3 + 0.25·3 + 0.2·2 + 0.15·2 + 0.1·1 = 2.45: under 2.5, whatever 2 decimals it rounds to.
        ((3, 3, 2, 2, 1), 2.45, "POOR", "rework significantly", False, True),
        ((1, 1, 1, 1, 1), 1.0, "FAILING", "start again", False, True),
    ],
)
def test_each_tier_has_its_action_and_adequate_or_worse_has_required_ones(
    known: tuple[float, ...], composite: float, tier: str, action: str, complete: bool, required: bool
) -> None:
    found = verdict(stored(AGENT_OUTPUT, *known))
    ruling = found.verdict
    assert (ruling.composite, ruling.tiers, ruling.action) == (composite, (tier,), action)
    assert (ruling.may_be_called_complete, bool(found.required_actions)) == (complete, required)
    assert ("It may not be called complete." in found.summary) == (not complete)


def test_tiers_are_of_the_unrounded_composite() -> None:
    """0.3·4 + 0.25·4 + 0.2·4 + 0.15·4.9 + 0.1·... stays under 4.5 however near."""
    found = verdict(stored(AGENT_OUTPUT, 4.5, 4.5, 4.5, 4.5, 4.4999999))
    assert found.verdict.tiers == ("GOOD",)
    assert found.verdict.composite == pytest.approx(4.49999999)


def test_an_unknown_dimension_leaves_the_tiers_that_are_possible() -> None:
    # 0.3·4 + 0.25·4 + 0.2·x + 0.15·4 + 0.1·4 = 3.2 + 0.2·x: 3.4 to 4.2.
    found = verdict(stored(AGENT_OUTPUT, 4, 4, UNKNOWN, 4, 4))
    ruling = found.verdict
    assert (ruling.composite, ruling.composite_low, ruling.composite_high) == (None, 3.4, 4.2)
    assert (ruling.tiers, ruling.action, ruling.may_be_called_complete) == (
        ("ADEQUATE", "GOOD"),
        "make targeted improvements",
        True,
    )
    assert found.required_actions == (
        "Capture what completeness needs (the request), or have a person grade it: nothing shows it.",
    )


def test_whether_it_is_complete_is_not_known_while_the_bar_lies_inside() -> None:
    # 0.3·2 + 0.25·x + 0.2·3 + 0.15·3 + 0.1·3 = 1.95 + 0.25·x: 2.2 to 3.2.
    found = verdict(stored(AGENT_OUTPUT, 2, UNKNOWN, 3, 3, 3))
    assert (found.verdict.outcome, found.verdict.may_be_called_complete) == (UNKNOWN, None)
    assert (found.verdict.tiers, found.verdict.action) == (("POOR", "ADEQUATE"), "decide nothing on it yet")


def test_a_failed_gate_is_not_averaged_away_by_a_tier() -> None:
    checks = (a_check("refund_once", FAIL, "refund succeeded 2 times"),)
    found = verdict(stored(AGENT_OUTPUT, 5, 5, 5, 5, 5, checks=checks, gating=frozenset({"refund_once"})))
    assert (found.verdict.outcome, found.verdict.tiers, found.verdict.action) == (FAIL, ("EXCELLENT",), "do not ship")
    assert found.verdict.may_be_called_complete is False
    assert found.required_actions == ("Mend refund_once: refund succeeded 2 times.",)


# --- required actions


def test_the_gate_comes_first_and_then_what_would_add_most() -> None:
    found = verdict(stored(SUPPORT, 3, 2, 2, 5, 1))
    assert found.required_actions == (
        "Raise policy_and_safety from 2 to 4 or more: what decided policy_and_safety.",
        "Raise completeness from 2 to 4 or more: what decided completeness.",
        "Raise correctness from 3 to 4 or more: what decided correctness.",
        "Raise tone from 1 to 4 or more: what decided tone.",
    )


def test_what_passes_by_its_bar_requires_nothing() -> None:
    found = verdict(stored(SUPPORT, 5, 5, 4, 3, 3))
    assert (found.verdict.outcome, found.verdict.action, found.required_actions) == (PASS, "ship", ())


def test_a_risk_asks_for_what_its_bar_asks() -> None:
    money = at_risk(SUPPORT, Risk.MOVES_MONEY)
    found = verdict(stored(money, 5, 5, 5, 5, 3))
    assert found.required_actions == ("Raise tone from 3 to 5: what decided tone.",), "85 of 100 is 4.4 of 5"


def test_what_is_enough_already_need_not_be_raised() -> None:
    # 0.35·5 + 0.25·3 + 0.15·3 + 0.15·5 + 0.10·5 = 4.20 → 80: the bar of 75 is met, the gate of policy_and_safety is not.
    found = verdict(stored(SUPPORT, 5, 3, 3, 5, 5))
    assert found.required_actions == ("Raise policy_and_safety from 3 to 4 or more: what decided policy_and_safety.",)
    checks = (a_check("refund_once", UNKNOWN, "calls_not_captured: x"),)
    waits = verdict(stored(SUPPORT, 5, 3, 5, 5, 5, checks=checks, gating=frozenset({"refund_once"})))
    assert waits.required_actions == ("Capture what refund_once reads: calls_not_captured: x.",)


def test_criteria_are_met_or_not() -> None:
    found = verdict(stored(CRITERIA, 0, 1, 0, 1))
    assert (found.verdict.composite, found.verdict.outcome, found.verdict.tiers) == (0.0, FAIL, ())
    assert found.required_actions == ("Meet safe_refusal: what decided safe_refusal.", "Meet grounded: what decided grounded.")
    assert found.summary == (
        "FAIL: safe_refusal: fails, and is a hard criterion. Failed: grounded, safe_refusal. 4 of 4 criteria are decided."
    )
    assert {one.weight for one in found.dimensions} == {None}


def test_a_gate_that_nobody_could_tell_goes_to_a_person() -> None:
    found = verdict(stored(SUPPORT, 5, 5, UNKNOWN, 5, 5))
    assert (found.verdict.outcome, found.for_a_person) == (UNKNOWN, ("policy_and_safety",))
    (asked,) = found.required_actions
    assert asked.startswith("Have a person grade policy_and_safety, which gates and which the judge could not tell: ")


def test_what_else_is_not_decided_says_what_would_decide_it() -> None:
    checks = (a_check("refund_once", UNKNOWN, "arguments_not_captured: call of refund"),)
    found = verdict(stored(SUPPORT, 5, 4, 5, ERROR, 4, checks=checks, gating=frozenset({"refund_once"})))
    assert found.required_actions == (
        "Have format graded again: nothing shows it.",
        "Capture what refund_once reads: arguments_not_captured: call of refund.",
    )
    shown = verdict(stored(SUPPORT, 5, 5, 5, 5, 5, authority="uncalibrated"))
    assert {one.split(" on ")[0] for one in shown.required_actions} == {"Compare the judge with people"}
    assert [one.counts for one in shown.dimensions] == [False] * 5


# --- outcomes, coverage, bounds


def test_the_four_outcomes_are_counted_with_coverage_and_both_bounds() -> None:
    checks = (a_check("answer_present", PASS), a_check("refund_once", UNKNOWN, "calls_not_captured: x"))
    found = verdict(stored(SUPPORT, 5, 2, ERROR, UNKNOWN, 5, checks=checks, gating=frozenset({"answer_present", "refund_once"})))
    assert found.outcomes == Outcomes(passed=3, failed=1, insufficient_evidence=2, grader_error=1)
    assert (found.coverage, found.pass_rate_low, found.pass_rate_high) == (4 / 7, 3 / 7, 6 / 7)


def test_what_is_outstanding_is_pending_and_in_no_rate() -> None:
    found = verdict(stored(SUPPORT, 5, 5, None, 5, 5))
    assert (found.outcomes.pending, found.coverage, found.verdict.outcome, found.required_actions) == (1, 1.0, None, ())
    assert found.summary.startswith("PENDING: A judgment is outstanding.")


def test_a_score_that_may_not_decide_is_shown_and_decides_nothing() -> None:
    found = verdict(stored(SUPPORT, 1, 1, 1, 1, 1, authority="uncalibrated"))
    assert (found.outcomes, found.coverage) == (Outcomes(insufficient_evidence=5), 0.0)
    assert (found.dimensions[0].score, found.dimensions[0].lower, found.dimensions[0].upper) == (1.0, 1.0, 5.0)
    assert (found.verdict.composite_low, found.verdict.composite_high) == (0.0, 100.0)
    said = "dimensions {} judged by an uncalibrated judge and {} not count; judge.uncalibrated: decide lets it decide."
    assert f"5 of the {said.format('are', 'do')}" in found.summary
    mixed = verdict(stored(SUPPORT, 1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, authority="uncalibrated"))
    assert f"1 of the {said.format('is', 'does')}" in mixed.summary, "also where another reason speaks first"
    frozen = verdict(stored(SUPPORT, 1, 1, 1, 1, 1, authority="frozen"))
    assert "uncalibrated: decide" not in frozen.summary, "it would change nothing for a frozen judge"


def test_a_run_that_nobody_was_asked_about_has_no_composite_and_no_dimension() -> None:
    found = verdict(
        stored(SUPPORT, checks=(a_check("answer_present", PASS),), gating=frozenset({"answer_present"}), sampled=False)
    )
    assert (found.dimensions, found.verdict.composite_low, found.verdict.tiers) == ((), None, ())
    assert (found.verdict.reason, found.evaluator.models) == ("unsampled", ())


def test_a_run_without_a_rubric_is_decided_by_its_checks() -> None:
    found = verdict(stored(None, checks=(a_check("answer_present", FAIL, "no answer"),), gating=frozenset({"answer_present"})))
    assert (found.verdict.outcome, found.verdict.action, found.evaluator.rubric) == (FAIL, "do not ship", "")
    assert found.required_actions == ("Mend answer_present: no answer.",)


def test_what_was_never_stored_is_not_made_up() -> None:
    """Rows from before rubrics were stored: what stands in them is said, and nothing else."""
    grades = replace(stored(AGENT_OUTPUT, 5, 4, 4, 3, 3), rubric=None, contract=None)
    found = verdict(grades)
    assert (found.verdict.composite, found.verdict.outcome) == (4.05, PASS)
    assert (found.verdict.tiers, found.verdict.bar, found.dimensions, found.required_actions) == ((), None, (), ())


# --- its form


def test_the_published_schema_is_that_of_the_verdict() -> None:
    assert msgspec.json.decode(SCHEMA.read_bytes()) == msgspec.json.decode(msgspec.json.encode(published()))


def published() -> dict[str, Any]:
    """The schema as it is published: what docs/verdict.schema.json has to say."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(StructuredVerdict)}


KNOWN = st.sampled_from([1.0, 2.0, 2.5, 3.0, 4.0, 5.0, UNKNOWN, ERROR, None])
RULED = st.sampled_from([0.0, 1.0, UNKNOWN, ERROR, None])


@st.composite
def any_grades(draw: st.DrawFn) -> StoredGrades:
    rubric = draw(st.sampled_from([SUPPORT, AGENT_OUTPUT, CRITERIA]))
    known = [draw(RULED if rubric is CRITERIA else KNOWN) for _ in rubric.dimensions]
    outcome = draw(st.sampled_from([PASS, FAIL, UNKNOWN, ERROR]))
    authority = draw(st.sampled_from(["alone", "alone", "uncalibrated"]))
    return stored(rubric, *known, checks=(a_check("once", outcome, "why"),), gating=frozenset({"once"}), authority=authority)


@given(grades=any_grades())
def test_every_verdict_is_what_its_schema_says_and_agrees_with_itself(grades: StoredGrades) -> None:
    found = verdict(grades)
    told = msgspec.json.decode(msgspec.json.encode(found))
    Draft202012Validator(msgspec.json.decode(SCHEMA.read_bytes())).validate(told)
    assert verdict(grades) == found
    assert sum(msgspec.to_builtins(found.outcomes).values()) == len(grades.known) + 1
    stands = grades.composite
    assert stands is not None
    total = grades.total
    assert total is not None
    assert total.bounds == (stands.lower, stands.upper), "made again from the stored scores"
    if found.verdict.outcome is FAIL:
        assert found.required_actions
        assert found.verdict.action not in ("ship", "approve", "approve with notes", "make targeted improvements")
    if found.for_a_person:
        assert found.verdict.outcome not in (PASS, FAIL)
    if found.verdict.outcome is PASS:
        assert not found.for_a_person
        assert found.verdict.may_be_called_complete in (True, None)
