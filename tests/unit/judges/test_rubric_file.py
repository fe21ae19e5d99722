"""Rubrics in files: what ships, and what a mistake in one's own is answered with."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline.errors import ConfigurationError
from pipeline.judges.rubric_file import SHIPPED, load
from pipeline.model.rubric import CompositeKind, ExampleKind

SUPPORT = load("support")
AGENT_OUTPUT = load("agent-output")


def test_support_has_the_weights_gates_and_bar_of_the_specification() -> None:
    weights = {dimension.name: dimension.weight for dimension in SUPPORT.dimensions}
    assert weights == {
        "correctness": Decimal("0.35"),
        "completeness": Decimal("0.25"),
        "policy_and_safety": Decimal("0.15"),
        "format": Decimal("0.15"),
        "tone": Decimal("0.10"),
    }
    assert {one.name: one.gate for one in SUPPORT.dimensions if one.gate is not None} == {
        "correctness": 3,
        "policy_and_safety": 4,
    }
    assert (SUPPORT.scale_low, SUPPORT.scale_high, SUPPORT.bar) == (1, 5, Decimal(75))
    assert [one.name for one in SUPPORT.dimensions if one.observation_only] == ["correctness"]


def test_agent_output_has_the_weights_bar_and_tiers_of_the_specification() -> None:
    assert {dimension.name: dimension.weight for dimension in AGENT_OUTPUT.dimensions} == {
        "accuracy": Decimal("0.30"),
        "groundedness": Decimal("0.25"),
        "completeness": Decimal("0.20"),
        "coherence": Decimal("0.15"),
        "helpfulness": Decimal("0.10"),
    }
    assert (AGENT_OUTPUT.composite, AGENT_OUTPUT.bar) == (CompositeKind.MEAN, Decimal("2.5"))
    assert [(tier.name, tier.least) for tier in AGENT_OUTPUT.tiers] == [
        ("EXCELLENT", Decimal("4.5")),
        ("GOOD", Decimal("3.5")),
        ("ADEQUATE", Decimal("2.5")),
        ("POOR", Decimal("1.5")),
        ("FAILING", Decimal(1)),
    ]


@pytest.mark.parametrize("dimension", [*SUPPORT.dimensions, *AGENT_OUTPUT.dimensions], ids=lambda dimension: f"{dimension.name}")
def test_every_shipped_dimension_says_what_it_needs_and_shows_it(dimension: Any) -> None:
    assert [score for score, _ in dimension.anchors] in ([1, 3, 5], [1, 2, 3, 4, 5])
    assert dimension.requires
    assert dimension.yes_no
    assert [example.kind for example in dimension.examples] == list(ExampleKind)
    assert [example.score for example in dimension.examples] == [5, 1, 3]


def written(tmp_path: Path, **changes: Any) -> Path:
    """A rubric file: the shipped one with changes to its first dimension, or to the whole."""
    rubric = YAML(typ="safe").load((SHIPPED / "support.yaml").read_text())
    for key, value in changes.items():
        (rubric if key in rubric or key in ("extra", "tiers") else rubric["dimensions"][0])[key] = value
    path = tmp_path / "mine.yaml"
    YAML(typ="safe").dump(rubric, path)
    return path


def test_a_copy_is_the_same_rubric(tmp_path: Path) -> None:
    assert load(written(tmp_path)) == SUPPORT


def test_weights_are_decimals_however_they_are_written(tmp_path: Path) -> None:
    assert load(written(tmp_path, weight=0.35)) == SUPPORT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": "0.36"}, "the weights sum to 1.01; make them sum to exactly 1"),
        ({"weight": "0.3500000001"}, "the weights sum to 1.0000000001"),
        ({"weight": "-1"}, "dimensions.0.weight"),
        ({"weight": "NaN"}, "dimensions.0.weight"),
        ({"gate": 6}, "correctness names the score 6, which is not on the scale 1 to 5"),
        ({"anchors": {1: "bad", 3: "fair"}}, "correctness needs an anchor for 1 and one for 5"),
        ({"anchors": {1: "bad", 5: "good", 7: "better"}}, "the score 7"),
        ({"scale": {"lowest": 5, "highest": 1}}, "write the lower number as `lowest`"),
        ({"bar": 101}, "bar"),
        ({"composite": "magic"}, "composite"),
        ({"extra": 1}, "extra"),
        ({"composite": "mean"}, "the bar 75 is not on the composite, which runs from 1 to 5"),
        ({"tiers": [{"name": "A", "least": 50, "action": "ship"}]}, "the last one 0"),
        ({"tiers": [{"name": "A", "least": 0, "action": "x"}, {"name": "B", "least": 50, "action": "y"}]}, "from the best down"),
        ({"dimensions": []}, "dimensions"),
        ({"name": "Correctness!"}, "name"),
    ],
)
def test_a_mistake_is_told_by_where_it_stands(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as mistake:
        load(written(tmp_path, **change))
    assert message in str(mistake.value)
    assert "mine.yaml" in str(mistake.value)


def test_two_dimensions_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace("name: tone", "name: format"))
    with pytest.raises(ConfigurationError, match="two dimensions are called format"):
        load(path)


def test_a_rubric_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="write the path of a file, or one of: agent-output, support"):
        load("suport")


def test_what_is_no_yaml_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: [")
    with pytest.raises(ConfigurationError, match="cannot be read as YAML"):
        load(path)
