"""answer_present."""

import pytest
from msgspec.structs import replace
from run_builders import a_model_step, a_run, ran

from pipeline.model.result import Outcome
from pipeline.model.run import Ended
from pipeline.model.step import StepKind, ToolCall
from pipeline.scorers.answer import AnswerSettings, answer_check, answer_present


def test_a_final_answer_passes() -> None:
    finding = answer_present(a_run(answer="Refunded."))
    assert (finding.outcome, finding.value) == (Outcome.PASS, 1.0)


@pytest.mark.parametrize("answer", ["", "  \n\t"])
def test_a_blank_answer_fails_even_if_other_content_was_not_captured(answer: str) -> None:
    finding = answer_present(a_run(answer=answer, steps=(a_model_step("no_content"),)))
    assert (finding.outcome, finding.value) == (Outcome.FAIL, 0.0)


def test_a_run_that_ended_in_an_error_without_an_answer_fails_and_shows_the_error() -> None:
    finding = answer_present(a_run(answer=None, ended=Ended.ERROR, error="boom", steps=(a_model_step("no_content"),)))
    assert (finding.outcome, finding.evidence) == (Outcome.FAIL, "boom")


def test_a_run_that_fell_silent_fails() -> None:
    assert answer_present(a_run(answer=None, ended=Ended.SILENCE)).outcome is Outcome.FAIL


def test_an_answer_that_nobody_captured_is_unknown_and_has_no_value() -> None:
    finding = answer_present(a_run(answer=None, ended=Ended.SILENCE, steps=(a_model_step("no_content"),)))
    assert (finding.outcome, finding.value, finding.lower, finding.upper) == (Outcome.INSUFFICIENT_EVIDENCE, None, 0.0, 1.0)
    assert finding.reason.startswith("answer_not_captured: ")


def test_a_run_that_says_it_answered_but_shows_no_text_is_unknown() -> None:
    assert answer_present(a_run(answer=None, ended=Ended.ANSWER)).outcome is Outcome.INSUFFICIENT_EVIDENCE


def test_a_tool_span_without_content_excuses_no_missing_answer() -> None:
    step = ran(ToolCall("lookup"), 0, 1)
    run = a_run(answer=None, ended=Ended.SILENCE, steps=(replace(step, flags=("no_content",)),))
    assert answer_present(run).outcome is Outcome.FAIL


def test_it_gates_unless_told_otherwise_and_gating_does_not_change_its_contract() -> None:
    gating, measuring = answer_check(AnswerSettings()), answer_check(AnswerSettings(gate=False))
    assert (gating.gates, measuring.gates) == (True, False)
    assert gating.contract == measuring.contract


def test_a_bare_model_call_that_asked_for_a_tool_goes_on_where_nobody_can_see() -> None:
    asked = ToolCall("lookup_order", error="not executed")
    bare = a_run(asked, answer=None, ended=Ended.SILENCE, steps=(a_model_step(),))
    finding = answer_present(bare)
    assert (finding.outcome, finding.value) == (Outcome.INSUFFICIENT_EVIDENCE, None)
    assert finding.reason.startswith("execution_not_captured: ")
    agent = replace(a_model_step(), kind=StepKind.AGENT)
    assert answer_present(replace(bare, steps=(agent,))).outcome is Outcome.FAIL
