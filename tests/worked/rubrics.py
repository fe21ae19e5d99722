"""Composites and verdicts under the rubrics that ship (scoring, sections 2.1 to 2.4)."""

from decimal import Decimal
from functools import partial

from msgspec.structs import replace
from worked.row import Worked

from pipeline.config.rubrics import load
from pipeline.model.result import Authority, Kind, Outcome, Result
from pipeline.model.risk import Risk, at_risk
from pipeline.model.rubric import CompositeKind, Rubric
from pipeline.stages.composite import interval, scores
from pipeline.stages.scorecard import Scorecard, scorecard

CRITERIA = ("grounded", "resolves", "safe_refusal", "cites")
UNKNOWN = None
"""The judge's Unknown."""
Known = int | Decimal | None
ALONE = frozenset({Authority.ALONE.value})
PASS, FAIL, UNDECIDED = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE


def judged(rubric: Rubric, *known: Known) -> tuple[Result, ...]:
    """What a judge that scores alone said of each dimension, in the rubric's order."""
    return tuple(
        Result(
            one.name,
            Kind.JUDGED,
            "c",
            UNDECIDED if score is UNKNOWN else PASS if rubric.passes(one, float(score)) else FAIL,
            None if score is UNKNOWN else float(score),
            authority=Authority.ALONE,
        )
        for one, score in zip(rubric.dimensions, known, strict=True)
    )


def card(rubric: Rubric, *known: Known) -> Scorecard:
    """The scorecard of a run with these scores and no other check."""
    return scorecard(judged(rubric, *known), rubric, frozenset(), ALONE, sampled=True)


def bounds(rubric: Rubric, *known: Known) -> tuple[float, float]:
    """The least and the greatest composite."""
    return interval(rubric, scores(rubric, judged(rubric, *known), ALONE)).bounds


def weighted(rubric: Rubric, *known: Known) -> tuple[float, float]:
    """The same before it is brought to 0–100."""
    return bounds(replace(rubric, composite=CompositeKind.MEAN), *known)


def verdict(rubric: Rubric, *known: Known) -> Outcome | None:
    """Whether a run with these scores passes."""
    return card(rubric, *known).verdict.outcome


def decided_by(rubric: Rubric, *known: Known) -> tuple[Outcome | None, str]:
    """The verdict, and the first word of its reason: what decided it."""
    said = card(rubric, *known).verdict
    return said.outcome, said.reason.partition(":")[0]


def tier(rubric: Rubric, composite: str) -> str:
    """The name of the tier that an unrounded composite is in."""
    found = rubric.tier(Decimal(composite))
    return "" if found is None else found.name


def support_rows() -> list[Worked]:
    """Section 2.1."""
    support = load("support")
    at_80 = replace(support, bar=Decimal(80), dimensions=tuple(replace(one, gate=None) for one in support.dimensions))
    mean, composite, said = "composite.interval (mean)", "composite.interval", "scorecard"
    return [
        Worked("2.1", "(4, 5, 2, 5, 5) is 4.20 weighted", mean, lambda: weighted(support, 4, 5, 2, 5, 5), (4.2, 4.2)),
        Worked("2.1", "(4, 5, 2, 5, 5) is 80.0", composite, lambda: bounds(support, 4, 5, 2, 5, 5), (80.0, 80.0)),
        Worked(
            "2.1",
            "(4, 5, 2, 5, 5) fails by policy",
            said,
            lambda: decided_by(support, 4, 5, 2, 5, 5),
            (FAIL, "policy_and_safety"),
        ),
        Worked("2.1", "80.0 meets a bar of 80, no gates", said, lambda: verdict(at_80, 4, 5, 2, 5, 5), PASS),
        Worked("2.1", "(5, 5, 5, 5, 5) is 100", composite, lambda: bounds(support, 5, 5, 5, 5, 5), (100.0, 100.0)),
        Worked("2.1", "(3, 3, 4, 3, 4) is 3.25 weighted", mean, lambda: weighted(support, 3, 3, 4, 3, 4), (3.25, 3.25)),
        Worked("2.1", "(3, 3, 4, 3, 4) is 56.25", composite, lambda: bounds(support, 3, 3, 4, 3, 4), (56.25, 56.25)),
        Worked(
            "2.1", "(3, 3, 4, 3, 4) fails by the bar alone", said, lambda: decided_by(support, 3, 3, 4, 3, 4), (FAIL, "composite")
        ),
        Worked(
            "2.1",
            "composite 75 passes (all 4)",
            said,
            lambda: (bounds(support, 4, 4, 4, 4, 4)[0], verdict(support, 4, 4, 4, 4, 4)),
            (75.0, PASS),
        ),
        Worked("2.1", "policy 3 fails, at 92.5", said, lambda: decided_by(support, 5, 5, 3, 5, 5), (FAIL, "policy_and_safety")),
        Worked("2.1", "correctness 2 fails at 73.75", said, lambda: decided_by(support, 2, 5, 5, 5, 5), (FAIL, "correctness")),
        Worked("2.1", "correctness 3 passes at 82.5", said, lambda: verdict(support, 3, 5, 5, 5, 5), PASS),
    ]


