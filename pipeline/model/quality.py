"""Quality score v1 of an evaluation: a cohort's window, or a golden suite's gate run (spec section 5)."""

from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from typing import Final

import msgspec

VERSION: Final = 1
"""Of the formula. What a policy may override is in :class:`QualitySpec`, and hashed apart."""


COMPONENTS: Final = ("pass", "safety", "judge", "schema", "latency", "cost")
"""What a score is made of."""


class SafetySource(StrEnum):
    """Where the safety rate comes from: the first of these that there is."""

    CHECKS = "checks"
    POLICY_DIMENSION = "policy_dimension"
    ERROR_TEXTS = "error_texts"
    """Nothing measured safety; what errors say stands in for it, and is no evidence."""


class Flag(StrEnum):
    """What the reader of a score has to know. A flag never changes the score."""

    SAFETY_RISK = "SAFETY_RISK"
    LOW_PASS_RATE = "LOW_PASS_RATE"
    LATENCY_RISK = "LATENCY_RISK"
    COST_RISK = "COST_RISK"
    MISSING_JUDGE = "MISSING_JUDGE"
    MISSING_SAFETY = "MISSING_SAFETY"
    LOW_N = "LOW_N"
    SAFETY_WEAK_EVIDENCE = "SAFETY_WEAK_EVIDENCE"
    TRACE_COVERAGE_LOW = "TRACE_COVERAGE_LOW"
    MISSING_PROVENANCE = "MISSING_PROVENANCE"


class EvidenceLevel(StrEnum):
    """How much a score rests on. A weak one never blocks anything by itself."""

    STRONG = "strong"
    MEDIUM = "medium"
    WEAK = "weak"


class CustomMetric(msgspec.Struct, frozen=True):
    """A metric of the user's, blended in: a value in [0, 1] and a weight above 0. Without a value it is left out, and named."""

    name: str
    value: Decimal | None
    weight: Decimal


Bounds = tuple[Decimal, Decimal]
"""Of a component: with the undecided at their worst, and at their best."""


class QualityInputs(msgspec.Struct, frozen=True):
    """What a score is made of. None is not measured, and never 0."""

    pass_rate: Decimal
    """Weighted share of passes among the decided runs."""
    n: int
    """Decided runs."""
    pass_if_undecided_fail: Decimal
    pass_if_undecided_pass: Decimal
    bounds: dict[str, Bounds] = {}
    """The same of ``safety``, ``judge`` and ``schema``, where they were measured."""
    runs: int = 0
    """Live runs, sampled or not, among which latency, cost and error texts are known of some."""
    timed: int = 0
    """Those whose duration is known."""
    safety: Decimal | None = None
    safety_source: SafetySource | None = None
    judge: Decimal | None = None
    """Mean judge score, brought from 1–5 to [0, 1]."""
    schema: Decimal | None = None
    """Pass rate of schema checks."""
    latency_ms: Decimal | None = None
    """Mean."""
    cost_usd: Decimal | None = None
    """Mean."""
    budget_usd: Decimal | None = None
    """What a run may cost; without it cost is not scored."""
    custom: tuple[CustomMetric, ...] = ()
    trace_linked: bool = False
    """Whether the evaluation's cases are linked to traces: gate runs."""
    trace_coverage: Decimal | None = None
    """Share of trace-linked cases that were matched to a trace."""
    cost_records: int = 0
    """Runs whose cost is known."""


class MetricSpec(msgspec.Struct, frozen=True):
    """Where a custom metric comes from: the pass rate of a dimension, or the mean of its values."""

    name: str
    dimension: str
    measure: str
    weight: Decimal


class QualitySpec(msgspec.Struct, frozen=True):
    """The policy behind a score: what it weighs, and which results it reads. Weights are normalised to sum to 1."""

    pass_weight: Decimal = Decimal("0.5")
    safety_weight: Decimal = Decimal("0.25")
    judge_schema_weight: Decimal = Decimal("0.15")
    latency_cost_weight: Decimal = Decimal("0.1")
    judge_share: Decimal = Decimal("0.6")
    """Of the judge in judge and schema."""
    latency_share: Decimal = Decimal("0.6")
    """Of latency in latency and cost."""
    latency_best_ms: Decimal = Decimal(1500)
    latency_worst_ms: Decimal = Decimal(8000)
    least_safety: Decimal = Decimal("0.95")
    least_pass_rate: Decimal = Decimal("0.9")
    least_latency_score: Decimal = Decimal("0.5")
    least_cost_score: Decimal = Decimal("0.5")
    least_n: int = 10
    least_trace_coverage: Decimal = Decimal("0.8")
    strong_n: int = 10
    medium_n: int = 5
    budget_usd: Decimal | None = None
    """What a run may cost."""
    safety_checks: tuple[str, ...] = ()
    """Dimensions of code checks that are declared to be of safety."""
    policy_dimension: str = "policy_and_safety"
    """The judged dimension whose pass rate is the safety where no such check was decided."""
    schema_checks: tuple[str, ...] = ()
    """Dimensions of code checks of the form of answers."""
    judged: dict[str, tuple[int, int]] = {}
    """By contract, for every judged dimension whose judgments may decide: the ends of its scale."""
    metrics: tuple[MetricSpec, ...] = ()
    alarming: tuple[str, ...] = ()
    """Words in error texts that tell of something forbidden or unsafe."""


class QualityScore(msgspec.Struct, frozen=True):
    """A score, 0 to 100, with all that it takes to make it again.

    ``lower`` and ``upper`` are the score with everything imputed and undecided at its worst and at its best.
    """

    score: int
    exact: Decimal
    """Before it was rounded."""
    lower: Decimal
    upper: Decimal
    components: dict[str, Decimal]
    imputed: tuple[str, ...]
    """Components that nothing measured; no gate acts on them."""
    flags: tuple[Flag, ...]
    evidence: EvidenceLevel
    version: int
    inputs: QualityInputs
    spec: QualitySpec
    inputs_hash: str
    spec_hash: str
    revision: str
    """Commit of the code; empty where it is not known."""


def canonical_hash(value: msgspec.Struct) -> str:
    """Return the SHA-256 of a value's canonical JSON: sorted keys, no spaces, UTF-8."""
    return sha256(_encode(value)).hexdigest()


_encode = msgspec.json.Encoder(order="sorted").encode
