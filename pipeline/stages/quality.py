"""Quality: the inputs of an evaluation into one score, what it is worth, and between which bounds it lies (spec section 5)."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Final

from pipeline.model.quality import (
    VERSION,
    EvidenceLevel,
    Flag,
    QualityInputs,
    QualityScore,
    QualitySpec,
    SafetySource,
    canonical_hash,
)

_ZERO: Final = Fraction(0)
_ONE: Final = Fraction(1)
_HALF: Final = Fraction(1, 2)
Components = dict[str, Fraction]
"""In fractions: a third of a point must not tip a score that lies on the half."""


def quality(inputs: QualityInputs, spec: QualitySpec = QualitySpec(), revision: str = "") -> QualityScore:  # noqa: B008 - a constant
    """Score an evaluation."""
    measured = _measured(inputs, spec)
    imputed = _imputed(inputs)
    components = {**{name: _fallback(name, inputs) for name in imputed}, **measured}
    exact = _blended(components, inputs, spec)
    worst, best = (_at_bound(end, components, imputed, inputs) for end in (0, 1))
    return QualityScore(
        score=floor(exact + _HALF),
        exact=_decimal(exact),
        lower=_decimal(_blended(worst, inputs, spec, missing=_ZERO)),
        upper=_decimal(_blended(best, inputs, spec, missing=_ONE)),
        components={name: _decimal(value) for name, value in components.items()},
        imputed=(*imputed, *(one.name for one in inputs.custom if one.value is None)),
        flags=tuple(_flags(inputs, components, spec)),
        evidence=_evidence(inputs, spec),
        version=VERSION,
        inputs=inputs,
        spec=spec,
        inputs_hash=canonical_hash(inputs),
        spec_hash=canonical_hash(spec),
        revision=revision,
    )


def _measured(inputs: QualityInputs, spec: QualitySpec) -> Components:
    found = {
        "pass": inputs.pass_rate,
        "safety": inputs.safety,
        "judge": inputs.judge,
        "schema": inputs.schema,
        "latency": _falling(inputs.latency_ms, spec.latency_best_ms, spec.latency_worst_ms),
        "cost": _falling(inputs.cost_usd, inputs.budget_usd, None if inputs.budget_usd is None else 2 * inputs.budget_usd),
    }
    return {name: Fraction(value) for name, value in found.items() if value is not None}


def _falling(value: Decimal | None, best: Decimal | None, worst: Decimal | None) -> Fraction | None:
    """Return 1 at or below ``best``, 0 at or above ``worst``, linear between; None where one of them is not known."""
    if value is None or best is None or worst is None:
        return None
    if value <= best:
        return _ONE
    return max(_ZERO, Fraction(worst - value) / Fraction(worst - best)) if worst > best else _ZERO


def _imputed(inputs: QualityInputs) -> tuple[str, ...]:
    absent = {
        "safety": inputs.safety is None or inputs.safety_source is SafetySource.ERROR_TEXTS,
        "judge": inputs.judge is None,
        "schema": inputs.schema is None,
        "latency": inputs.latency_ms is None,
        "cost": inputs.cost_usd is None or inputs.budget_usd is None,
    }
    return tuple(name for name, is_absent in absent.items() if is_absent)


def _at_bound(end: int, components: Components, imputed: tuple[str, ...], inputs: QualityInputs) -> Components:
    """Return the components at their worst (0) or best (1): what was imputed at the end of the scale, the undecided as fail or pass."""
    measured = inputs.bounds | {"pass": (inputs.pass_if_undecided_fail, inputs.pass_if_undecided_pass)}
    bounded = {name: Fraction(measured[name][end]) if name in measured else value for name, value in components.items()}
    return bounded | dict.fromkeys(imputed, Fraction(end))


def _fallback(name: str, inputs: QualityInputs) -> Fraction:
    """Return what stands in for a component: nothing measured is no risk of time or money, and else as good as the passes."""
    return _ONE if name in ("latency", "cost") else Fraction(inputs.pass_rate)


def _blended(components: Components, inputs: QualityInputs, spec: QualitySpec, missing: Fraction | None = None) -> Fraction:
    """Return the score before it is rounded, custom metrics blended in, 0 to 100; those without a value as ``missing``, or not at all."""
    judge_share, latency_share = Fraction(spec.judge_share), Fraction(spec.latency_share)
    judged = judge_share * components["judge"] + (1 - judge_share) * components["schema"]
    spent = latency_share * components["latency"] + (1 - latency_share) * components["cost"]
    parts = (
        (Fraction(spec.pass_weight), components["pass"]),
        (Fraction(spec.safety_weight), components["safety"]),
        (Fraction(spec.judge_schema_weight), judged),
        (Fraction(spec.latency_cost_weight), spent),
    )
    base = sum((weight * value for weight, value in parts), _ZERO) / sum((weight for weight, _ in parts), _ZERO)
    custom = [(Fraction(one.weight), missing if one.value is None else Fraction(one.value)) for one in inputs.custom]
    added = sum((weight * value for weight, value in custom if value is not None), _ZERO)
    return 100 * (base + added) / (1 + sum((weight for weight, value in custom if value is not None), _ZERO))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


def _flags(inputs: QualityInputs, components: Components, spec: QualitySpec) -> Iterator[Flag]:
    tests = {
        Flag.SAFETY_RISK: components["safety"] < spec.least_safety,
        Flag.LOW_PASS_RATE: components["pass"] < spec.least_pass_rate,
        Flag.LATENCY_RISK: components["latency"] < spec.least_latency_score,
        Flag.COST_RISK: components["cost"] < spec.least_cost_score,
        Flag.MISSING_JUDGE: inputs.judge is None,
        Flag.MISSING_SAFETY: inputs.safety is None,
        Flag.LOW_N: inputs.n < spec.least_n,
        Flag.SAFETY_WEAK_EVIDENCE: inputs.safety_source is SafetySource.ERROR_TEXTS,
        Flag.TRACE_COVERAGE_LOW: inputs.trace_linked and (inputs.trace_coverage or 0) < spec.least_trace_coverage,
        Flag.MISSING_PROVENANCE: inputs.trace_linked and not inputs.cost_records,
    }
    return (flag for flag, holds in tests.items() if holds)


def _evidence(inputs: QualityInputs, spec: QualitySpec) -> EvidenceLevel:
    """Say how much the score rests on; a proxy from error texts is no safety data."""
    judged = inputs.judge is not None
    safe = inputs.safety is not None and inputs.safety_source is not SafetySource.ERROR_TEXTS
    if judged and safe and inputs.n >= spec.strong_n:
        return EvidenceLevel.STRONG
    return EvidenceLevel.MEDIUM if (judged or safe) and inputs.n >= spec.medium_n else EvidenceLevel.WEAK
