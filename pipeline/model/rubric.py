"""Rubric: the named, versioned dimensions that a run is graded on (spec section 2)."""

from decimal import Decimal
from enum import StrEnum

import msgspec

from pipeline.model import ids


class MeasuredBy(StrEnum):
    """Who measures a dimension."""

    CODE = "code"
    JUDGE = "judge"
    HUMAN = "human"


class CompositeKind(StrEnum):
    """How the dimensions add up."""

    PERCENT = "percent"
    """(weighted − lowest) / (highest − lowest) × 100, with a bar and hard gates (spec section 2.1)."""
    MEAN = "mean"
    """The weighted mean on the scale itself, with tiers (spec section 2.2)."""
    CRITERIA = "criteria"
    """Passes / criteria, 0 to 1 in three decimals; a fail of a hard criterion makes it 0 (spec section 2.3)."""


class ReferenceUse(StrEnum):
    """What a dimension does with a run's reference answer."""

    USED = "used"
    """It is shown where there is one."""
    REQUIRED = "required"
    """Nothing is graded without one."""


class ExampleKind(StrEnum):
    """What an example shows."""

    CLEAR_PASS = "clear_pass"
    CLEAR_FAILURE = "clear_failure"
    BORDERLINE = "borderline"


class Example(msgspec.Struct, frozen=True):
    """A graded case: what there was to see, what the agent answered, the score on the rubric's scale, and why."""

    kind: ExampleKind
    evidence: str
    answer: str
    score: int
    why: str


class Dimension(msgspec.Struct, frozen=True):
    """One thing that is graded by itself. Weights of a rubric sum to exactly 1; of criteria each counts one.

    A criterion is a dimension on the scale 0 (fail) to 1 (pass) whose one anchor says when it passes; a hard one is gated at 1.
    """

    name: str
    weight: Decimal
    anchors: tuple[tuple[int, str], ...]
    """(score, what it means), ascending; a score between two anchors lies between their meanings."""
    requires: tuple[str, ...] = ()
    """The evidence without which the answer is Unknown."""
    yes_no: tuple[str, ...] = ()
    """Sub-checks that the grader goes through before it decides."""
    examples: tuple[Example, ...] = ()
    gate: int | None = None
    """The least score that may pass; None where the dimension does not gate."""
    measured_by: MeasuredBy = MeasuredBy.JUDGE
    observation_only: bool = False
    """Whether the quote behind a score must be an observation, not something the agent said."""
    reference: ReferenceUse | msgspec.UnsetType = msgspec.UNSET
    """Unset where no reference answer is shown: then it is not hashed, like every field that came later."""


class PanelRule(StrEnum):
    """How the votes of a panel become one outcome."""

    MAJORITY = "majority"
    """More than half of all its models, on one side."""
    VETO = "veto"
    """So many votes under the line fail it, whatever the others say."""


class Panel(msgspec.Struct, frozen=True):
    """Models that vote on one dimension, in order, each once (judging, section 3, items 3 and 4).

    A side wins with so many decided votes that no vote which is missing could have changed it: whoever could not decide never
    makes a pass that would not have been one had they voted otherwise. No votes reach both numbers.
    """

    models: tuple[str, ...]
    rule: PanelRule = PanelRule.MAJORITY
    vetoes: int = 1
    """Votes under the line that fail it, under the rule ``veto``; at most :attr:`most_vetoes`."""

    @property
    def majority(self) -> int:
        """The least number of models that is more than half of them."""
        return len(self.models) // 2 + 1

    @property
    def most_vetoes(self) -> int:
        """With more of them a dimension would pass that most of the models fail."""
        return len(self.models) - self.majority + 1

    @property
    def fails_at(self) -> int:
        """How many decided votes under the line fail the dimension."""
        return self.vetoes if self.rule is PanelRule.VETO else self.majority

    @property
    def passes_at(self) -> int:
        """How many decided votes at the line or over it pass the dimension. Of an even panel that is tied neither number is reached."""
        return len(self.models) - self.vetoes + 1 if self.rule is PanelRule.VETO else self.majority


class Tier(msgspec.Struct, frozen=True):
    """What a composite from ``least`` on is called, and what is to be done then."""

    name: str
    least: Decimal
    action: str


class Rubric(msgspec.Struct, frozen=True, omit_defaults=True):
    """A set of dimensions on one whole-numbered scale. ``bar`` is on the composite's scale, :attr:`composite_ends`.

    What is left at its default is not hashed, so that a field added later changes the hash of no stored contract.
    """

    name: str
    version: str
    scale_low: int
    scale_high: int
    bar: Decimal
    dimensions: tuple[Dimension, ...]
    composite: CompositeKind = CompositeKind.PERCENT
    tiers: tuple[Tier, ...] = ()
    """From the best down."""
    panels: tuple[tuple[str, Panel], ...] = ()
    """(dimension, who judges it), where it is not one model alone. Beside the dimensions: who grades is no part of what is asked."""

    @property
    def is_of_criteria(self) -> bool:
        """Whether each dimension is passed or failed, with nothing between."""
        return self.composite is CompositeKind.CRITERIA

    @property
    def reads_references(self) -> bool:
        """Whether any dimension is shown a reference answer."""
        return any(dimension.reference is not msgspec.UNSET for dimension in self.dimensions)

    @property
    def composite_ends(self) -> tuple[int, int]:
        """The lowest and the highest composite: 0 and 100 for ``percent``, else the ends of the scale."""
        return (0, 100) if self.composite is CompositeKind.PERCENT else (self.scale_low, self.scale_high)

    def tier(self, composite: Decimal) -> Tier | None:
        """Return the tier of an unrounded composite, None where the rubric has none."""
        return next((tier for tier in self.tiers if composite >= tier.least), None)

    def dimension(self, name: str) -> Dimension:
        """Return the dimension of that name.

        Raises:
            KeyError: if there is none.
        """
        for dimension in self.dimensions:
            if dimension.name == name:
                return dimension
        raise KeyError(name)

    def panel(self, name: str) -> Panel | None:
        """Return who votes on the dimension of that name; None where one model judges it."""
        return next((panel for dimension, panel in self.panels if dimension == name), None)

    def passes(self, dimension: Dimension, score: float) -> bool:
        """Return the outcome of a score: at its gate where there is one, else at the middle of the scale (3 of 1 to 5, adequate)."""
        if dimension.gate is not None:
            return score >= dimension.gate
        return 2 * score >= self.scale_low + self.scale_high

    @property
    def canonical(self) -> str:
        """The rubric as JSON: sorted keys, no spaces, UTF-8."""
        return _encode(self).decode()

    @property
    def hash(self) -> str:
        """Names everything the rubric says, weights and bar included: 16 hex digits."""
        return ids.digest(8, self.canonical)

    def grading_hash(self, name: str) -> str:
        """Name what one dimension's grader is told and held to: 16 hex digits.

        Its weight, the bar, the version label and the other dimensions' texts do not move a score, so a change of
        them re-buys no judgment and loses no calibration.
        """
        dimension = msgspec.structs.replace(self.dimension(name), weight=Decimal(0))
        others = [other.name for other in self.dimensions if other.name != name]
        return _hash((self.name, self.scale_low, self.scale_high, dimension, others))


_encode = msgspec.json.Encoder(order="sorted").encode


def _hash(value: object) -> str:
    return ids.digest(8, _encode(value).decode())
