"""What a bad output costs, in ``tracegrade.yaml``: by agent, in the contract, and refused where it does not fit."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.config.check import summary
from pipeline.config.grading import graders_of, rubrics_in_force
from pipeline.config.load import Loaded, read
from pipeline.config.tracegrade import AgentSettings, TracegradeSettings
from pipeline.model.risk import Risk


def loaded(folder: Path, text: str) -> Loaded:
    (folder / "t.yaml").write_text(text, encoding="utf-8")
    return read(folder / "t.yaml", {})


def settings(**risks: Any) -> TracegradeSettings:
    return TracegradeSettings(agents={name: AgentSettings(risk=risk) for name, risk in risks.items()})


def test_each_agent_has_its_own_and_default_holds_for_the_rest(tmp_path: Path) -> None:
    found = loaded(
        tmp_path, "agents:\n  default: {risk: customer_facing}\n  refunds: {risk: moves_money}\n  drafts: {}\n"
    ).settings
    assert found is not None
    bars = {name: one.grading.rubric.bar for name, one in graders_of(found).items() if one.grading.rubric is not None}
    assert bars == {"default": 80, "refunds": 85, "drafts": 75}


def test_the_risk_is_in_the_contract_of_the_verdict_and_of_the_dimensions_that_it_gates() -> None:
    plain, money = graders_of(settings(a=None))["a"], graders_of(settings(a="moves_money"))["a"]
    assert plain.scorecard.hash != money.scorecard.hash
    assert money.scorecard.check_definition["risk"] == "moves_money"
    assert "risk" not in plain.scorecard.check_definition
    changed = {one.dimension for one, other in zip(plain.judged, money.judged, strict=True) if one.hash != other.hash}
    assert changed == {"correctness", "completeness", "format", "tone"}, "policy_and_safety was gated at 4 already"


def test_customer_facing_changes_the_bar_alone_where_support_gates_already() -> None:
    plain, customers = graders_of(settings(a=None))["a"], graders_of(settings(a="customer_facing"))["a"]
    assert [one.hash for one in plain.judged] == [one.hash for one in customers.judged]
    assert plain.scorecard.hash != customers.scorecard.hash


def test_the_rubrics_in_force_are_stored_as_their_risk_made_them() -> None:
    found = rubrics_in_force(settings(a="moves_money", b="customer_facing", c="customer_facing"))
    assert sorted(one.bar for one in found) == [75, 80, 85]
    used = {
        one.grading.rubric.hash
        for one in graders_of(settings(a="moves_money", b="customer_facing")).values()
        if one.grading.rubric
    }
    assert used == {one.hash for one in found}


def test_the_summary_says_so() -> None:
    said = {one.agent: one.rubric for one in summary(settings(a="moves_money", b=None)).agents}
    assert said == {"default": "rubric support 1", "a": "rubric support 1, moves_money: bar 85", "b": "rubric support 1"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "agents: {a: {risk: moves_money, rubric: agent-output}}",
            (
                "t.yaml:1: agents.a.risk: moves_money asks for a composite of 85 from 0 to 100 over scores from 1 to 5, and agent-output has "
                "another one; remove risk, and write the bar in a rubric of your own"
            ),
        ),
        (
            "agents: {a: {risk: customer_facing, rubric: null}}",
            "t.yaml:1: agents.a.risk: customer_facing sets the bar of a rubric, and there is none; remove it, or name a rubric",
        ),
        (
            "agents: {a: {risk: costly}}",
            "t.yaml:1: agents.a.risk: costly is not one of internal_draft, customer_facing, moves_money; write one of these",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    (found,) = loaded(tmp_path, text).mistakes
    assert found.at("t.yaml") == sentence


def test_every_risk_can_be_written(tmp_path: Path) -> None:
    for risk in Risk:
        assert loaded(tmp_path, f"agents: {{a: {{risk: {risk}}}}}").mistakes == ()
