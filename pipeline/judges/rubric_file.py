"""Rubrics in files: a path, or the name of one that ships, in; a Rubric out."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline.errors import ConfigurationError
from pipeline.model.rubric import CompositeKind, Dimension, Example, ExampleKind, MeasuredBy, Rubric, Tier

SHIPPED: Final = Path(__file__).parent / "rubrics"

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScaleFile(_Part):
    """The whole-numbered scale of all dimensions."""

    lowest: int
    highest: int


class ExampleFile(_Part):
    """A graded example."""

    kind: ExampleKind
    evidence: Text
    answer: Text
    score: int
    why: Text


class DimensionFile(_Part):
    """One dimension, as written."""

    name: Name
    weight: Annotated[Decimal, Field(ge=0, le=1)]
    anchors: dict[int, Text]
    requires: tuple[Text, ...] = ()
    yes_no: tuple[Text, ...] = ()
    examples: tuple[ExampleFile, ...] = ()
    gate: int | None = None
    measured_by: MeasuredBy = MeasuredBy.JUDGE
    observation_only: bool = False


class TierFile(_Part):
    """What a composite from ``least`` on is called, and what is to be done then."""

    name: Text
    least: Decimal
    action: Text


class RubricFile(_Part):
    """A rubric, as written."""

    name: Name
    version: Text
    scale: ScaleFile
    bar: Annotated[Decimal, Field(ge=0, le=100)]
    dimensions: Annotated[tuple[DimensionFile, ...], Field(min_length=1)]
    composite: CompositeKind = CompositeKind.PERCENT
    tiers: tuple[TierFile, ...] = ()

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> Self:
        total = sum((dimension.weight for dimension in self.dimensions), Decimal(0))
        if total != 1:
            raise ValueError(f"the weights sum to {total}; make them sum to exactly 1")
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [dimension.name for dimension in self.dimensions]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two dimensions are called {name}; give each a name of its own")
        return self

    @model_validator(mode="after")
    def _scores_are_on_the_scale(self) -> Self:
        lowest, highest = self.scale.lowest, self.scale.highest
        if lowest >= highest:
            raise ValueError(f"the scale runs from {lowest} to {highest}; write the lower number as `lowest`")
        for dimension in self.dimensions:
            gate = [] if dimension.gate is None else [dimension.gate]
            for score in (*dimension.anchors, *gate, *(example.score for example in dimension.examples)):
                if not lowest <= score <= highest:
                    raise ValueError(f"{dimension.name} names the score {score}, which is not on the scale {lowest} to {highest}")
            if not {lowest, highest} <= set(dimension.anchors):
                raise ValueError(f"{dimension.name} needs an anchor for {lowest} and one for {highest}")
        return self

    @model_validator(mode="after")
    def _bar_and_tiers_are_on_the_composite(self) -> Self:
        low, high = (0, 100) if self.composite is CompositeKind.PERCENT else (self.scale.lowest, self.scale.highest)
        if not low <= self.bar <= high:
            raise ValueError(f"the bar {self.bar} is not on the composite, which runs from {low} to {high}")
        leasts = [tier.least for tier in self.tiers]
        if leasts and (leasts != sorted(set(leasts), reverse=True) or leasts[-1] != low or leasts[0] > high):
            raise ValueError(
                f"write tiers from the best down, each with a smaller `least` than the one before, the last one {low}"
            )
        return self

    def rubric(self) -> Rubric:
        """Return what was written, as the noun that the pipeline uses."""
        return Rubric(
            name=self.name,
            version=self.version,
            scale_low=self.scale.lowest,
            scale_high=self.scale.highest,
            bar=self.bar,
            dimensions=tuple(_dimension(dimension) for dimension in self.dimensions),
            composite=self.composite,
            tiers=tuple(Tier(tier.name, tier.least, tier.action) for tier in self.tiers),
        )


def load(path_or_name: str | Path) -> Rubric:
    """Read a rubric: a shipped one by its name, any other by its path.

    Raises:
        ConfigurationError: with every mistake and where it stands.
    """
    path = _find(path_or_name)
    try:
        written = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        return RubricFile.model_validate(written).rubric()
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise ConfigurationError(f"{path} cannot be read as YAML: {error}") from error
    except ValidationError as error:
        raise ConfigurationError(f"{path} is not a rubric:\n{_explain(error)}") from error


def _find(path_or_name: str | Path) -> Path:
    shipped = {path.stem: path for path in SHIPPED.glob("*.yaml")}
    if str(path_or_name) in shipped:
        return shipped[str(path_or_name)]
    path = Path(path_or_name)
    if not path.is_file():
        raise ConfigurationError(
            f"there is no rubric {path_or_name}; write the path of a file, or one of: {', '.join(sorted(shipped))}"
        )
    return path


def _explain(error: ValidationError) -> str:
    return "\n".join(
        f"  {'.'.join(map(str, part['loc'])) or 'rubric'}: {part['msg'].removeprefix('Value error, ')}" for part in error.errors()
    )


def _dimension(written: DimensionFile) -> Dimension:
    return Dimension(
        name=written.name,
        weight=written.weight,
        anchors=tuple(sorted(written.anchors.items())),
        requires=written.requires,
        yes_no=written.yes_no,
        examples=tuple(Example(**example.model_dump()) for example in written.examples),
        gate=written.gate,
        measured_by=written.measured_by,
        observation_only=written.observation_only,
    )
