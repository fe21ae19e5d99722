"""Rubric rules: what must hold between the parts of a rubric, whoever wrote it (spec section 2). A written rubric in, what is wrong out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Final, TypeAlias

from msgspec import UNSET

from pipeline.config.mistake import Location
from pipeline.judges.rubric_file import CriteriaFile, DimensionFile, PanelFile, RubricFile
from pipeline.model.rubric import CompositeKind, Dimension, ExampleKind, MeasuredBy, PanelRule, Rubric

Finding: TypeAlias = tuple[Location, str]
"""Where, and what to write instead."""
RESERVED: Final = ("verdict", "composite", "recovery_runs")
"""Results that every run has beside its dimensions."""
_FEWEST_MODELS: Final = 2
_OF_SCALES: Final = ("scale", "composite", "tiers", "dimensions")
_OF_DIMENSIONS: Final = ("weight", "anchors", "gate")


def foreign(data: Mapping[Any, Any]) -> Iterator[Finding]:
    """Yield what criteria cannot have, from a file that is read as one of criteria."""
    for key in _OF_SCALES:
        if key in data:
            yield (key,), f"criteria are passed or failed and have no {key}; remove it, or remove `criteria`"
    criteria = data.get("criteria")
    for index, one in enumerate(criteria if isinstance(criteria, list) else ()):
        for key in _OF_DIMENSIONS:
            if isinstance(one, Mapping) and key in one:
                instead = "write `hard: true` where a fail makes the score 0" if key == "gate" else "remove it"
                yield ("criteria", index, key), f"criteria are passed or failed and have no {key}; {instead}"


def findings(written: RubricFile | CriteriaFile) -> Iterator[Finding]:
    """Yield what does not fit together."""
    rubric = written.rubric()
    at = "criteria" if rubric.is_of_criteria else "dimensions"
    yield from _bar(rubric)
    yield from _names(at, rubric)
    for index, dimension in enumerate(rubric.dimensions):
        for place, what in _lists(dimension, rubric):
            yield (at, index, *place), what
    parts = written.dimensions if isinstance(written, RubricFile) else written.criteria
    yield from _panel((), written.panel)
    for index, part in enumerate(parts):
        yield from _panel((at, index), part.panel)
        if part.panel is not None and part.measured_by is not MeasuredBy.JUDGE:
            yield (at, index, "panel"), "votes on what no judge measures; remove it"
    if isinstance(written, RubricFile):
        yield from _of_scales(written, rubric)


def _panel(at: Location, written: PanelFile | None) -> Iterator[Finding]:
    if written is None:
        return
    panel, here = written.panel(), (*at, "panel")
    if len(panel.models) < _FEWEST_MODELS:
        yield (*here, "models"), "is no panel; name two models or more, or remove the panel: one model judges without one"
    for index, model in enumerate(panel.models):
        if model in panel.models[:index]:
            yield (*here, "models", index), f"{model} votes twice, and would only agree with itself; name each model once"
    if written.vetoes is not None and panel.rule is not PanelRule.VETO:
        yield (*here, "vetoes"), "belongs to `rule: veto`; write that, or remove it"
    elif panel.vetoes > max(panel.most_vetoes, 1):
        most = f"write at most {panel.most_vetoes} of {len(panel.models)}"
        yield (*here, "vetoes"), f"{panel.vetoes} would pass what most of the models fail; {most}"


def _bar(rubric: Rubric) -> Iterator[Finding]:
    low, high = rubric.composite_ends
    if not low <= rubric.bar <= high and low < high:
        yield ("bar",), f"{rubric.bar} is not on the composite, which runs from {low} to {high}; write a number in this range"
    elif rubric.is_of_criteria and rubric.bar != round(rubric.bar, 3):
        yield ("bar",), f"{rubric.bar} is finer than the score, which has three decimals; write such as 0.667"


def _names(at: str, rubric: Rubric) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, dimension in enumerate(rubric.dimensions):
        first = seen.setdefault(dimension.name, index)
        if first != index:
            yield (at, index, "name"), f"{dimension.name} is the name of {at}[{first}] too; give each a name of its own"
        if dimension.name in RESERVED:
            yield (at, index, "name"), f"every run has a result called {dimension.name} of its own; write another name"


def _lists(dimension: Dimension, rubric: Rubric) -> Iterator[Finding]:
    """Yield what is wrong with what a grader is told; a dimension that code measures has none."""
    for key, listed in (("requires", dimension.requires), ("yes_no", dimension.yes_no)):
        for index, text in enumerate(listed):
            if text in listed[:index]:
                yield (key, index), "stands there twice; remove one of the two"
    if dimension.measured_by is not MeasuredBy.JUDGE and dimension.reference is not UNSET:
        yield ("reference",), "is what a judge is shown, and no judge measures this; remove it"
    if dimension.measured_by is MeasuredBy.CODE:
        return
    if not dimension.requires:
        yield ("requires",), "names no evidence; write what must be there for a score to be possible, such as `[the reply]`"
    yield from _examples(dimension, rubric)


def _examples(dimension: Dimension, rubric: Rubric) -> Iterator[Finding]:
    shown = {example.kind for example in dimension.examples}
    missing = [kind.value for kind in ExampleKind if kind not in shown]
    if missing:
        yield ("examples",), f"has no {' and no '.join(missing)}; show a clear pass, a clear failure and a borderline case"
    scale = range(rubric.scale_low, rubric.scale_high + 1)
    least = next((score for score in scale if rubric.passes(dimension, score)), None)
    if least is None or least == rubric.scale_low:
        return  # the scale or the gate is the mistake
    key = "verdict" if rubric.is_of_criteria else "score"
    passes = (
        "a clear_pass is PASS and a clear_failure FAIL" if rubric.is_of_criteria else f"{dimension.name} passes from {least} on"
    )
    for index, example in enumerate(dimension.examples):
        if example.score not in scale:
            yield ("examples", index, key), _off_scale(example.score, rubric)
        elif example.kind is ExampleKind.CLEAR_PASS and example.score < least:
            yield ("examples", index, key), f"is that of a clear_pass, and fails; {passes}"
        elif example.kind is ExampleKind.CLEAR_FAILURE and example.score >= least:
            yield ("examples", index, key), f"is that of a clear_failure, and passes; {passes}"


def _off_scale(score: int, rubric: Rubric) -> str:
    return f"{score} is not on the scale, which runs from {rubric.scale_low} to {rubric.scale_high}"


def _of_scales(written: RubricFile, rubric: Rubric) -> Iterator[Finding]:
    if written.composite is CompositeKind.CRITERIA:
        yield ("composite",), "a rubric of criteria has `criteria` in the place of `dimensions`, and neither scale nor weights"
    if rubric.scale_low >= rubric.scale_high:
        yield ("scale",), f"runs from {rubric.scale_low} to {rubric.scale_high}; write the lower number as `lowest`"
        return
    total = sum((dimension.weight for dimension in rubric.dimensions), Decimal(0))
    if total != 1:
        yield ("dimensions",), f"the weights sum to {total}; make them sum to exactly 1"
    yield from _tiers(rubric)
    for index, dimension in enumerate(written.dimensions):
        for place, what in chain.from_iterable(rule(dimension, rubric) for rule in _RULES):
            yield ("dimensions", index, *place), what


def _tiers(rubric: Rubric) -> Iterator[Finding]:
    low, high = rubric.composite_ends
    leasts = [tier.least for tier in rubric.tiers]
    if leasts and (leasts != sorted(set(leasts), reverse=True) or leasts[-1] != low or leasts[0] > high):
        yield ("tiers",), f"write tiers from the best down, each with a smaller `least` than the one before, the last one {low}"


def _anchors(dimension: DimensionFile, rubric: Rubric) -> Iterator[Finding]:
    for score in dimension.anchors:
        if not rubric.scale_low <= score <= rubric.scale_high:
            yield ("anchors", score), _off_scale(score, rubric)
    missing = [end for end in (rubric.scale_low, rubric.scale_high) if end not in dimension.anchors]
    if missing:
        yield ("anchors",), f"has none for {' and none for '.join(map(str, missing))}; say what both ends of the scale mean"
    meanings: Sequence[str] = list(dimension.anchors.values())
    for place, (score, meaning) in enumerate(dimension.anchors.items()):
        if meaning in meanings[:place]:
            yield ("anchors", score), "says what another anchor says; a grader cannot tell the two scores apart"


def _gate(dimension: DimensionFile, rubric: Rubric) -> Iterator[Finding]:
    gate = dimension.gate
    if gate is not None and not rubric.scale_low <= gate <= rubric.scale_high:
        yield ("gate",), _off_scale(gate, rubric)
    elif gate == rubric.scale_low:
        yield ("gate",), f"{gate} is the lowest score, so it stops nothing; write {gate + 1} or more, or remove it"


_RULES: Final[tuple[Callable[[DimensionFile, Rubric], Iterable[Finding]], ...]] = (_anchors, _gate)
