"""What an agent or a workflow was given and what it gave, where that is no list of messages but whatever its function took and returned."""

from typing import Any, Final, NamedTuple

from collectors.dialects.attributes import UNREADABLE, as_text, decoded, withheld
from collectors.dialects.messages import after_last_user, messages_of
from pipeline.model.step import Message

_WRAPPERS: Final = ("messages", "inputs", "outputs")
_DEEPEST: Final = 4
_ASKED: Final = ("task", "input", "question", "query", "prompt", "message", "request", "user_input", "content", "text")
_ANSWERED: Final = ("output", "answer", "result", "response", "final_output", "final_answer", "content", "text")


class Payload(NamedTuple):
    """Messages that were found; ``opaque`` where the only one is a structure that nobody can tell an answer from."""

    messages: tuple[Message, ...] = ()
    opaque: bool = False
    truncated: bool = False


def asked(value: Any, *, is_json: bool = False) -> Payload:
    """Read an input. ``is_json`` says that the text claims to be JSON, so that one which does not parse was cut."""
    payload = _payload(value, "user", _ASKED, is_json=is_json)
    return Payload() if payload.opaque else payload  # nobody said that; the model call below tells what was asked


def answered(value: Any, *, is_json: bool = False) -> Payload:
    """Read an output. Of a whole conversation, what follows its last user message was produced here."""
    return _payload(value, "assistant", _ANSWERED, is_json=is_json)


def _payload(value: Any, role: str, keys: tuple[str, ...], *, is_json: bool) -> Payload:
    if withheld(value):
        return Payload()
    if isinstance(value, str):
        structure = decoded(value) if value[:1] in ("{", "[", '"') else value
        if structure is UNREADABLE:
            return Payload(truncated=True) if is_json else Payload((Message(role, value),))
        value = structure
    found = _found(value, role, keys)
    if found is None:
        return Payload((Message(role, as_text(value)),), opaque=True)
    return Payload(found)


def _found(value: Any, role: str, keys: tuple[str, ...]) -> tuple[Message, ...] | None:
    """Return the messages in a value, None where its shape tells nothing."""
    for _ in range(_DEEPEST):
        wrapper = next((key for key in _WRAPPERS if key in value), None) if isinstance(value, dict) else None
        if wrapper is None:
            break
        value = value[wrapper]
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Message(role, value),)
    if isinstance(value, list):
        return messages_of(value if role == "user" else after_last_user(value), role) or None
    return _found_in(value, role, keys) if isinstance(value, dict) else None


def _found_in(value: dict[str, Any], role: str, keys: tuple[str, ...]) -> tuple[Message, ...] | None:
    if "role" in value or "parts" in value:
        return messages_of(value, role) or None
    if "kwargs" in value and isinstance(value.get("args"), list):  # a decorated Python function
        named = value["kwargs"].values() if isinstance(value["kwargs"], dict) else ()
        texts = [text for text in (*value["args"], *named) if isinstance(text, str)]
        return (Message(role, texts[0]),) if len(texts) == 1 else None
    calls = value.get("content")
    if (
        isinstance(calls, list) and calls and all(isinstance(one, dict) and "arguments" in one for one in calls)
    ):  # AutoGen's reply
        return messages_of([{"role": role, "tool_calls": calls}], role)
    said = next((value[key] for key in keys if isinstance(value.get(key), str)), None)
    return None if said is None else (Message(role, said),)
