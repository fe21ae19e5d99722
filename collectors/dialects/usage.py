"""Tokens and their cost, under the names that each dialect gives them."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

from collectors.dialects.attributes import as_dict, integer, structured
from pipeline.model.step import Usage


class Names(NamedTuple):
    """Attribute names of the four counts; the first that is there counts."""

    input: tuple[str, ...]
    output: tuple[str, ...]
    cached: tuple[str, ...]
    reasoning: tuple[str, ...]


GENAI: Final = Names(
    input=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.aggregated_usage.input_tokens"),
    output=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "gen_ai.aggregated_usage.output_tokens"),
    cached=(
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "gen_ai.aggregated_usage.cache_read.input_tokens",
    ),
    reasoning=(
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "gen_ai.aggregated_usage.details.reasoning_tokens",
    ),
)
OPENINFERENCE: Final = Names(
    input=("llm.token_count.prompt", *GENAI.input),
    output=("llm.token_count.completion", *GENAI.output),
    cached=("llm.token_count.prompt_details.cache_read", *GENAI.cached),
    reasoning=("llm.token_count.completion_details.reasoning", *GENAI.reasoning),
)
_WRITTEN: Final = (
    "llm.token_count.prompt_details.cache_write",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
)
_COST: Final = ("llm.cost.total", "gen_ai.usage.cost", "operation.cost")


def usage_of(attributes: Mapping[str, Any], names: Names) -> Usage | None:
    """Return the tokens that a span reports, and their cost; None if it reports none."""
    given = _count(attributes, names.input)
    produced = _count(attributes, names.output)
    cached = _count(attributes, names.cached)
    if given is not None and cached is not None and cached > given:
        # Anthropic counts tokens read from and written to the cache apart; input is to include both.
        given += cached + (_count(attributes, _WRITTEN) or 0)
    reasoning = _count(attributes, names.reasoning)
    if given is None and produced is None:
        return None
    return Usage(input=given, output=produced, cached=cached, reasoning=reasoning, cost_usd=_cost(attributes))


def _cost(attributes: Mapping[str, Any]) -> float | None:
    """Return what the sender says that the call cost, in USD. Prices are not known here, so nothing is made of tokens alone."""
    for name in _COST:
        cost = attributes.get(name)
        if isinstance(cost, int | float) and not isinstance(cost, bool) and isfinite(cost) and cost >= 0:
            return float(cost)
    return None


def usage_within(response: Any) -> Usage | None:
    """Return the tokens that a response reports, JSON with ``usage`` in it, for spans that report none themselves."""
    if not isinstance(response, str) or '"usage"' not in response:
        return None
    counts = as_dict(as_dict(structured(response)).get("usage"))
    return usage_of({f"gen_ai.usage.{name}": count for name, count in counts.items()}, GENAI)


def _count(attributes: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        count = integer(attributes.get(name))
        if count is not None and count >= 0:
            return count
    return None
