"""Said: what a client says in a request, read strictly, since nobody can ask back what it meant."""

import re
from math import isfinite
from typing import Final

import msgspec

from pipeline.errors import PermanentError
from pipeline.model import ids
from pipeline.model.result import Feedback

MOST: Final = 1000
"""Things that one request may say."""
LONGEST_COMMENT: Final = 10_000
LONGEST: Final = 1000
"""Characters of an author, a conversation's id and a client's key."""
_VALUES: Final = {"up": 1.0, "down": -1.0}
_ID: Final = re.compile("[0-9a-f]{32}")


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One feedback: a value, and the trace, the run or the conversation that it is about. A run's trace may be named beside it."""

    value: bool | float | str
    trace_id: str | None = None
    run_id: str | None = None
    conversation_id: str | None = None
    author: str | None = None
    comment: str | None = None
    id: str | None = None
    """The client's key: what is sent again under it is the same feedback."""


_one: Final = msgspec.json.Decoder(Said).decode
_several: Final = msgspec.json.Decoder(list[Said]).decode


def read(body: bytes) -> list[Said]:
    """Return what a body says: one JSON object, or a list of them.

    Raises:
        PermanentError: it is neither, or what it says is not to be understood; the message says what to send.
    """
    try:
        said = _several(body) if body.lstrip()[:1] == b"[" else [_one(body)]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise PermanentError(f"the body is no feedback: {error}") from error
    if len(said) > MOST:
        raise PermanentError(f"the body says {len(said)} things; send at most {MOST} at once")
    return [_checked(one, f"[{index}]" if body.lstrip()[:1] == b"[" else "") for index, one in enumerate(said)]


def _checked(said: Said, where: str) -> Said:
    """Return it with ids in lower case, or refuse it."""
    trace, run, conversation = said.trace_id or "", said.run_id or "", said.conversation_id or ""
    if not (trace or run or conversation) or (conversation and (trace or run)):
        raise PermanentError(f"feedback{where} must name what it is about: trace_id, run_id or conversation_id")
    for name, text in (("trace_id", trace), ("run_id", run)):
        if text and not _ID.fullmatch(text.lower()):
            raise PermanentError(f"{name}{where} must be 32 hex digits, and is {text[:40]!r}")
    limits = {"author": LONGEST, "conversation_id": LONGEST, "id": LONGEST, "comment": LONGEST_COMMENT}
    for name, limit in limits.items():
        if len(getattr(said, name) or "") > limit:
            raise PermanentError(f"{name}{where} is longer than {limit} characters")
    _value(said.value, where)
    return msgspec.structs.replace(said, trace_id=trace.lower(), run_id=run.lower())


def _value(value: float | str, where: str = "") -> float:
    """Return the value as a number: true and ``up`` are 1, false and ``down`` are −1."""
    if isinstance(value, bool):
        return 1.0 if value else -1.0
    number = _VALUES.get(value.strip().lower()) if isinstance(value, str) else float(value)
    if number is None or not isfinite(number):
        raise PermanentError(f"value{where} is {value!r}; send a number (below 0 is a thumbs-down), true, false, up or down")
    return number


def fact(said: Said, project: str, trace_id: str, run_id: str, key: str, received_ns: int) -> Feedback:
    """Return the feedback. The same key, or without one the same words about the same thing, is the same feedback."""
    value, author, comment = _value(said.value), said.author or "", said.comment or ""
    about = (said.trace_id or "", said.run_id or "", said.conversation_id or "")
    named = ("key", key) if key else ("content", *about, repr(value), author, comment)
    return Feedback(
        project=project,
        trace_id=trace_id,
        id=ids.digest(16, "feedback", project, *named),
        value=value,
        run_id=run_id,
        author=author,
        comment=comment,
        received_ns=received_ns,
    )
