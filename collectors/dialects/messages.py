"""Messages of a conversation, in the shapes that instrumentations write: one reader for all of them, since they get mixed.

Read are the parts of the GenAI conventions, the chat and responses forms of OpenAI, content blocks of Anthropic and Bedrock, and messages
that LangChain serialised.
"""

from collections.abc import Iterator
from typing import Any, Final

from collectors.dialects.attributes import decoded, withheld
from collectors.dialects.parts import CALL_PREFIX, CALLS, RESULTS, TEXTS, Content, id_of, type_of
from pipeline.model.step import Message

_ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "model": "assistant",
    "tool-call": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "tool-response": "tool",
    "function": "tool",
    "function_call_output": "tool",
}


def messages_of(value: Any, role: str) -> tuple[Message, ...]:
    """Return the messages of a list, or of an object with ``messages``; ``role`` is whose they are where they do not say."""
    if isinstance(value, dict):
        value = value["messages"] if isinstance(value.get("messages"), list) else [value]
    if not isinstance(value, list):
        return ()
    return tuple(message for raw in value for message in _messages(raw, role))


def after_last_user(raw: list[Any]) -> list[Any]:
    """Return the end of a conversation that answers its last user message."""
    for index in range(len(raw) - 1, -1, -1):
        if isinstance(raw[index], dict) and _role(raw[index], _fields(raw[index]), "") == "user":
            return raw[index + 1 :]
    return raw


def instructions(value: Any) -> tuple[Message, ...]:
    """Return system instructions, a text or a list of parts, as the system message they stand for."""
    value = decoded(value) if isinstance(value, str) and value[:1] in ("[", '"') else value
    parts = value if isinstance(value, list) else [value]
    return messages_of([{"role": "system", "parts": parts}], "system")


def _messages(raw: Any, default: str) -> Iterator[Message]:
    if isinstance(raw, dict):
        yield from _message(raw, default)
    elif isinstance(raw, list) and len(raw) == 2 and isinstance(raw[0], str):  # noqa: PLR2004 - LangChain's short form: (role, text)
        yield from _message({"role": raw[0], "content": raw[1]}, default)
    elif isinstance(raw, list):  # LangChain batches conversations
        for one in raw:
            if isinstance(one, dict):
                yield from _message(one, default)


def _message(raw: dict[str, Any], default: str) -> Iterator[Message]:
    if raw.get("object") == "response" and isinstance(raw.get("output"), list):
        for item in raw["output"]:
            if isinstance(item, dict) and item.get("object") != "response":
                yield from _message(item, default)
        return
    fields = _fields(raw)
    role, call_id, name = _role(raw, fields, default), id_of(fields.get("tool_call_id")), str(fields.get("name") or "")
    said = _only_text(fields)
    if said is not None:
        if said or (role == "tool" and call_id):
            yield Message(role, said, tool_call_id=call_id, name=name)
        return
    content = Content(_parts(fields))
    content.add_calls(fields.get("tool_calls"))
    yield from content.results
    if content.calls:
        yield Message("assistant", content.text, content.calls, tool_call_id=call_id, name=name)
    elif content.text or (role == "tool" and call_id and not content.results):
        yield Message(role, content.text, tool_call_id=call_id, name=name)


def _only_text(fields: dict[str, Any]) -> str | None:
    """Return the text of a message that is nothing else, as most are, since every call repeats the history; None for any other."""
    if fields.get("tool_calls"):
        return None
    said = fields.get("parts", fields.get("content"))
    if isinstance(said, list) and len(said) == 1 and isinstance(said[0], dict) and type_of(said[0]) in TEXTS:
        said = said[0].get("content", said[0].get("text"))
    if not isinstance(said, str) or said.startswith(CALL_PREFIX):
        return None
    return "" if withheld(said) else said


def _role(raw: dict[str, Any], fields: dict[str, Any], default: str) -> str:
    name = fields.get("role") or fields.get("type") or raw.get("type")
    return _ROLES.get(name, default) if isinstance(name, str) else default


def _fields(raw: dict[str, Any]) -> dict[str, Any]:
    """Unwrap what LangChain serialised: ``{"type", "data": {…}}`` or ``{"lc", "kwargs": {…}}``."""
    if "parts" in raw or "content" in raw:
        return raw
    for wrapper in ("kwargs", "data"):
        inner = raw.get(wrapper)
        if isinstance(inner, dict) and "content" in inner:
            return inner
    return raw


def _parts(fields: dict[str, Any]) -> list[Any]:
    parts = fields.get("parts")
    if parts is None:
        parts = fields if type_of(fields) in CALLS | RESULTS else fields.get("content")
    return parts if isinstance(parts, list) else [parts]