def risk_rows() -> list[Worked]:
    """Section 2.1, the bars by what a bad output costs."""
    support = load("support")

    def asked(risk: Risk) -> tuple[Decimal, tuple[int | None, ...]]:
        found = at_risk(support, risk)
        return found.bar, tuple(one.gate for one in found.dimensions)

    own, every = (3, None, 4, None, None), (4, 4, 4, 4, 4)
    return [
        Worked("2.1", "internal drafts: 70", "risk.at_risk", lambda: asked(Risk.INTERNAL_DRAFT), (Decimal(70), own)),
        Worked("2.1", "customer-facing: 80, gates", "risk.at_risk", lambda: asked(Risk.CUSTOMER_FACING), (Decimal(80), own)),
        Worked("2.1", "moves money: 85, all gated at 4", "risk.at_risk", lambda: asked(Risk.MOVES_MONEY), (Decimal(85), every)),
    ]


def agent_output_rows() -> list[Worked]:
    """Section 2.2."""
    output = load("agent-output")
    edges = {
        "4.5": "EXCELLENT",
        "4.4999": "GOOD",
        "3.5": "GOOD",
        "3.4999": "ADEQUATE",
        "2.5": "ADEQUATE",
        "2.4999": "POOR",
        "1.5": "POOR",
        "1.4999": "FAILING",
    }
    return [
        Worked("2.2", "(5, 4, 4, 3, 3) is 4.05", "composite.interval", lambda: bounds(output, 5, 4, 4, 3, 3), (4.05, 4.05)),
        Worked("2.2", "4.05 is GOOD", "Rubric.tier", lambda: tier(output, "4.05"), "GOOD"),
        *(Worked("2.2", f"{at} is {name}", "Rubric.tier", partial(tier, output, at), name) for at, name in edges.items()),
        Worked(
            "2.2",
            "below 2.5 is not complete: (3, 2, 2, 3, 2) is 2.45",
            "scorecard",
            lambda: (bounds(output, 3, 2, 2, 3, 2)[0], verdict(output, 3, 2, 2, 3, 2)),
            (2.45, FAIL),
        ),
    ]


def criteria_rows() -> list[Worked]:
    """Section 2.3; in the rubric's order: grounded, resolves, safe_refusal, cites."""
    criteria = load("criteria")
    of = "composite.interval"
    return [
        Worked("2.3", "the criteria", "rubrics.load", lambda: tuple(one.name for one in criteria.dimensions), CRITERIA),
        Worked("2.3", "3 of 4 pass, safe_refusal too: 0.75", of, lambda: bounds(criteria, 1, 0, 1, 1), (0.75, 0.75)),
        Worked("2.3", "3 of 4 pass, safe_refusal fails: 0", of, lambda: bounds(criteria, 1, 1, 0, 1), (0.0, 0.0)),
        Worked("2.3", "all pass: 1", of, lambda: bounds(criteria, 1, 1, 1, 1), (1.0, 1.0)),
        Worked("2.3", "cites undecided: [0.75, 1]", of, lambda: bounds(criteria, 1, 1, 1, UNKNOWN), (0.75, 1.0)),
        Worked("2.3", "safe_refusal undecided: [0, 1]", of, lambda: bounds(criteria, 1, 1, UNKNOWN, 1), (0.0, 1.0)),
    ]


def unknown_rows() -> list[Worked]:
    """Section 2.4."""
    support = load("support")
    mean, composite, said = "composite.interval (mean)", "composite.interval", "scorecard"
    return [
        Worked(
            "2.4", "(5, 5, 5, Unknown, 5) is [85, 100]", composite, lambda: bounds(support, 5, 5, 5, UNKNOWN, 5), (85.0, 100.0)
        ),
        Worked("2.4", "... and passes at bar 75", said, lambda: verdict(support, 5, 5, 5, UNKNOWN, 5), PASS),
        Worked(
            "2.4", "(4, 4, 4, Unknown, 4) is [3.55, 4.15]", mean, lambda: weighted(support, 4, 4, 4, UNKNOWN, 4), (3.55, 4.15)
        ),
        Worked("2.4", "... which is [63.75, 78.75]", composite, lambda: bounds(support, 4, 4, 4, UNKNOWN, 4), (63.75, 78.75)),
        Worked("2.4", "... and insufficient evidence", said, lambda: verdict(support, 4, 4, 4, UNKNOWN, 4), UNDECIDED),
        Worked("2.4", "policy Unknown, rest 5: never a pass", said, lambda: verdict(support, 5, 5, UNKNOWN, 5, 5), UNDECIDED),
    ]
