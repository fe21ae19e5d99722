"""Runs against a reference, and what model calls cost (scoring, sections 4.1 and 4.3)."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from run_builders import a_call, a_run
from worked.row import Worked

from pipeline.config.rubrics import load
from pipeline.judges.contract import ballots, judge_contract
from pipeline.judges.settings import JudgeSettings, Price
from pipeline.model.reference import Reference, ReferenceCall
from pipeline.model.spending import Billed
from pipeline.model.step import Usage
from pipeline.scorers.cost import cost_of, priced
from pipeline.scorers.prices import PriceSettings, PriceTable
from pipeline.scorers.reference.selection import plan_adherence, tool_selection_f1

NOBODYS = Billed(span_id="a1", model="a model that nobody sells", usage=Usage(input=1, output=1))


def called(wanted: str, calls: str, measure: Callable[..., Any] = tool_selection_f1) -> float | None:
    """What is measured of a run with these calls against a reference with these tools."""
    reference = Reference(tuple(ReferenceCall(name) for name in wanted.split()))
    found = measure(a_run(*(a_call(name) for name in calls.split())), reference)
    return None if found is None else float(found.value)


def trajectory_rows() -> list[Worked]:
    """Section 4.1."""
    f1, plan = "tool_selection_f1", "plan_adherence"
    return [
        Worked(
            "4.1",
            "[search, refund]: [search, search, email, refund]",
            f1,
            lambda: called("search refund", "search search email refund"),
            0.857,
        ),
        Worked("4.1", "no reference, no calls", f1, lambda: called("", ""), 1.0),
        Worked("4.1", "reference [a], no calls", f1, lambda: called("a", ""), 0.0),
        Worked("4.1", "no reference, one call: p 0", f1, lambda: called("", "a"), 0.0),
        Worked("4.1", "LCS 2 of 4", plan, lambda: called("a b c d", "c a x d", plan_adherence), 0.5),
        Worked("4.1", "no reference has no plan", plan, lambda: called("", "a", plan_adherence), None),
    ]


def cost_rows() -> list[Worked]:
    """Section 4.3: 3,000 tokens in and 300 out of a judge's call, at $0.75 and $2.55 a million."""
    price = PriceSettings(input=Decimal("0.75"), output=Decimal("2.55"))
    usage = Usage(input=3000, output=300)
    settings = JudgeSettings(base_url="http://127.0.0.1:1/v1", model="m")
    support = load("support")
    calls = sum(len(ballots(judge_contract(support, one.name, settings))) for one in support.dimensions)
    judge = Price(input_per_million=price.input, output_per_million=price.output)
    return [
        Worked("4.3", "one call: $0.003015", "cost.priced", lambda: priced(usage, price), Decimal("0.003015")),
        Worked("4.3", "one call of the judge: $0.003015", "Price.cost", lambda: judge.cost(3000, 300), Decimal("0.003015")),
        Worked("4.3", "five dimensions: $0.015075", "Price.cost", lambda: 5 * judge.cost(3000, 300), Decimal("0.015075")),
        Worked("4.3", "three votes on two gated ones: 9 calls", "contract.ballots", lambda: calls, 9),
        Worked("4.3", "... $0.027135", "Price.cost", lambda: calls * judge.cost(3000, 300), Decimal("0.027135")),
        Worked("4.3", "no price: unknown, not 0", "cost.cost_of", lambda: cost_of((NOBODYS,), PriceTable()).usd, None),
    ]
