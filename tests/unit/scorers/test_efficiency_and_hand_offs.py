"""How many calls a task took, against a baseline where there is one; and how often agents handed over."""

from typing import Any

import pytest
from pydantic import ValidationError
from run_builders import a_call, a_model_step, a_run, a_wish

from pipeline.model.result import Outcome
from pipeline.model.spending import HandOff
from pipeline.scorers.check import measured
from pipeline.scorers.efficiency import EfficiencySettings, efficiency, efficiency_check
from pipeline.scorers.hand_offs import hand_offs, hand_offs_check

BASELINES = EfficiencySettings(task_kind="app.task.kind", baseline={"refund": 2, "question": 0})


@pytest.mark.parametrize(
    ("kind", "calls", "outcome", "reason"),
    [
        ("refund", 2, Outcome.PASS, ""),
        ("refund", 3, Outcome.FAIL, "3 calls where refund takes 2"),
        ("question", 0, Outcome.PASS, ""),
        ("question", 1, Outcome.FAIL, "1 calls where question takes 0"),
        ("support", 9, Outcome.PASS, "no baseline for support: only counted"),
    ],
)
def test_calls_are_counted_and_compared_with_the_baseline_of_their_kind(
    kind: str, calls: int, outcome: Outcome, reason: str
) -> None:
    finding = efficiency(a_run(*(a_call("lookup") for _ in range(calls)), task_kind=kind), BASELINES)
    assert (finding.outcome, finding.value, finding.reason) == (outcome, float(calls), reason)


def test_calls_that_nobody_saw_are_not_counted_as_none() -> None:
    for run, word in (
        (a_run(a_wish("lookup")), "execution_not_captured"),
        (a_run(steps=(a_model_step("no_content"),)), "calls_not_captured"),
    ):
        finding = efficiency(run, BASELINES)
        assert (finding.outcome, finding.value) == (Outcome.INSUFFICIENT_EVIDENCE, None)
        assert finding.reason.startswith(f"{word}: ")


def test_a_baseline_is_part_of_the_contract_and_gates_nothing() -> None:
    assert efficiency_check(BASELINES).contract != efficiency_check(EfficiencySettings()).contract
    assert not efficiency_check(BASELINES).gates
    run = a_run(a_call("lookup"), task_kind="question")
    assert efficiency_check(BASELINES).measure(run) == measured(1.0, holds=False, reason="1 calls where question takes 0")


@pytest.mark.parametrize("written", [{"baseline": {"refund": -1}}, {"baseline": {"": 1}}, {"baseline": {"refund": "few"}}])
def test_what_is_no_baseline_is_refused(written: Any) -> None:
    with pytest.raises(ValidationError):
        EfficiencySettings.model_validate(written)


def test_hand_offs_are_counted_and_listed_and_one_agent_has_none() -> None:
    handed = HandOff("desk", "refunds"), HandOff("refunds", "desk")
    finding = hand_offs(a_run(agents=("refunds",), hand_offs=handed))
    assert finding is not None
    assert finding == measured(2.0, holds=True, reason="only counted", evidence="desk → refunds, refunds → desk")
    called = hand_offs(a_run(agents=("refunds",)))
    assert called is not None
    assert (called.value, called.evidence) == (0.0, "")
    assert hand_offs(a_run()) is None
    many = hand_offs(a_run(agents=("refunds",), hand_offs=handed * 15))
    assert many is not None
    assert many.evidence.endswith("refunds → desk, 10 more")
    assert not hand_offs_check().gates
