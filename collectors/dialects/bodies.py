"""Content that was taken off a span and logged beside it as one body: ``{"input": {"messages": …}, "output": {"messages": …}}``.

AWS's distribution of OpenTelemetry does this to spans of every dialect (dialects reference, section 11). What it took is put back under the
names where their dialects look for it.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from collectors.dialects.attributes import as_dict
from pipeline.model.span import Span

_SIDES: Final = {
    "input": (
        "gen_ai.input.messages",
        {"openinference.span.kind": "input.value", "traceloop.span.kind": "traceloop.entity.input"},
    ),
    "output": (
        "gen_ai.output.messages",
        {"openinference.span.kind": "output.value", "traceloop.span.kind": "traceloop.entity.output"},
    ),
}
"""Side of a body → attribute of its messages, and attribute of the last one's content by the attribute that tells the dialect."""
_OF_TOOLS: Final = {"input": "gen_ai.tool.call.arguments", "output": "gen_ai.tool.call.result"}


def holds_messages(fields: Mapping[str, Any]) -> bool:
    """Whether these fields of an event are such a body."""
    return any(_messages(fields, side) for side in _SIDES)


def restored(span: Span) -> Span:
    """Return the span with what stands in such bodies put back; what it says itself stays."""
    found: dict[str, Any] = {}
    for event in span.events:
        for side in _SIDES:
            if messages := _messages(event.attributes, side):
                found |= _named(span, side, messages)
    return msgspec.structs.replace(span, attributes=found | span.attributes) if found else span


def _messages(fields: Mapping[str, Any], side: str) -> list[Any]:
    messages = as_dict(fields.get(side)).get("messages")
    return messages if isinstance(messages, list) else []


def _named(span: Span, side: str, messages: list[Any]) -> dict[str, Any]:
    whole, by_dialect = _SIDES[side]
    content = as_dict(messages[-1]).get("content")
    named = {name: content for mark, name in by_dialect.items() if mark in span.attributes}
    if span.attributes.get("gen_ai.operation.name") == "execute_tool":
        named[_OF_TOOLS[side]] = content
    return named | {whole: messages}
