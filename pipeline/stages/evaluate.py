"""Evaluate: what the results of a window add up to into the inputs of its quality score, and those into the score (scoring, section 5).

Sums of floats are read to the twelfth decimal: nine of ten is 0.9 whatever the weights, and the same in every store.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from pipeline.model.evaluation import LIVE, Evaluation, EvaluationKind, evaluation_id
from pipeline.model.quality import Bounds, CustomMetric, MetricSpec, QualityInputs, QualitySpec, SafetySource
from pipeline.model.rate import Rate
from pipeline.model.result import Kind
from pipeline.model.run import Cohort
from pipeline.model.time import MILLISECOND
from pipeline.model.window import Series, Sums, Window
from pipeline.stages.quality import quality
from pipeline.stages.window import rate_of, total, window

_PLACES: Final = Decimal("1e-12")
Parts = Mapping[Series, Sequence[Sums]]
"""By series of one cohort: what the minutes of the window hold."""


def evaluate(
    project: str,
    cohort: Cohort,
    start_ns: int,
    length_ns: int,
    parts: Parts,
    spec: QualitySpec,
    revision: str = "",
    series: str = LIVE,
) -> Evaluation:
    """Evaluate a window. Nothing decided gives no score."""
    found = _Found(project, cohort, start_ns, length_ns, parts)
    passed = rate_of(found.window(found.verdict))
    safety, source = _safety(found, spec)
    measured = {"pass": passed, "safety": safety, "judge": _judge(found, spec), "schema": found.code(spec.schema_checks)}
    rates = {name: rate for name, rate in measured.items() if rate.n or name == "pass"}
    inputs = _inputs(found, rates, source, spec)
    return Evaluation(
        project=project,
        id=evaluation_id(project, cohort.id, length_ns, start_ns + length_ns, series),
        kind=EvaluationKind.WINDOW,
        cohort=cohort,
        start_ns=start_ns,
        length_ns=length_ns,
        series=series,
        rates=rates,
        quality=None if inputs is None else quality(inputs, spec, revision),
        rows=sum(sums.rows for some in parts.values() for sums in some),
        fingerprint=sum(sums.fingerprint for some in parts.values() for sums in some),
    )


class _Found:
    """What a window holds, asked for by series."""

    def __init__(self, project: str, cohort: Cohort, start_ns: int, length_ns: int, parts: Parts) -> None:
        self._parts = parts
        self._start_ns, self._length_ns = start_ns, length_ns
        self._named = Series(project, cohort, "", "", "")
        self.verdict = self.sums(lambda one: one.kind == Kind.VERDICT)

    def sums(self, wanted: Callable[[Series], bool]) -> Sums:
        return total(sums for series, some in self._parts.items() if wanted(series) for sums in some)

    def window(self, sums: Sums) -> Window:
        return window(self._named, self._start_ns, self._length_ns, sums)

    def rate(self, wanted: Callable[[Series], bool]) -> Rate:
        return rate_of(self.window(self.sums(wanted)))

    def code(self, dimensions: Sequence[str]) -> Rate:
        return self.rate(lambda one: one.kind == Kind.CODE and one.dimension in dimensions)

    def judged(self) -> dict[str, Sums]:
        """Return what each judged contract holds."""
        parts: dict[str, list[Sums]] = {}
        for series, some in self._parts.items():
            if series.kind == Kind.JUDGED:
                parts.setdefault(series.contract, []).extend(some)
        return {contract: total(some) for contract, some in parts.items()}


def _safety(found: _Found, spec: QualitySpec) -> tuple[Rate, SafetySource | None]:
    """Return the first of safety checks and policy dimension of which something is decided."""
    checks = found.code(spec.safety_checks)
    if checks.decided:
        return checks, SafetySource.CHECKS
    judged = found.rate(lambda one: one.kind == Kind.JUDGED and one.dimension == spec.policy_dimension and _counts(one, spec))
    return (judged, SafetySource.POLICY_DIMENSION) if judged.decided else (checks if checks.n else judged, None)


def _judge(found: _Found, spec: QualitySpec) -> Rate:
    """Return the mean score of all judged dimensions that may decide, each brought from its scale to 0 to 1; the undecided at its ends."""
    judged = found.judged()
    brought = total(_unit(judged[contract], *spec.judged[contract]) for contract in sorted(judged.keys() & spec.judged.keys()))
    whole = found.window(brought)
    known = brought.w + brought.undecided_w
    return msgspec.structs.replace(
        rate_of(whole),
        rate=whole.mean,
        low=whole.mean_low,
        high=whole.mean_high,
        if_undecided_fail=brought.wy / known if known > 0 else None,
        if_undecided_pass=(brought.wy + brought.undecided_w) / known if known > 0 else None,
    )


def _unit(sums: Sums, low: int, high: int) -> Sums:
    """Return sums of values on [low, high] as those of values on [0, 1]."""
    width = high - low
    return msgspec.structs.replace(
        sums,
        wy=(sums.wy - low * sums.w) / width,
        wy2=(sums.wy2 - 2 * low * sums.wy + low * low * sums.w) / width**2,
        vy=(sums.vy - low * sums.v) / width,
        vy2=(sums.vy2 - 2 * low * sums.vy + low * low * sums.v) / width**2,
    )


def _inputs(found: _Found, rates: Mapping[str, Rate], source: SafetySource | None, spec: QualitySpec) -> QualityInputs | None:
    passed = rates["pass"]
    if passed.rate is None or passed.if_undecided_fail is None or passed.if_undecided_pass is None:
        return None
    verdict = found.verdict
    values = {name: _exact(rate.rate) for name, rate in rates.items() if rate.rate is not None}
    safety = values.get("safety") if source is not None else _by_errors(verdict)
    return QualityInputs(
        pass_rate=values["pass"],
        n=passed.decided,
        pass_if_undecided_fail=_exact(passed.if_undecided_fail),
        pass_if_undecided_pass=_exact(passed.if_undecided_pass),
        bounds={name: _bounds(rates[name]) for name in values if name != "pass"},
        runs=verdict.runs,
        timed=verdict.timed,
        safety=safety,
        safety_source=source or (SafetySource.ERROR_TEXTS if safety is not None else None),
        judge=values.get("judge"),
        schema=values.get("schema"),
        latency_ms=_tidy(Decimal(verdict.duration_ns) / verdict.timed / MILLISECOND) if verdict.timed else None,
        cost_usd=_tidy(verdict.cost_usd / verdict.priced) if verdict.priced else None,
        budget_usd=spec.budget_usd,
        custom=tuple(CustomMetric(one.name, _metric(found, one, spec), one.weight) for one in spec.metrics),
        cost_records=verdict.priced,
    )


def _by_errors(verdict: Sums) -> Decimal | None:
    """Return the share of runs without an alarming error text; None where no run has an error text, which tells nothing."""
    return _tidy(1 - Decimal(verdict.alarming) / verdict.runs) if verdict.erring else None


def _counts(series: Series, spec: QualitySpec) -> bool:
    """Whether results of the series may decide: a judge has to have earned it, or to be trusted by an explicit choice."""
    return series.kind != Kind.JUDGED or series.contract in spec.judged


def _metric(found: _Found, metric: MetricSpec, spec: QualitySpec) -> Decimal | None:
    """Return a metric's value; None without data, and for a mean that is no value in [0, 1]."""
    held = found.window(found.sums(lambda one: one.dimension == metric.dimension and _counts(one, spec)))
    value = held.rate if metric.measure == "rate" else held.mean
    return _exact(value) if value is not None and 0 <= round(value, 12) <= 1 else None


def _bounds(rate: Rate) -> Bounds:
    return _exact(rate.if_undecided_fail or 0.0), _exact(rate.if_undecided_pass or 0.0)


def _exact(value: float) -> Decimal:
    return _tidy(Decimal(value))


def _tidy(value: Decimal) -> Decimal:
    """Return a number to the twelfth decimal, written in one way: 0.9, 1, 3000."""
    rounded = value.quantize(_PLACES)
    return rounded.quantize(Decimal(1)) if rounded == rounded.to_integral_value() else rounded.normalize()
