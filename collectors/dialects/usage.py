"""Tokens and their cost, under the names that each dialect gives them."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

from collectors.dialects.attributes import as_dict, integer, structured
from pipeline.model.step import Usage

_WRITTEN: Final = (
    "llm.token_count.prompt_details.cache_write",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "gen_ai.aggregated_usage.cache_creation.input_tokens",
    "gen_ai.aggregated_usage.details.cache_write_tokens",
    "ai.usage.inputTokenDetails.cacheWriteTokens",
    "cache_creation_input_tokens",
    "cache_write_input_tokens",
    "input_cache_creation",
)
_TOTAL: Final = (
    "gen_ai.usage.total_tokens",
    "llm.usage.total_tokens",
    "llm.token_count.total",
    "ai.usage.totalTokens",
    "total_tokens",
    "totalTokens",
    "total",
)


class Names(NamedTuple):
    """Attribute names of the counts; the first that is there counts, and never two of them (reliability R103)."""

    input: tuple[str, ...]
    output: tuple[str, ...]
    cached: tuple[str, ...]
    reasoning: tuple[str, ...]
    written: tuple[str, ...] = _WRITTEN
    total: tuple[str, ...] = _TOTAL


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
_COST: Final = ("llm.cost.total", "gen_ai.usage.cost", "operation.cost")


def usage_of(attributes: Mapping[str, Any], names: Names) -> Usage | None:
    """Return the tokens that a span reports, and what its sender says that they cost; None if it reports none.

    Input is to include what was read from and written to a cache, output what was reasoned. Some count them apart (Anthropic the first, Gemini
    the second): that shows where the part is more than the whole, or where a total adds up only so.
    """
    given = _count(attributes, names.input)
    produced = _count(attributes, names.output)
    if given is None and produced is None:
        return None
    cached = _count(attributes, names.cached)
    written = _count(attributes, names.written)
    reasoning = _count(attributes, names.reasoning)
    beside = _count(attributes, names.total)
    beside = beside - (given or 0) - (produced or 0) if beside is not None else 0
    of_cache, of_reasoning = (cached or 0) + (written or 0), reasoning or 0
    if given is not None and (of_cache > given or (of_cache and beside in (of_cache, of_cache + of_reasoning))):
        given += of_cache
    if produced is not None and (of_reasoning > produced or (of_reasoning and beside in (of_reasoning, of_cache + of_reasoning))):
        produced += of_reasoning
    return Usage(given, produced, cached, reasoning, _cost(attributes), written)


def _cost(attributes: Mapping[str, Any]) -> float | None:
    """Return what the sender says that the call cost, in USD; it is kept beside what tokens and prices make it."""
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
