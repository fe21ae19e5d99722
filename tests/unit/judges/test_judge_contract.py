"""What changes the contract of a judged dimension, and what does not (spec section 7)."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from judge_builders import SUPPORT

from pipeline.judges import contract as contracts
from pipeline.judges.contract import ballots, judge_contract
from pipeline.judges.settings import JudgeSettings
from pipeline.model.contract import Contract
from pipeline.model.rubric import Rubric

SETTINGS = JudgeSettings(base_url="http://127.0.0.1:1/v1", model="m-1")
DEFAULT = judge_contract(SUPPORT, "correctness", SETTINGS)


def contract(rubric: Rubric = SUPPORT, dimension: str = "correctness", **settings: Any) -> str:
    return judge_contract(rubric, dimension, SETTINGS.model_copy(update=settings)).hash


def changed(name: str = "correctness", **fields: Any) -> Rubric:
    """The support rubric with one dimension changed."""
    dimensions = tuple(msgspec.structs.replace(one, **fields) if one.name == name else one for one in SUPPORT.dimensions)
    return msgspec.structs.replace(SUPPORT, dimensions=dimensions)


@pytest.mark.parametrize(
    "field",
    [
        "kind",
        "dimension",
        "rubric_hash",
        "prompt_hash",
        "model",
        "parser_version",
        "transcript_version",
        "evidence_schema",
        "aggregation",
    ],
)
def test_each_part_changes_the_hash(field: str) -> None:
    assert msgspec.structs.replace(DEFAULT, **{field: "other"}).hash != DEFAULT.hash


@pytest.mark.parametrize("change", [{"decoding": {"temperature": 0.1}}, {"check_definition": {"limit": 3}}])
def test_each_mapping_changes_the_hash(change: dict[str, Any]) -> None:
    assert msgspec.structs.replace(DEFAULT, **change).hash != DEFAULT.hash


@pytest.mark.parametrize("part", ["PARSER_VERSION", "TRANSCRIPT_VERSION", "QUOTE_VERSION", "VOTES"])
def test_the_version_of_each_part_changes_the_contract(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contract()
    monkeypatch.setattr(contracts, part, "other")
    assert contract() != before


@pytest.mark.parametrize(
    "change",
    [
        {"anchors": ((1, "bad"), (5, "good"))},
        {"gate": 4},
        {"gate": None},
        {"requires": ()},
        {"yes_no": ()},
        {"examples": ()},
        {"observation_only": False},
        {"reference": "used"},
    ],
)
def test_what_a_dimension_says_changes_its_contract_and_no_other(change: dict[str, Any]) -> None:
    assert contract(changed(**change)) != contract()
    assert contract(changed(**change), "tone") == contract(dimension="tone")


@pytest.mark.parametrize("settings", [{"model": "m-2"}, {"temperature": 0.2}, {"seeds": (1, 2, 3)}])
def test_how_a_gated_dimension_is_asked_about_changes_its_contract(settings: dict[str, Any]) -> None:
    assert contract(**settings) != contract()


@pytest.mark.parametrize("settings", [{"temperature": 0.2}, {"seeds": (1, 2, 3)}])
def test_how_votes_are_taken_changes_no_contract_without_votes(settings: dict[str, Any]) -> None:
    assert contract(dimension="tone", **settings) == contract(dimension="tone")


@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": "http://127.0.0.1:2/v1"},
        {"api_key_env": "KEY"},
        {"timeout": 1},
        {"deadline": 1},
        {"concurrency": 1},
        {"price": None},
        {"uncalibrated": "decide"},
    ],
)
def test_where_and_when_a_judge_is_asked_changes_no_contract(settings: dict[str, Any]) -> None:
    assert contract(**settings) == contract()


def test_weights_and_the_bar_change_no_contract() -> None:
    heavier = msgspec.structs.replace(changed(weight=Decimal("0.45")), bar=Decimal(85), version="2")
    assert contract(heavier) == contract()
    assert heavier.hash != SUPPORT.hash


def test_a_contract_of_a_check_needs_no_more_than_its_definition() -> None:
    one, other = (
        Contract(kind="code", dimension="tool_errors", check_definition=limits) for limits in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one.canonical == '{"check_definition":{"a":1,"b":2},"dimension":"tool_errors","kind":"code"}'
    assert one.hash == other.hash
    assert len(one.hash) == 16


def test_a_gated_dimension_has_three_ballots_and_another_one() -> None:
    assert [ballot.seed for ballot in ballots(DEFAULT)] == [11, 23, 47]
    assert {ballot.temperature for ballot in ballots(DEFAULT)} == {0.7}
    assert [(ballot.seed, ballot.temperature) for ballot in ballots(judge_contract(SUPPORT, "tone", SETTINGS))] == [(None, 0.0)]
