"""What a run cost: exact dollars from tokens and dated prices, or why that is not known."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from run_builders import a_run

from pipeline.model.result import Outcome
from pipeline.model.spending import Billed, Cost
from pipeline.model.step import Usage
from pipeline.scorers.check import Check
from pipeline.scorers.cost import Unpriced, cost_checks, cost_of, priced
from pipeline.scorers.limits import LimitsSettings
from pipeline.scorers.prices import PriceSettings, PricesSettings, PriceTable

SMALL = {"input": "0.75", "output": "2.55"}


def table(**written: Any) -> PriceTable:
    return PriceTable(PricesSettings.model_validate(written))


def usd(usage: Usage | None, price: Any = None, calls: int = 1, **more: Any) -> Cost:
    billed = [Billed(f"{number}", "small", usage, **more) for number in range(calls)]
    return cost_of(billed, table(models={"small": price or SMALL}))


@pytest.mark.parametrize(("calls", "dollars"), [(1, "0.003015"), (5, "0.015075"), (9, "0.027135")])
def test_the_worked_costs(calls: int, dollars: str) -> None:
    """3,000 × $0.75/M + 300 × $2.55/M a call; five dimensions; nine calls (scoring, section 4.3)."""
    assert usd(Usage(3000, 300), calls=calls).usd == Decimal(dollars)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        pytest.param(Usage(17903, 0, 17817), 86 * 3 + Decimal("0.3") * 17817, id="cached input once, at its price (R97)"),
        pytest.param(
            Usage(100, 0, 60, cache_written=30), 10 * 3 + Decimal("0.3") * 60 + Decimal("3.75") * 30, id="both kinds (R98)"
        ),
        pytest.param(Usage(10, 0, 60, cache_written=30), Decimal("0.3") * 60 + Decimal("3.75") * 30, id="never below 0 (R98)"),
        pytest.param(Usage(0, 100, reasoning=90), Decimal(15) * 100, id="reasoning once"),
        pytest.param(Usage(0, 0), Decimal(0), id="0 tokens cost 0"),
    ],
)
def test_every_token_is_paid_once(usage: Usage, dollars: Decimal) -> None:
    price = {"input": 3, "cached_input": "0.3", "cache_write": "3.75", "output": 15}
    assert usd(usage, price).usd == dollars / 1_000_000


@pytest.mark.parametrize(
    ("usage", "price", "why"),
    [
        pytest.param(None, None, "usage_not_captured: a call of small does not say what it took", id="silent (R101)"),
        pytest.param(Usage(5), None, "usage_not_captured: a call of small says only a part of what it took", id="no output"),
        pytest.param(Usage(None, 5), None, "usage_not_captured: a call of small says only a part of what it took", id="no input"),
        pytest.param(
            Usage(10**30, 5), None, "usage_not_captured: a call of small says only a part of what it took", id="too many"
        ),
        pytest.param(Usage(5, 5, 1), None, "price_unknown: small has no price for cached input", id="no price for the cache"),
        pytest.param(
            Usage(5, 5, cache_written=1), None, "price_unknown: small has no price for what is written to its cache", id="written"
        ),
        pytest.param(
            Usage(11, 5),
            {**SMALL, "up_to_input": 10},
            "price_unknown: small has a price up to 10 input tokens, not for 11",
            id="long",
        ),
    ],
)
def test_what_is_not_known_is_no_cost_and_says_why(usage: Usage | None, price: Any, why: str) -> None:
    found = usd(usage, price)
    assert (found.usd, found.unknown) == (None, why)
    assert found.prices


def test_the_greatest_count_and_the_longest_input_that_still_have_a_price() -> None:
    assert usd(Usage(0, 10**12)).usd == Decimal("2.55") * 10**6
    assert usd(Usage(0, 10**12 + 1)).usd is None
    assert usd(Usage(10, 0), {**SMALL, "up_to_input": 10}).usd == Decimal("0.0000075")


def test_what_has_no_name_is_called_something() -> None:
    prices = table(models={"small": SMALL})
    assert cost_of([Billed("1", "", None)], prices).unknown == "usage_not_captured: a call of a model does not say what it took"
    with pytest.raises(Unpriced, match="usage_not_captured: a call of the model says only a part of what it took"):
        priced(Usage(5), PriceSettings.model_validate(SMALL))


def test_one_call_without_a_price_makes_the_cost_unknown_and_no_part_of_it_is_shown() -> None:
    prices = table(models={"small": SMALL})
    known, unpriced = Billed("1", "small", Usage(3000, 300)), Billed("2", "acme-9", Usage(1, 1))
    assert cost_of([known], prices) == Cost(Decimal("0.003015"), prices=prices.version)
    for order in ([known, unpriced], [unpriced, known]):
        found = cost_of(order, prices)
        assert (found.usd, found.unknown) == (None, "price_unknown: the price table has no acme-9")
    assert cost_of([known, Billed("2", "", Usage(1, 1))], prices).unknown.startswith(
        "price_unknown: a call does not say of which model"
    )
    assert cost_of([], prices) == Cost(None, "usage_not_captured: no model call was captured", prices.version)


def test_a_call_that_was_refused_took_nothing_and_what_a_failed_one_took_counts() -> None:
    prices = table(models={"small": SMALL})
    refused, spent = Billed("1", "small", None, refused="429 Too Many Requests"), Billed("2", "small", Usage(3000, 300))
    assert cost_of([refused, spent, spent], prices).usd == 2 * Decimal("0.003015")


tokens = st.integers(0, 10**7)
usages = st.builds(Usage, tokens, tokens, tokens, tokens, cache_written=tokens)


@given(st.lists(usages, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_law_costs_add_up_exactly_in_any_order(some: list[Usage], chance: Any) -> None:
    price = {"input": "0.1", "output": "0.7", "cached_input": "0.01", "cache_write": "0.125"}
    prices = table(models={"small": price})
    billed = [Billed(str(number), "small", usage) for number, usage in enumerate(some)]
    each = [cost_of([one], prices).usd for one in billed]
    shuffled = chance.sample(billed, len(billed))
    assert cost_of(shuffled, prices).usd == cost_of(billed, prices).usd == sum(one for one in each if one is not None)
    assert all(one is not None and one >= 0 for one in each)


# --- the table ------------------------------------------------------------------------------------------------------------------------


def test_the_shipped_table_is_dated_whole_and_exact() -> None:
    prices = PriceTable()
    assert prices.as_of.isoformat() == "2026-11-30"
    assert re.fullmatch("2026-11-30-[0-9a-f]{8}", prices.version)
    price = prices.of("gpt-4o-mini")
    assert price is not None
    assert (price.input, price.cached_input, price.output) == (Decimal("0.15"), Decimal("0.075"), Decimal("0.60"))
    haiku = prices.of("claude-haiku-4-5")
    assert haiku is not None
    assert (haiku.input, haiku.cached_input) == (Decimal(1), Decimal("0.1"))
    assert (haiku.cache_write, haiku.output) == (Decimal("1.25"), Decimal(5))


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        pytest.param("gpt-4o-mini-2024-07-18", "gpt-4o-mini", id="a date"),
        pytest.param("claude-haiku-4-5-20251001", "claude-haiku-4-5", id="a date without dashes"),
        pytest.param("claude-haiku-4-5@20251001", "claude-haiku-4-5", id="a date behind an at"),
        pytest.param("openai/gpt-4o-mini", "gpt-4o-mini", id="a prefix"),
        pytest.param("openai/gpt-4o-mini-2024-07-18", "gpt-4o-mini", id="a prefix and a date"),
        pytest.param("prod", "gpt-4o-mini", id="an alias"),
        pytest.param("prod-2024-07-18", "gpt-4o-mini", id="an alias and a date"),
    ],
)
def test_a_model_is_found_under_the_names_of_the_rule(name: str, same_as: str) -> None:
    prices = table(aliases={"prod": "gpt-4o-mini"})
    assert prices.of(name) == prices.of(same_as) is not None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpt-4o-mini-audio",
        "gpt-4o-mini-latest",
        "gpt-4o-mini-2024",
        "GPT-4o-mini",
        "azure/gpt-4o-mini",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "gpt-4o-2024-05-13",
        "gpt",
        "scripted",
    ],
)
def test_no_other_name_is_guessed(name: str) -> None:
    assert PriceTable().of(name) is None


def test_a_configuration_adds_overrides_and_takes_away_and_each_makes_another_version() -> None:
    shipped = PriceTable()
    added, changed = table(models={"own": SMALL}), table(models={"gpt-4o": SMALL})
    gone, named = table(models={"gpt-4o": None}), table(aliases={"own": "gpt-4o"})
    assert shipped.of("own") is None
    assert added.of("own") == changed.of("gpt-4o") == changed.of("gpt-4o-2024-08-06") == PriceSettings.model_validate(SMALL)
    assert gone.of("gpt-4o") is None
    assert len({one.version for one in (shipped, added, changed, gone, named)}) == 5
    assert table().version == shipped.version, "the version is what the table says, not when it was made"
    assert table(models={"own": {"input": 0.75, "output": 2.55}}).version == added.version


def test_names_that_are_asked_for_do_not_pile_up() -> None:
    prices = PriceTable()
    for number in range(3000):
        prices.of(f"acme-{number}")
    assert prices.of.cache_info().currsize == 1024


@pytest.mark.parametrize(
    "price",
    [
        {"input": 1},
        {"output": 1},
        {"input": -1, "output": 1},
        {"input": "NaN", "output": 1},
        {"input": "0.0000001", "output": 1},
        {**SMALL, "batch": 1},
    ],
)
def test_what_is_no_price_is_refused(price: Any) -> None:
    with pytest.raises(ValidationError):
        PricesSettings.model_validate({"models": {"own": price}})


# --- the limit ------------------------------------------------------------------------------------------------------------------------


def limit(written: Any, prices: PriceTable | None = None) -> Check:
    (check,) = cost_checks(LimitsSettings.model_validate({"cost_usd": written}), prices or table(models={"small": SMALL}))
    return check


def test_a_run_may_cost_the_limit_itself_and_no_more() -> None:
    run = a_run(billed=(Billed("1", "small", Usage(3000, 300)),))
    at, over = limit("0.003015").score(run), limit("0.003014").score(run)
    assert at is not None
    assert over is not None
    assert (at.outcome, at.value, at.dimension, at.reason) == (Outcome.PASS, 0.003015, "cost_usd", "")
    assert (over.outcome, over.value, over.reason) == (Outcome.FAIL, 0.003015, "0.003015 is over the limit of 0.003014")
    assert not tuple(cost_checks(LimitsSettings(), table()))


def test_a_cost_that_is_not_known_is_neither_under_the_limit_nor_over_it() -> None:
    run = a_run(billed=(Billed("1", "small", Usage(10**9, 10**9)), Billed("2", "acme-9", Usage(1, 1))))
    found = limit(1).score(run)
    assert found is not None
    assert (found.outcome, found.value, found.upper) == (Outcome.INSUFFICIENT_EVIDENCE, None, None)
    assert found.reason == "price_unknown: the price table has no acme-9"


def test_a_name_with_a_colon_in_it_is_a_name() -> None:
    found = limit(1).score(a_run(billed=(Billed("1", "acme: 9", Usage(1, 1)),)))
    assert found is not None
    assert found.reason == "price_unknown: the price table has no acme: 9"


def test_the_version_of_the_prices_is_in_the_contract_and_a_limit_gates_only_if_told_to() -> None:
    one, other = table(models={"small": SMALL}), table(models={"small": {**SMALL, "output": 3}})
    assert limit(1, one).contract != limit(1, other).contract
    assert limit(1, one).contract == limit({"max": "1.0", "gate": True}, table(models={"small": SMALL})).contract
    terms = limit(1, one).terms
    assert terms is not None
    assert terms.check_definition["prices"] == one.version
    assert not limit(1).gates
    assert limit({"max": 1, "gate": True}).gates
