"""Parts of a message: texts, calls and results, in the types that providers and conventions give them, and the tools that are offered."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from collectors.dialects.attributes import UNREADABLE, as_text, captured, decoded, is_shallow, structured, withheld
from pipeline.model.step import Message, ToolCall, ToolDefinition

HOSTED: Final = {
    "mcp_call": "",
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "computer_call": "computer",
    "image_generation_call": "image_generation",
}
"""Calls that a provider runs by itself and answers in the same item (OpenAI's responses), with the name of the tool where the item has none."""
CALLS: Final = frozenset(
    {"tool_call", "tool_use", "function_call", "server_tool_call", "server_tool_use", "mcp_tool_use", *HOSTED}
)
RESULTS: Final = frozenset(
    {
        "tool_call_response",
        "tool_result",
        "function_call_output",
        "server_tool_call_response",
        "mcp_tool_result",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
    }
)
TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_HIDDEN: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
_MEDIA: Final = frozenset(
    {"blob", "file", "uri", "image", "image_url", "input_image", "audio", "input_audio", "video", "document"}
)
_SCHEMA_KEYS: Final = ("parameters", "input_schema", "parameters_json_schema")
_RESULT_KEYS: Final = ("response", "result", "content", "output", "server_tool_call_response")
_HOSTED_ARGUMENTS: Final = ("action", "queries", "code")
_HOSTED_RESULTS: Final = ("output", "results", "outputs", "result", "status")
CALL_PREFIX: Final = "ResponseFunctionToolCall("
_ESCAPED: Final = {"\\": "\\", "'": "'", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE: Final = re.compile(r"\\([\\'nrt]|x[0-9a-f]{2}|u(?!d[89a-f])[0-9a-f]{4}|U000[0-9a-f]{5})")
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
            self._add_call(_hosted_call(part, HOSTED[kind]) if kind in HOSTED else tool_call_of(part))
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
            self._add_call(tool_call_of(match.groupdict() | {"arguments": _unescaped(match["arguments"])}))

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


_BLOCKS: Final = {
    "toolUse": ("tool_use", "toolUseId", "input"),
    "toolResult": ("tool_result", "toolUseId", "content"),
    "function_call": ("tool_use", "id", "args"),
    "functionCall": ("tool_use", "id", "args"),
    "function_response": ("tool_result", "id", "response"),
    "functionResponse": ("tool_result", "id", "response"),
    "toolRequest": ("tool_use", "ref", "input"),
    "toolResponse": ("tool_result", "ref", "output"),
}
"""Blocks that are told by their only key, not by a type: Bedrock's, Gemini's in two spellings, Genkit's. With the type, the id, the content."""


def _typed(part: dict[str, Any]) -> dict[str, Any]:
    """Give blocks the types that other providers write out."""
    if "type" in part:
        return part
    for key, (kind, id_key, content) in _BLOCKS.items():
        block = part.get(key)
        if isinstance(block, dict):
            named = {"type": kind, "id": block.get(id_key), "name": block.get("name")}
            return named | ({"input": block.get(content, {})} if kind == "tool_use" else {"content": block.get(content)})
    return part | {"type": "thinking"} if part.get("thought") is True else part


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
    """Return a call as a model asked for it; None without a name.

    What a message holds was captured, so ``{}`` is no arguments, and so is the empty text that models write for it (reliability R112).
    """
    function = raw.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, dict) else raw
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        return None
    call_id = id_of(raw.get("call_id") or raw.get("id") or raw.get("tool_call_id"))
    given = next((inner[key] for key in ("arguments", "args", "input", "server_tool_call") if inner.get(key) is not None), None)
    if isinstance(given, str):
        arguments = (decoded(given) if captured(given) else None) if given and not given.isspace() else {}
    else:
        arguments = given
    if arguments is UNREADABLE or (arguments is None and given is not None) or not is_shallow(arguments):
        return ToolCall(name, call_id, raw_arguments=as_text(given))
    return ToolCall(name, call_id, arguments=arguments)


def _hosted_call(part: Mapping[str, Any], name: str) -> ToolCall | None:
    """Return a call that its provider ran, with its result, or at least that it was completed."""
    given = {key: part[key] for key in _HOSTED_ARGUMENTS if part.get(key) is not None}
    call = tool_call_of({"id": part.get("id"), "name": part.get("name") or name, "arguments": part.get("arguments", given)})
    told = next((part[key] for key in _HOSTED_RESULTS if part.get(key) is not None), None)
    error = part.get("error")
    if call is None or not (captured(told) or captured(error)):
        return call
    failed = as_text(error) if captured(error) else None
    result = None if told is None else result_text(told)
    return ToolCall(call.name, call.id, call.arguments, call.raw_arguments, result=result, error=failed)


def _unescaped(text: str) -> str:
    """Return a text that Python wrote between quotes as it was."""
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1]) or chr(int(match[1][1:], 16)), text)


def id_of(value: Any) -> str:
    """Return a call id as it is compared: the conventions' own example has a space before it."""
    return as_text(value).strip() if captured(value) else ""


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
    schema = structured(next((function[key] for key in _SCHEMA_KEYS if function.get(key) is not None), None))
    return ToolDefinition(name, schema if isinstance(schema, dict) else None)
