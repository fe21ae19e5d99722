"""Rubrics as they are written in files: dimensions on a scale, or criteria. What fits together is told by ``pipeline.config.rubric_rules``."""

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import msgspec
from pydantic import Field

from pipeline.judges.settings import ModelId
from pipeline.model.rubric import (
    CompositeKind,
    Dimension,
    Example,
    ExampleKind,
    MeasuredBy,
    Panel,
    PanelRule,
    ReferenceUse,
    Rubric,
    Tier,
)
from pipeline.model.settings import Settings

SHIPPED: Final = Path(__file__).parent / "rubrics"
ONE: Final = Decimal(1)

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
Text = Annotated[str, Field(min_length=1)]


class ScaleFile(Settings):
    """The whole-numbered scale of all dimensions."""

    lowest: int
    """The worst score."""
    highest: int
    """The best score."""


class _Shown(Settings):
    kind: ExampleKind
    """What it shows."""
    evidence: Text
    """What there was to see."""
    answer: Text
    """What the agent answered."""
    why: Text
    """In one sentence."""


class ExampleFile(_Shown):
    """A graded example."""

    score: int
    """On the scale."""

    def example(self) -> Example:
        """Return what was written, as the noun that the pipeline uses."""
        return Example(self.kind, self.evidence, self.answer, self.score, self.why)


class PanelFile(Settings):
    """Several models that judge, each with one vote, in place of ``judge.model``."""

    models: tuple[ModelId, ...]
    """Their ids, as ``judge.model`` and ``judge.models`` have them; two or more, all different."""
    rule: PanelRule = PanelRule.MAJORITY
    """Whether more than half of them decide, or few can fail it."""
    vetoes: Annotated[int, Field(ge=1)] | None = None
    """With ``rule: veto``: how many votes under the line fail it; one where nothing is written."""

    def panel(self) -> Panel:
        """Return what was written, as the noun that the pipeline uses."""
        return Panel(self.models, self.rule, 1 if self.vetoes is None else self.vetoes)


class _Part(Settings):
    name: Name
    """Of its own."""
    requires: tuple[Text, ...] = ()
    """The evidence without which the answer is Unknown."""
    yes_no: tuple[Text, ...] = ()
    """Questions that the grader goes through before it decides."""
    measured_by: MeasuredBy = MeasuredBy.JUDGE
    """Who measures it."""
    observation_only: bool = False
    """Whether the quote behind a score above the lowest must be an observation."""
    panel: PanelFile | None = None
    """Who judges it, in place of one model and of the rubric's panel."""
    reference: ReferenceUse | None = None
    """Whether a reference answer is shown where there is one, or nothing is graded without one."""


class DimensionFile(_Part):
    """One dimension, as written."""

    weight: Annotated[Decimal, Field(ge=0, le=1)]
    """Its share of the composite."""
    anchors: dict[int, Text]
    """What a score means, at least for both ends of the scale."""
    examples: tuple[ExampleFile, ...] = ()
    """A clear pass, a clear failure and a borderline case."""
    gate: int | None = None
    """The least score that may pass."""

    def dimension(self) -> Dimension:
        """Return what was written, as the noun that the pipeline uses."""
        return Dimension(
            name=self.name,
            weight=self.weight,
            anchors=tuple(sorted(self.anchors.items())),
            requires=self.requires,
            yes_no=self.yes_no,
            examples=tuple(example.example() for example in self.examples),
            gate=self.gate,
            measured_by=self.measured_by,
            observation_only=self.observation_only,
            reference=msgspec.UNSET if self.reference is None else self.reference,
        )


class TierFile(Settings):
    """What a composite from ``least`` on is called, and what is to be done then."""

    name: Text
    """Such as GOOD."""
    least: Decimal
    """On the composite's scale."""
    action: Text
    """Such as approve with notes."""


class RubricFile(Settings):
    """A rubric of dimensions, as written."""

    name: Name
    """Of its own."""
    version: Text
    """In quotes."""
    scale: ScaleFile
    """Of all dimensions."""
    bar: Decimal
    """Least composite that passes."""
    dimensions: Annotated[tuple[DimensionFile, ...], Field(min_length=1)]
    """Four to six, as a habit."""
    composite: CompositeKind = CompositeKind.PERCENT
    """How they add up."""
    tiers: tuple[TierFile, ...] = ()
    """From the best down."""
    panel: PanelFile | None = None
    """Who judges each dimension that has no panel of its own, in place of one model."""

    def rubric(self) -> Rubric:
        """Return what was written, as the noun that the pipeline uses."""
        return Rubric(
            name=self.name,
            version=self.version,
            scale_low=self.scale.lowest,
            scale_high=self.scale.highest,
            bar=self.bar,
            dimensions=tuple(dimension.dimension() for dimension in self.dimensions),
            composite=self.composite,
            tiers=tuple(Tier(tier.name, tier.least, tier.action) for tier in self.tiers),
            panels=_panels(self.dimensions, self.panel),
        )


class Ruling(StrEnum):
    """What a criterion's example came to."""

    PASS = "PASS"
    FAIL = "FAIL"


class CaseFile(_Shown):
    """A graded example of a criterion."""

    verdict: Ruling
    """What it came to."""

    def example(self) -> Example:
        """Return what was written, as the noun that the pipeline uses."""
        return Example(self.kind, self.evidence, self.answer, int(self.verdict is Ruling.PASS), self.why)


class CriterionFile(_Part):
    """One criterion, as written."""

    pass_when: Text
    """What must hold, as the rest of a sentence that begins with PASS when."""
    hard: bool = False
    """Whether a fail makes the whole score 0."""
    examples: tuple[CaseFile, ...] = ()
    """A clear pass, a clear failure and a borderline case."""

    def dimension(self) -> Dimension:
        """Return what was written, as the noun that the pipeline uses."""
        return Dimension(
            name=self.name,
            weight=ONE,
            anchors=((1, self.pass_when),),
            requires=self.requires,
            yes_no=self.yes_no,
            examples=tuple(example.example() for example in self.examples),
            gate=1 if self.hard else None,
            measured_by=self.measured_by,
            observation_only=self.observation_only,
            reference=msgspec.UNSET if self.reference is None else self.reference,
        )


class CriteriaFile(Settings):
    """A rubric of criteria, as written: no weights and no scale (spec section 2.3)."""

    name: Name
    """Of its own."""
    version: Text
    """In quotes."""
    bar: Decimal
    """Least share of passes, 0 to 1, that passes."""
    criteria: Annotated[tuple[CriterionFile, ...], Field(min_length=1)]
    """Each passed or failed."""
    panel: PanelFile | None = None
    """Who judges each criterion that has no panel of its own, in place of one model."""

    def rubric(self) -> Rubric:
        """Return what was written, as the noun that the pipeline uses."""
        return Rubric(
            name=self.name,
            version=self.version,
            scale_low=0,
            scale_high=1,
            bar=self.bar,
            dimensions=tuple(criterion.dimension() for criterion in self.criteria),
            composite=CompositeKind.CRITERIA,
            panels=_panels(self.criteria, self.panel),
        )


def _panels(parts: Sequence[_Part], panel: PanelFile | None) -> tuple[tuple[str, Panel], ...]:
    voted = ((part.name, part.panel or panel) for part in parts if part.measured_by is MeasuredBy.JUDGE)
    return tuple((name, one.panel()) for name, one in voted if one is not None)
