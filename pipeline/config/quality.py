"""Quality: what a quality score weighs and where it reads it, as it is written (scoring, section 5)."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from pipeline.model.quality import MetricSpec, QualitySpec
from pipeline.model.rubric import Rubric
from pipeline.model.settings import Duration, Settings
from pipeline.model.time import MILLISECOND
from pipeline.scorers.check import Check
from pipeline.stages.grade import JudgedDimension
from pipeline.stages.trouble import ALARMING

Share = Annotated[Decimal, Field(ge=0, le=1)]
Weight = Annotated[Decimal, Field(ge=0)]
_PLAIN: Final = QualitySpec()


class WeightSettings(Settings):
    """What each component weighs. They are brought to sum to 1."""

    pass_rate: Weight = _PLAIN.pass_weight
    """The share of runs that pass."""
    safety: Weight = _PLAIN.safety_weight
    """The share of safety checks that pass."""
    judge_schema: Weight = _PLAIN.judge_schema_weight
    """The judge's scores and the schema checks."""
    latency_cost: Weight = _PLAIN.latency_cost_weight
    """Time and money."""
    judge_share: Share = _PLAIN.judge_share
    """Of the judge in ``judge_schema``; the rest is of the schema checks."""
    latency_share: Share = _PLAIN.latency_share
    """Of latency in ``latency_cost``; the rest is of cost."""

    @model_validator(mode="after")
    def _weighs_something(self) -> Self:
        if not (self.pass_rate or self.safety or self.judge_schema or self.latency_cost):
            raise ValueError("every weight is 0; write one that is not, such as pass_rate: 0.5")
        return self


class FlagSettings(Settings):
    """Below what a score is flagged. A flag never changes the score."""

    safety: Share = _PLAIN.least_safety
    """SAFETY_RISK below this."""
    pass_rate: Share = _PLAIN.least_pass_rate
    """LOW_PASS_RATE below this."""
    latency_score: Share = _PLAIN.least_latency_score
    """LATENCY_RISK below this, 1 being fast and 0 slow."""
    cost_score: Share = _PLAIN.least_cost_score
    """COST_RISK below this, 1 being within the budget and 0 twice as much."""
    n: Annotated[int, Field(ge=0)] = _PLAIN.least_n
    """LOW_N with fewer decided runs."""


class MetricSettings(Settings):
    """A metric of one's own, read off a dimension and blended into the score."""

    dimension: str
    """The dimension that it is read from."""
    weight: Annotated[Decimal, Field(gt=0)]
    """Beside the 1 that all the rest weighs together."""
    measure: Literal["rate", "mean"] = "rate"
    """``rate``: share of passes. ``mean``: of the values, which lie between 0 and 1."""


class QualitySettings(Settings):
    """The policy behind quality scores. What is left out is version 1 of the score."""

    weights: WeightSettings = WeightSettings()
    """What each component weighs."""
    latency_best: Duration = int(_PLAIN.latency_best_ms) * MILLISECOND
    """A mean duration up to which latency counts 1."""
    latency_worst: Duration = int(_PLAIN.latency_worst_ms) * MILLISECOND
    """A mean duration from which latency counts 0; linear between the two."""
    budget_usd: Annotated[Decimal, Field(ge=0)] | None = None
    """What a run may cost in US dollars; cost is not scored without it."""
    policy_dimension: str = _PLAIN.policy_dimension
    """The judged dimension that is the safety where no safety check was decided."""
    flags: FlagSettings = FlagSettings()
    """Below what a score is flagged."""
    metrics: dict[Annotated[str, Field(min_length=1)], MetricSettings] = Field(default={})
    """Metrics of one's own, by name."""

    @model_validator(mode="after")
    def _slower_is_worse(self) -> Self:
        if self.latency_worst <= self.latency_best:
            raise ValueError("latency_worst is not above latency_best; write a longer duration, such as latency_worst: 8s")
        return self


def spec_of(
    settings: QualitySettings,
    checks: Iterable[Check],
    judged: Iterable[JudgedDimension],
    rubric: Rubric | None,
    deciding: frozenset[str],
) -> QualitySpec:
    """Return the policy of one agent: what is written, and which of its dimensions it reads."""
    held, weights, flags = tuple(checks), settings.weights, settings.flags
    scale = (rubric.scale_low, rubric.scale_high) if rubric is not None else (0, 1)
    return QualitySpec(
        pass_weight=plain(weights.pass_rate),
        safety_weight=plain(weights.safety),
        judge_schema_weight=plain(weights.judge_schema),
        latency_cost_weight=plain(weights.latency_cost),
        judge_share=plain(weights.judge_share),
        latency_share=plain(weights.latency_share),
        latency_best_ms=plain(Decimal(settings.latency_best) / MILLISECOND),
        latency_worst_ms=plain(Decimal(settings.latency_worst) / MILLISECOND),
        least_safety=plain(flags.safety),
        least_pass_rate=plain(flags.pass_rate),
        least_latency_score=plain(flags.latency_score),
        least_cost_score=plain(flags.cost_score),
        least_n=flags.n,
        budget_usd=None if settings.budget_usd is None else plain(settings.budget_usd),
        safety_checks=tuple(sorted(check.name for check in held if check.is_safety)),
        policy_dimension=settings.policy_dimension,
        schema_checks=tuple(sorted(check.name for check in held if check.is_schema)),
        judged={one.contract: scale for one in judged if one.authority in deciding},
        metrics=tuple(
            MetricSpec(name, one.dimension, one.measure, plain(one.weight)) for name, one in sorted(settings.metrics.items())
        ),
        alarming=ALARMING,
    )


def plain(value: Decimal) -> Decimal:
    """Return a number written in one way, so that 0.50 and 0.5 are the same policy with the same hash."""
    return value.quantize(Decimal(1)) if value == value.to_integral_value() else value.normalize()
