"""Finish: why a model stopped, under the names that dialects give it."""

from typing import Final

from collectors.dialects.attributes import structured
from pipeline.model.span import Span

LENGTH: Final = "length"
"""Flag: the model stopped because its reply had reached the greatest length."""
_NAMES: Final = (
    "gen_ai.response.finish_reasons",
    "gen_ai.response.finish_reason",
    "ai.response.finishReason",
    "llm.finish_reason",
    "gen_ai.completion.0.finish_reason",
)
_EVENTS: Final = ("gen_ai.choice", "gen_ai.client.inference.operation.details")
_LENGTHS: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "token_limit", "incomplete"}
)
"""What providers call it, in lower case."""


def stopped_at_length(span: Span) -> bool:
    """Whether the span of a model call says that the model stopped for its length."""
    attributes = span.attributes
    if any(name in attributes and _is_length(attributes[name]) for name in _NAMES):
        return True
    return any(
        event.name in _EVENTS
        and (_is_length(event.attributes.get("finish_reason")) or _is_length(event.attributes.get(_NAMES[0])))
        for event in span.events
    )


def _is_length(said: object) -> bool:
    """Of several replies to one call the last counts. Some write the list as JSON, or with commas."""
    value = structured(said) if isinstance(said, str) and said[:1] == "[" else said
    if isinstance(value, list):
        value = value[-1] if value else ""
    return isinstance(value, str) and value.rpartition(",")[2].strip().lower() in _LENGTHS
