"""Cost: the dollars of a run, from the tokens of its model calls and a dated price table (spec section 4.3).

Known only where every model call says what it took and its model has a price; a part of it is never shown as the cost.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from pipeline.model.spending import Billed, Cost
from pipeline.model.step import Usage
from pipeline.scorers.check import Check, Finding, Missing, check_of, measured, unknown
from pipeline.scorers.limits import LimitsSettings
from pipeline.scorers.prices import MILLION, PriceSettings, PriceTable

COST_USD: Final = "cost_usd"
MOST_TOKENS: Final = 10**12
"""More than a call can take: such a count is an error of its sender."""
_ZERO: Final = Decimal(0)


class Unpriced(Exception):  # noqa: N818 - said of a call; what it means is up to who asks
    """What a call cost is not known. The message is its reason."""


def cost_of(billed: Sequence[Billed], prices: PriceTable) -> Cost:
    """Return what the model calls of a run cost together."""
    if not billed:
        return Cost(unknown=f"{Missing.USAGE_NOT_CAPTURED}: no model call was captured", prices=prices.version)
    try:
        return Cost(usd=sum((call_cost(one, prices) for one in billed), _ZERO), prices=prices.version)
    except Unpriced as error:
        return Cost(unknown=str(error), prices=prices.version)


def call_cost(billed: Billed, prices: PriceTable) -> Decimal:
    """Return what one call cost; a refused one cost nothing.

    Raises:
        Unpriced: it does not say what it took, or its model has no price for that.
    """
    if billed.refused:
        return _ZERO
    if billed.usage is None:
        raise Unpriced(f"{Missing.USAGE_NOT_CAPTURED}: a call of {billed.model or 'a model'} does not say what it took")
    if not billed.model:
        raise Unpriced(f"{Missing.PRICE_UNKNOWN}: a call does not say of which model it is, or it is a total of several")
    price = prices.of(billed.model)
    if price is None:
        raise Unpriced(f"{Missing.PRICE_UNKNOWN}: the price table has no {billed.model}")
    return priced(billed.usage, price, billed.model)


def priced(usage: Usage, price: PriceSettings, model: str = "the model") -> Decimal:
    """Return the dollars of a call's tokens: each token once, cached and written ones at their own price (reliability R97, R98).

    Raises:
        Unpriced: a count that matters is not known, or has no price.
    """
    if usage.input is None or usage.output is None or max(usage.input, usage.output) > MOST_TOKENS:
        raise Unpriced(f"{Missing.USAGE_NOT_CAPTURED}: a call of {model} says only a part of what it took")
    if price.up_to_input is not None and usage.input > price.up_to_input:
        raise Unpriced(
            f"{Missing.PRICE_UNKNOWN}: {model} has a price up to {price.up_to_input} input tokens, not for {usage.input}"
        )
    cached, written = usage.cached or 0, usage.cache_written or 0
    if cached and price.cached_input is None:
        raise Unpriced(f"{Missing.PRICE_UNKNOWN}: {model} has no price for cached input")
    if written and price.cache_write is None:
        raise Unpriced(f"{Missing.PRICE_UNKNOWN}: {model} has no price for what is written to its cache")
    fresh = max(usage.input - cached - written, 0)
    dollars = price.input * fresh + price.output * usage.output
    return (dollars + (price.cached_input or _ZERO) * cached + (price.cache_write or _ZERO) * written) / MILLION


def cost_checks(settings: LimitsSettings, prices: PriceTable) -> Iterator[Check]:
    """Yield the check of what a run may cost, if that is limited. The version of the prices is in its contract."""
    limit = settings.cost_usd
    if limit is None:
        return
    most = limit.max.normalize()

    def within(billed: Sequence[Billed]) -> Finding:
        cost = cost_of(billed, prices)
        if cost.usd is not None:
            holds = cost.usd <= most
            return measured(float(cost.usd), holds=holds, reason="" if holds else f"{cost.usd:f} is over the limit of {most:f}")
        word, _, why = cost.unknown.partition(": ")
        return unknown(Missing(word), why, upper=None)

    definition = {"rule": "at most", "version": 1, "max": str(most), "prices": prices.version}
    yield check_of(COST_USD, definition, lambda run: within(run.billed), gates=limit.gate)
