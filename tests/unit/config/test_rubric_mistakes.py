"""A user's own rubric: every mistake in it is one sentence, with its line, and all are told at once."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline.config.load import read
from pipeline.config.rubrics import load
from pipeline.errors import ConfigurationError
from pipeline.judges.rubric_file import SHIPPED
from pipeline.model.rubric import MeasuredBy, Panel, PanelRule

Change = Callable[[dict[str, Any]], object]


def written(folder: Path, change: Change, shipped: str = "support") -> Path:
    """A rubric file: a shipped one with something changed."""
    rubric = YAML(typ="safe").load((SHIPPED / f"{shipped}.yaml").read_text())
    change(rubric)
    path = folder / "mine.yaml"
    YAML(typ="safe").dump(rubric, path)
    return path


def mistakes(path: Path) -> list[str]:
    """The mistakes in a rubric, without the line that says whose they are."""
    with pytest.raises(ConfigurationError) as refused:
        load(path)
    first, *lines = str(refused.value).splitlines()
    assert first == f"{path} is not a rubric:"
    return [line.strip().removeprefix("mine.yaml:").lstrip("0123456789").removeprefix(": ") for line in lines]


def dimension(at: int = 0, **fields: Any) -> Change:
    """Change fields of a dimension; None removes one."""
    return lambda rubric: _put(rubric["dimensions"][at], fields)


def criterion(at: int = 0, **fields: Any) -> Change:
    return lambda rubric: _put(rubric["criteria"][at], fields)


def top(**fields: Any) -> Change:
    return lambda rubric: _put(rubric, fields)


def example(at: int, **fields: Any) -> Change:
    return lambda rubric: _put(rubric["dimensions"][0]["examples"][at], fields)


def _put(part: dict[str, Any], fields: dict[str, Any]) -> None:
    for key, value in fields.items():
        if value is None:
            part.pop(key)
        else:
            part[key] = value


def without_a_borderline_case(rubric: dict[str, Any]) -> None:
    rubric["dimensions"][0]["examples"].pop()


OF_DIMENSIONS: dict[str, tuple[Change, str]] = {
    "weights": (dimension(weight="0.36"), "dimensions: the weights sum to 1.01; make them sum to exactly 1"),
    "weights that nearly sum": (
        dimension(weight="0.3500000001"),
        "dimensions: the weights sum to 1.0000000001; make them sum to exactly 1",
    ),
    "a weight below 0": (
        dimension(weight="-1"),
        "dimensions[0].weight: -1 is not between 0 and 1; write a share such as 0.2",
    ),
    "a weight that is none": (dimension(weight="much"), "dimensions[0].weight: much is not a number; write a number"),
    "a weight that is missing": (
        dimension(weight=None),
        "dimensions[0].weight: is missing (Its share of the composite); write `weight: …`",
    ),
    "no anchor at an end": (
        dimension(anchors={1: "bad", 3: "fair"}),
        "dimensions[0].anchors: has none for 5; say what both ends of the scale mean",
    ),
    "no anchor at either end": (
        dimension(anchors={3: "fair"}),
        "dimensions[0].anchors: has none for 1 and none for 5; say what both ends of the scale mean",
    ),
    "an anchor off the scale": (
        dimension(anchors={1: "bad", 5: "good", 7: "better"}),
        "dimensions[0].anchors[7]: 7 is not on the scale, which runs from 1 to 5",
    ),
    "two anchors that say the same": (
        dimension(anchors={1: "bad", 4: "good", 5: "good"}),
        "dimensions[0].anchors[5]: says what another anchor says; a grader cannot tell the two scores apart",
    ),
    "a gate above the scale": (dimension(gate=6), "dimensions[0].gate: 6 is not on the scale, which runs from 1 to 5"),
    "a gate below the scale": (dimension(gate=0), "dimensions[0].gate: 0 is not on the scale, which runs from 1 to 5"),
    "a gate that stops nothing": (
        dimension(gate=1),
        "dimensions[0].gate: 1 is the lowest score, so it stops nothing; write 2 or more, or remove it",
    ),
    "no evidence": (
        dimension(requires=None),
        "dimensions[0].requires: names no evidence; write what must be there for a score to be possible, such as `[the reply]`",
    ),
    "evidence named twice": (
        dimension(requires=["the reply", "the reply"]),
        "dimensions[0].requires[1]: stands there twice; remove one of the two",
    ),
    "a question asked twice": (
        dimension(yes_no=["Is it so?", "Is it?", "Is it so?"]),
        "dimensions[0].yes_no[2]: stands there twice; remove one of the two",
    ),
    "a question without words": (dimension(yes_no=[""]), "dimensions[0].yes_no[0]: is empty; write a text"),
    "no examples": (
        dimension(examples=None),
        (
            "dimensions[0].examples: has no clear_pass and no clear_failure and no borderline; "
            "show a clear pass, a clear failure and a borderline case"
        ),
    ),
    "no borderline case": (
        without_a_borderline_case,
        "dimensions[0].examples: has no borderline; show a clear pass, a clear failure and a borderline case",
    ),
    "an example off the scale": (
        example(2, score=9),
        "dimensions[0].examples[2].score: 9 is not on the scale, which runs from 1 to 5",
    ),
    "a clear pass that fails its gate": (
        example(0, score=2),
        "dimensions[0].examples[0].score: is that of a clear_pass, and fails; correctness passes from 3 on",
    ),
    "a clear failure that passes": (
        example(1, score=3),
        "dimensions[0].examples[1].score: is that of a clear_failure, and passes; correctness passes from 3 on",
    ),
    "an example of no kind": (
        example(0, kind="good"),
        "dimensions[0].examples[0].kind: good is not one of clear_pass, clear_failure, borderline; write one of these",
    ),
    "a scale upside down": (
        top(scale={"lowest": 5, "highest": 1}),
        "scale: runs from 5 to 1; write the lower number as `lowest`",
    ),
    "a bar off the composite": (
        top(bar=101),
        "bar: 101 is not on the composite, which runs from 0 to 100; write a number in this range",
    ),
    "a bar on another composite": (
        top(composite="mean"),
        "bar: 75 is not on the composite, which runs from 1 to 5; write a number in this range",
    ),
    "a bar that is no number": (top(bar=float("nan")), "bar: .nan is not a number; write a finite one, or put text in quotes"),
    "an unknown composite": (
        top(composite="magic"),
        "composite: magic is not one of percent, mean, criteria; write one of these",
    ),
    "a composite of criteria without criteria": (
        top(composite="criteria", bar=1),
        "composite: a rubric of criteria has `criteria` in the place of `dimensions`, and neither scale nor weights",
    ),
    "tiers that do not reach down": (
        top(tiers=[{"name": "A", "least": 50, "action": "ship"}]),
        "tiers: write tiers from the best down, each with a smaller `least` than the one before, the last one 0",
    ),
    "tiers upwards": (
        top(tiers=[{"name": "A", "least": 0, "action": "x"}, {"name": "B", "least": 50, "action": "y"}]),
        "tiers: write tiers from the best down, each with a smaller `least` than the one before, the last one 0",
    ),
    "two of one name": (
        dimension(4, name="format"),
        "dimensions[4].name: format is the name of dimensions[3] too; give each a name of its own",
    ),
    "the name of a result": (
        dimension(4, name="verdict"),
        "dimensions[4].name: every run has a result called verdict of its own; write another name",
    ),
    "a name that cannot be used": (
        top(name="Mine!"),
        "name: Mine! is not a name that can be used here; write one that fits ^[a-z][a-z0-9_-]*$",
    ),
    "no dimensions": (top(dimensions=[]), "dimensions: is empty; write at least one"),
    "an unknown key": (
        top(scales=1),
        "scales: unknown key; did you mean `scale`? Known here: name, version, scale, bar, dimensions, composite, tiers, panel",
    ),
    "a panel of one": (
        dimension(panel={"models": ["gpt-4.1"]}),
        "dimensions[0].panel.models: is no panel; name two models or more, or remove the panel: one model judges without one",
    ),
    "a model that votes twice": (
        top(panel={"models": ["gpt-4.1", "m", "gpt-4.1"]}),
        "panel.models[2]: gpt-4.1 votes twice, and would only agree with itself; name each model once",
    ),
    "vetoes by majority": (
        dimension(panel={"models": ["a", "b"], "vetoes": 1}),
        "dimensions[0].panel.vetoes: belongs to `rule: veto`; write that, or remove it",
    ),
    "more vetoes than leave a majority": (
        dimension(panel={"models": ["a", "b", "c"], "rule": "veto", "vetoes": 3}),
        "dimensions[0].panel.vetoes: 3 would pass what most of the models fail; write at most 2 of 3",
    ),
    "no veto at all": (
        dimension(panel={"models": ["a", "b", "c"], "rule": "veto", "vetoes": 0}),
        "dimensions[0].panel.vetoes: 0 is too small; write 1 or more",
    ),
    "a rule that is none": (
        dimension(panel={"models": ["a", "b"], "rule": "mean"}),
        "dimensions[0].panel.rule: mean is not one of majority, veto; write one of these",
    ),
    "a panel on what code measures": (
        dimension(measured_by="code", requires=None, examples=None, yes_no=None, panel={"models": ["a", "b"]}),
        "dimensions[0].panel: votes on what no judge measures; remove it",
    ),
    "nobody known measures it": (
        dimension(measured_by="cook"),
        "dimensions[0].measured_by: cook is not one of code, judge, human; write one of these",
    ),
}

OF_CRITERIA: dict[str, tuple[Change, str]] = {
    "a scale": (
        top(scale={"lowest": 1, "highest": 5}),
        "scale: criteria are passed or failed and have no scale; remove it, or remove `criteria`",
    ),
    "a composite": (
        top(composite="mean"),
        "composite: criteria are passed or failed and have no composite; remove it, or remove `criteria`",
    ),
    "tiers": (top(tiers=[]), "tiers: criteria are passed or failed and have no tiers; remove it, or remove `criteria`"),
    "dimensions too": (
        top(dimensions=[]),
        "dimensions: criteria are passed or failed and have no dimensions; remove it, or remove `criteria`",
    ),
    "a weight": (criterion(weight=1), "criteria[0].weight: criteria are passed or failed and have no weight; remove it"),
    "anchors": (
        criterion(anchors={1: "x"}),
        "criteria[0].anchors: criteria are passed or failed and have no anchors; remove it",
    ),
    "a gate": (
        criterion(2, gate=1),
        "criteria[2].gate: criteria are passed or failed and have no gate; write `hard: true` where a fail makes the score 0",
    ),
    "nothing to pass by": (
        criterion(pass_when=None),
        "criteria[0].pass_when: is missing (What must hold, as the rest of a sentence that begins with PASS when); write `pass_when: …`",
    ),
    "a bar above 1": (
        top(bar=75),
        "bar: 75 is not on the composite, which runs from 0 to 1; write a number in this range",
    ),
    "a bar finer than the score": (
        top(bar="0.6667"),
        "bar: 0.6667 is finer than the score, which has three decimals; write such as 0.667",
    ),
    "no criteria": (top(criteria=[]), "criteria: is empty; write at least one"),
    "no evidence": (
        criterion(requires=[]),
        "criteria[0].requires: names no evidence; write what must be there for a score to be possible, such as `[the reply]`",
    ),
    "no examples": (
        criterion(3, examples=[]),
        (
            "criteria[3].examples: has no clear_pass and no clear_failure and no borderline; "
            "show a clear pass, a clear failure and a borderline case"
        ),
    ),
    "an example between pass and fail": (
        lambda rubric: _put(rubric["criteria"][0]["examples"][2], {"verdict": "PARTLY"}),
        "criteria[0].examples[2].verdict: PARTLY is not one of PASS, FAIL; write one of these",
    ),
    "a clear pass that fails": (
        lambda rubric: _put(rubric["criteria"][0]["examples"][0], {"verdict": "FAIL"}),
        "criteria[0].examples[0].verdict: is that of a clear_pass, and fails; a clear_pass is PASS and a clear_failure FAIL",
    ),
    "a panel of one": (
        criterion(panel={"models": ["gpt-4.1"]}),
        "criteria[0].panel.models: is no panel; name two models or more, or remove the panel: one model judges without one",
    ),
    "two of one name": (
        criterion(1, name="grounded"),
        "criteria[1].name: grounded is the name of criteria[0] too; give each a name of its own",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), OF_DIMENSIONS.values(), ids=OF_DIMENSIONS)
def test_a_mistake_in_a_rubric_of_dimensions_is_one_sentence(tmp_path: Path, change: Change, sentence: str) -> None:
    assert mistakes(written(tmp_path, change)) == [sentence]


@pytest.mark.parametrize(("change", "sentence"), OF_CRITERIA.values(), ids=OF_CRITERIA)
def test_a_mistake_in_a_rubric_of_criteria_is_one_sentence(tmp_path: Path, change: Change, sentence: str) -> None:
    assert mistakes(written(tmp_path, change, "criteria")) == [sentence]


def test_a_panel_of_the_rubric_is_that_of_each_dimension_without_its_own(tmp_path: Path) -> None:
    veto = {"models": ["a", "b", "c"], "rule": "veto", "vetoes": 2}

    def change(rubric: dict[str, Any]) -> None:
        _put(rubric, {"panel": {"models": ["a", "b"]}})
        _put(rubric["dimensions"][2], {"panel": veto})
        _put(rubric["dimensions"][4], {"measured_by": "code", "requires": None, "examples": None, "yes_no": None})

    found = load(written(tmp_path, change))
    two = Panel(("a", "b"))
    assert dict(found.panels) == {
        "correctness": two,
        "completeness": two,
        "policy_and_safety": Panel(("a", "b", "c"), PanelRule.VETO, 2),
        "format": two,
    }


@pytest.mark.parametrize("shipped", ["support", "agent-output", "criteria"])
def test_a_copy_is_the_same_rubric(tmp_path: Path, shipped: str) -> None:
    assert load(written(tmp_path, lambda _: None, shipped)) == load(shipped)


def test_weights_are_decimals_however_they_are_written(tmp_path: Path) -> None:
    assert load(written(tmp_path, dimension(weight=0.35))) == load("support")


def test_text_that_looks_like_a_reference_is_text(tmp_path: Path) -> None:
    """A rubric is hashed and shared: what it says does not depend on the environment."""
    found = load(written(tmp_path, dimension(yes_no=["Is it free of ${NAME}?"])))
    assert found.dimension("correctness").yes_no == ("Is it free of ${NAME}?",)


def test_what_code_measures_needs_nothing_that_a_grader_reads(tmp_path: Path) -> None:
    change = dimension(measured_by="code", requires=None, examples=None, yes_no=None)
    found = load(written(tmp_path, change)).dimension("correctness")
    assert (found.measured_by, found.weight) == (MeasuredBy.CODE, Decimal("0.35"))


def test_all_mistakes_are_told_at_once_by_line(tmp_path: Path) -> None:
    text = (SHIPPED / "support.yaml").read_text(encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(
        text.replace('weight: "0.35"', 'weight: "0.30"').replace("gate: 4", "gate: 9").replace("name: tone", "name: format")
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    with pytest.raises(ConfigurationError) as refused:
        load(path)
    told = [line.strip() for line in str(refused.value).splitlines()[1:]]
    assert [line.split(": ")[1] for line in told] == ["dimensions", "dimensions[2].gate", "dimensions[4].name"]
    numbers = [int(line.split(":")[1]) for line in told]
    assert [lines[number - 1].strip() for number in numbers] == ["dimensions:", "gate: 9", "- name: format"]


def test_what_is_no_yaml_is_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: [")
    assert "is not YAML here" in mistakes(path)[0]


@pytest.mark.parametrize("text", ["", "just words", "- a list"])
def test_what_is_no_mapping_is_a_mistake(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert mistakes(path)


def test_a_rubric_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="write the path of a file, or one of: agent-output, criteria, support"):
        load("suport")


def test_criteria_may_be_few(tmp_path: Path) -> None:
    """Four to six dimensions are the habit on a scale; a single criterion hides nothing."""
    written(tmp_path, lambda rubric: rubric["criteria"].pop(), "criteria")
    (tmp_path / "tracegrade.yaml").write_text("gates: []\nagents: {a: {rubric: mine.yaml}}\n", encoding="utf-8")
    found = read(tmp_path / "tracegrade.yaml", {})
    assert (found.mistakes, found.warnings) == ((), ())
