"""Content that was taken off a span and logged beside it as one body: ``{"input": {"messages": …}, "output": {"messages": …}}``.

AWS's distribution of OpenTelemetry does this to spans of every dialect (dialects reference, section 11). What it took is put back under the
names where their dialects look for it. Of what stood on events of its own (Strands) a message's content is the whole event.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from collectors.dialects.attributes import as_dict, structured
from pipeline.model.span import Span

_SIDES: Final = {
    "input": (
        "gen_ai.input.messages",
        {
            "openinference.": "input.value",
            "openinference.span.kind": "input.value",
            "traceloop.span.kind": "traceloop.entity.input",
        },
    ),
    "output": (
        "gen_ai.output.messages",
        {
            "openinference.": "output.value",
            "openinference.span.kind": "output.value",
            "traceloop.span.kind": "traceloop.entity.output",
        },
    ),
}
"""Side of a body → attribute of its messages, and attribute of the last one's content by what tells the dialect: an attribute, or the beginning of
the scope, where the log records came without the attributes of their spans."""
_IN_EVENTS: Final = ("message", "content")
"""Where an event keeps what was said: the reply, or any other message."""
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
    messages = as_dict(fields.get(side, as_dict(fields.get("body")).get(side))).get("messages")
    return [_without_event(one) for one in messages] if isinstance(messages, list) else []


def _without_event(message: Any) -> Any:
    """Return a message with the content that an event had under one of its names, where all of the event stands in the content's place."""
    event = as_dict(message).get("content")
    if not isinstance(event, dict) or "type" in event:
        return message
    said = next((event[name] for name in _IN_EVENTS if name in event), event)
    return message | {"content": structured(said)}


def _named(span: Span, side: str, messages: list[Any]) -> dict[str, Any]:
    whole, by_dialect = _SIDES[side]
    content = as_dict(messages[-1]).get("content")
    named = {name: content for mark, name in by_dialect.items() if mark in span.attributes or span.scope_name.startswith(mark)}
    if span.attributes.get("gen_ai.operation.name") == "execute_tool":
        named[_OF_TOOLS[side]] = content
    return named | {whole: messages}
