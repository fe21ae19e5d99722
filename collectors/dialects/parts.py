"""Parts of a message: texts, calls and results, in the types that providers and conventions give them, and the tools that are offered."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from collectors.dialects.attributes import UNREADABLE, as_text, captured, decoded, is_shallow, structured, withheld
from pipeline.model.step import Message, ToolCall, ToolDefinition

CALLS: Final = frozenset({"tool_call", "tool_use", "function_call", "server_tool_call"})
RESULTS: Final = frozenset({"tool_call_response", "tool_result", "function_call_output", "server_tool_call_response"})
TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_HIDDEN: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
_MEDIA: Final = frozenset(
    {"blob", "file", "uri", "image", "image_url", "input_image", "audio", "input_audio", "video", "document"}
)
_RESULT_KEYS: Final = ("response", "result", "content", "output", "server_tool_call_response")
CALL_PREFIX: Final = "ResponseFunctionToolCall("
_CALL_AS_TEXT: Final = re.compile(
    r"ResponseFunctionToolCall\(arguments='(?P<arguments>.*?)', call_id='(?P<id>[^']*)', name='(?P<name>[^']*)'", re.DOTALL
)
"""A tool call that an instrumentation wrote into a text part (dialects reference, trap 6)."""


def type_of(part: Mapping[str, Any]) -> str:
    """Return what a part says it is; empty where it says nothing, or nothing that could be a type."""
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""


class Content:
    """The parts of one message, sorted by what they are."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self._texts: list[str] = []
        self._calls: dict[str, ToolCall] = {}
        self.results: list[Message] = []
        for part in parts:
            if isinstance(part, str):
                self._add_text(part)
            elif isinstance(part, dict):
                self._add(_typed(part))

    @property
    def text(self) -> str:
        """The texts, joined; what was thought and not said is left out, media leave a mark."""
        return "\n".join(text for text in self._texts if text)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that the message asks for."""
        return tuple(self._calls.values())

    def add_calls(self, raw: Any) -> None:
        """Add calls that stand beside the content; a call may stand in both places."""
        for call in raw if isinstance(raw, list) else ():
            if isinstance(call, dict):
                self._add_call(tool_call_of(call))

    def _add(self, part: dict[str, Any]) -> None:
        kind = type_of(part)
        if kind in CALLS:
            self._add_call(tool_call_of(part))
        elif kind in RESULTS:
            self._add_result(part)
        elif isinstance(said := part.get("text", part.get("content")), str):
            if kind not in _HIDDEN:
                self._add_text(said)
        elif kind in _MEDIA:
            self._texts.append(f"[{part.get('modality') or kind}]")

    def _add_text(self, text: str) -> None:
        match = _CALL_AS_TEXT.match(text) if text.startswith(CALL_PREFIX) else None
        if match is None:
            if not withheld(text):
                self._texts.append(text)
        else:
            self._add_call(tool_call_of(match.groupdict()))

    def _add_call(self, call: ToolCall | None) -> None:
        if call is not None:
            self._calls.setdefault(call.id or f"#{len(self._calls)}", call)

    def _add_result(self, part: dict[str, Any]) -> None:
        call_id = id_of(part.get("id") or part.get("tool_use_id") or part.get("call_id"))
        result = next((part[key] for key in _RESULT_KEYS if part.get(key) is not None), None)
        if withheld(result):
            return
        text = result_text(result)
        asked = self._calls.get(call_id)
        if asked is None:
            self.results.append(Message("tool", text, tool_call_id=call_id, name=str(part.get("name") or "")))
        else:  # the provider ran it and answered in the same message
            self._calls[call_id] = ToolCall(asked.name, asked.id, asked.arguments, asked.raw_arguments, result=text)


def _typed(part: dict[str, Any]) -> dict[str, Any]:
    """Give Bedrock's blocks the types that other providers write out."""
    if isinstance(use := part.get("toolUse"), dict):
        return {"type": "tool_use", "id": use.get("toolUseId"), "name": use.get("name"), "input": use.get("input")}
    if isinstance(result := part.get("toolResult"), dict):
        return {"type": "tool_result", "tool_use_id": result.get("toolUseId"), "content": result.get("content")}
    return part


def result_text(value: Any) -> str:
    """Return the text of a tool's result: blocks of text joined, anything else as it is."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(block, dict) and isinstance(block.get("text"), str) for block in value)
    ):
        return "\n".join(block["text"] for block in value)
    return as_text(value)


def tool_call_of(raw: Mapping[str, Any]) -> ToolCall | None:
    """Return a call as a model asked for it; None without a name. What a message holds was captured, so ``{}`` is no arguments."""
    function = raw.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, dict) else raw
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        return None
    call_id = id_of(raw.get("call_id") or raw.get("id") or raw.get("tool_call_id"))
    given = next((inner[key] for key in ("arguments", "args", "input", "server_tool_call") if inner.get(key) is not None), None)
    arguments = (decoded(given) if captured(given) else None) if isinstance(given, str) else given
    if arguments is UNREADABLE or (arguments is None and given is not None) or not is_shallow(arguments):
        return ToolCall(name, call_id, raw_arguments=as_text(given))
    return ToolCall(name, call_id, arguments=arguments)


def id_of(value: Any) -> str:
    """Return a call id as it is compared: the conventions' own example has a space before it."""
    return str(value).strip() if captured(value) else ""


def tool_definitions(value: Any) -> tuple[ToolDefinition, ...]:
    """Return the tools of a list of definitions, JSON or structured."""
    if isinstance(value, str):
        return _definitions_of_text(value)
    return tuple(tool for raw in (value if isinstance(value, list) else [value]) if (tool := _definition(raw)) is not None)


@lru_cache(maxsize=512)
def _definitions_of_text(text: str) -> tuple[ToolDefinition, ...]:
    """Every model call of every run repeats the same definitions."""
    value = decoded(text)
    return () if isinstance(value, str) or value is UNREADABLE else tool_definitions(value)


def _definition(raw: Any) -> ToolDefinition | None:
    if isinstance(raw, str):
        raw = decoded(raw)
    if not isinstance(raw, dict):
        return None
    function = raw["function"] if isinstance(raw.get("function"), dict) else raw
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return None
    schema = structured(function.get("parameters", function.get("input_schema")))
    return ToolDefinition(name, schema if isinstance(schema, dict) else None)
