"""Evaluations: rates with their bounds, windows, and the quality score (scoring, sections 1, 5 and 8)."""

from decimal import Decimal
from functools import partial
from typing import Any

from msgspec.structs import replace
from worked.row import Worked

from pipeline.model.quality import CustomMetric, EvidenceLevel, Flag, QualityInputs, QualityScore, QualitySpec, SafetySource
from pipeline.model.rate import Rate
from pipeline.model.result import Outcome
from pipeline.model.run import Cohort
from pipeline.model.time import MINUTE
from pipeline.model.window import Series
from pipeline.stages.quality import quality
from pipeline.stages.window import MinuteRow, fold, rate_of, slide_of, window

PASS, FAIL, UNDECIDED = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE


def measured(rate: str, n: int, **more: Any) -> QualityInputs:
    """The inputs of an evaluation in which every run was decided."""
    numbers: dict[str, Any] = {name: Decimal(value) if isinstance(value, str) else value for name, value in more.items()}
    safe: dict[str, Any] = {"safety_source": SafetySource.CHECKS} if "safety" in more else {}
    return QualityInputs(Decimal(rate), n, Decimal(rate), Decimal(rate), **(safe | numbers))


FULL = measured("0.9", 50, safety="0.98", judge="0.8", schema="1.0", latency_ms="3000", cost_usd="0.02", budget_usd="0.05")
BARE = measured("0.5", 4)


def component(inputs: QualityInputs, name: str) -> str:
    """One component to six places."""
    return f"{quality(inputs).components[name]:.6f}"


def five(score: QualityScore) -> tuple[int, str, tuple[Flag, ...], EvidenceLevel]:
    """What the specification says of a score: rounded, to three places, its flags and what it rests on."""
    return score.score, f"{score.exact:.3f}", score.flags, score.evidence


def quality_rows() -> list[Worked]:
    """Section 5."""
    of = "quality"
    bare = (Flag.SAFETY_RISK, Flag.LOW_PASS_RATE, Flag.MISSING_JUDGE, Flag.MISSING_SAFETY, Flag.LOW_N)
    custom = (CustomMetric("m", Decimal("0.5"), Decimal(1)),)
    equal = QualitySpec(
        pass_weight=Decimal(2), safety_weight=Decimal(1), judge_schema_weight=Decimal("0.6"), latency_cost_weight=Decimal("0.4")
    )
    return [
        Worked("5", "latency 3000 ms is 0.769230…", of, lambda: component(FULL, "latency"), "0.769231"),
        Worked(
            "5",
            "all measured: 91.315 → 91, no flags, strong",
            of,
            lambda: five(quality(FULL)),
            (91, "91.315", (), EvidenceLevel.STRONG),
        ),
        Worked("5", "all measured: nothing imputed", of, lambda: quality(FULL).imputed, ()),
        Worked(
            "5",
            "only pass 0.5, n 4: 55, weak, five flags",
            of,
            lambda: five(quality(BARE)),
            (55, "55.000", bare, EvidenceLevel.WEAK),
        ),
        Worked(
            "5",
            "... whose imputed parts are named",
            of,
            lambda: quality(BARE).imputed,
            ("safety", "judge", "schema", "latency", "cost"),
        ),
        Worked(
            "5", "... and bound it: 25 to 75", of, lambda: (quality(BARE).lower, quality(BARE).upper), (Decimal(25), Decimal(75))
        ),
        *(
            Worked(
                "5",
                f"latency {ms} ms is {score}",
                of,
                partial(component, measured("1", 50, latency_ms=ms), "latency"),
                score,
            )
            for ms, score in (("1500", "1.000000"), ("4750", "0.500000"), ("8000", "0.000000"))
        ),
        *(
            Worked(
                "5",
                f"cost ${usd} of $0.05 is {score}",
                of,
                partial(component, measured("1", 50, cost_usd=usd, budget_usd="0.05"), "cost"),
                score,
            )
            for usd, score in (("0.05", "1.000000"), ("0.075", "0.500000"), ("0.10", "0.000000"))
        ),
        Worked(
            "5",
            "weights 2 : 1 : 0.6 : 0.4 are 0.50 : 0.25 : 0.15 : 0.10",
            of,
            lambda: f"{quality(FULL, equal).exact:.3f}",
            "91.315",
        ),
        Worked("5", "half up: 50.5 → 51", of, lambda: quality(_half()).score, 51),
        # (0.91315384… + 1 × 0.5) / (1 + 1) = 0.70657692…
        Worked(
            "5",
            "a custom metric 0.5 of weight 1: 70.658",
            of,
            lambda: f"{quality(replace(FULL, custom=custom)).exact:.3f}",
            "70.658",
        ),
    ]


def _half() -> QualityInputs:
    """Everything at 0.505: latency 8000 − 0.505 × 6500 = 4717.5 ms, cost (2 − 0.505) × $1 = $1.495."""
    share = "0.505"
    return measured(share, 50, safety=share, judge=share, schema=share, latency_ms="4717.5", cost_usd="1.495", budget_usd="1")


def rate(*rows: tuple[Outcome, float]) -> Rate:
    """The rate of a window whose rows have these outcomes and weights."""
    sums = fold(MinuteRow(outcome, weight, version=4, first_received_ns=0) for outcome, weight in rows)
    return rate_of(window(Series("p", Cohort("a"), "d", "code", "c"), 0, 5 * MINUTE, sums))


def rate_rows() -> list[Worked]:
    """Sections 1 and 8: 6 pass, 2 fail, 1 without evidence, 1 broken grader; and two runs of which one stands for two."""
    ten = rate(*[(PASS, 1.0)] * 6, *[(FAIL, 1.0)] * 2, (UNDECIDED, 1.0), (Outcome.GRADER_ERROR, 1.0))
    bounded = (ten.if_undecided_fail, ten.if_undecided_pass)
    counts = (ten.passed, ten.failed, ten.insufficient_evidence, ten.grader_error)
    hajek = rate((PASS, 2.0), (FAIL, 1.0))
    return [
        Worked("1", "6 of 8 decided pass: 0.75", "window.rate_of", lambda: ten.rate, 0.75),
        Worked("1", "8 of 10 are decided: coverage 0.8", "window.rate_of", lambda: ten.coverage, 0.8),
        Worked("1", "undecided as fail, and as pass", "window.rate_of", lambda: bounded, (0.6, 0.8)),
        Worked("1", "the four outcomes", "window.rate_of", lambda: counts, (6, 2, 1, 1)),
        Worked("8", "a pass at π 0.5 and a fail at 1: 2/3", "window.rate_of", lambda: hajek.rate, 2 / 3),
    ]


def slide(minutes: int) -> int:
    """By how many minutes a window of this length slides."""
    return slide_of(minutes * MINUTE) // MINUTE


def window_rows() -> list[Worked]:
    """Section 8."""
    lengths = {5: 1, 12: 1, 13: 2, 60: 5, 1440: 120}
    return [
        Worked(
            "8",
            f"a window of {length} min slides by {by}",
            "window.slide_of",
            partial(slide, length),
            by,
        )
        for length, by in lengths.items()
    ]
