"""A run in, its transcript out: what a judge is shown, as a JSON document whose sections say who said what.

It holds no ids of traces or runs, no times and nothing about arrival: the same content always has the same hash.
What the agent was given (instructions, requests, what tools returned) stands apart from what the agent says itself.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from pipeline.model import ids
from pipeline.model.run import Run
from pipeline.model.step import Message, StepKind, ToolCall
from pipeline.model.version import Transcript

TRANSCRIPT_VERSION: Final = "transcript-1"
"""Part of the contract: change it with anything that changes a body."""


class Turn(msgspec.Struct, frozen=True):
    """What was said before the request. ``role`` is user or assistant, or empty on the mark of turns left out.

    What an assistant said is a claim.
    """

    role: str
    text: str


class Observation(msgspec.Struct, frozen=True):
    """A call of a tool. Name and arguments are the agent's own words; ``result`` and ``error`` are what came back.

    ``left_out`` is the number of calls that were cut in its place; everything else is then empty.
    """

    tool: str = ""
    arguments: str | None = None
    result: str | None = None
    error: str | None = None
    left_out: int = 0


class Document(msgspec.Struct, frozen=True):
    """The sections of a transcript's body."""

    system: str
    earlier: tuple[Turn, ...]
    request: str
    observations: tuple[Observation, ...]
    claims: tuple[str, ...]
    """What the agent said on its way to the answer."""
    answer: str
    cut: bool = False
    """Whether anything was left out to fit the budget."""
    reference: str | msgspec.UnsetType = msgspec.UNSET
    """The reference answer. Unset where nobody wrote one: then it is not in the body, which is what it was before there were any."""


class _Level(msgspec.Struct, frozen=True):
    """How much is kept of a document: the longest text, in characters, and the most calls and turns."""

    text: int
    calls: int


_LEVELS: Final = (_Level(8000, 100), _Level(4000, 60), _Level(2000, 40), _Level(1000, 24), _Level(500, 12), _Level(250, 8))
_LAST_CALLS: Final = 3
_encode: Final = msgspec.json.Encoder().encode


def render(run: Run, budget_chars: int, reference: str | None = None) -> Transcript:
    """Return the run's transcript, cut to at most ``budget_chars`` characters where cutting helps.

    Cut by rule, mildest first: the middle of long texts, then calls from the middle. Errors, the last calls and the
    head and tail of every text stay; what was left out is marked. The request, the answer and the ``reference`` answer are
    never cut: a grade of half an answer would be a grade of another answer, so a run that still does not fit is ``too_long``.
    """
    whole = document(run, reference)
    body = _body(whole)
    for level in _LEVELS:
        if len(body) <= budget_chars:
            break
        body = _body(_shorten(whole, level))
    return Transcript(body=body, hash=ids.digest(16, body), too_long=len(body) > budget_chars)


def read(body: str) -> Document:
    """Read the body of a transcript back."""
    return msgspec.json.decode(body, type=Document)


def document(run: Run, reference: str | None = None) -> Document:
    """Return the sections of a run, uncut."""
    answer = _text(run.answer)
    return Document(
        system=_text(run.system) or "\n\n".join(_text(message.text) for message in run.messages if message.role == "system"),
        earlier=tuple(_earlier(run)),
        request=_text(run.request),
        observations=(*_replayed(run.messages), *(_observation(call) for call in run.tool_calls)),
        claims=tuple(_claims(run, answer)),
        answer=answer,
        reference=msgspec.UNSET if reference is None else _text(reference),
    )


def _earlier(run: Run) -> Iterable[Turn]:
    turns = [
        Turn(message.role, _text(message.text)) for message in reversed(run.messages) if message.role in ("user", "assistant")
    ]
    request = Turn("user", _text(run.request))
    if request in turns:
        turns.remove(request)
    return [turn for turn in reversed(turns) if turn.text.strip()]


def _replayed(messages: Sequence[Message]) -> Iterable[Observation]:
    """What tools returned before this run: the history that its first model call was given."""
    asked = {call.id: call for message in messages for call in message.tool_calls if call.id}
    for message in messages:
        if message.role == "tool":
            call = asked.get(message.tool_call_id, ToolCall(name=message.name))
            yield _observation(msgspec.structs.replace(call, result=message.text))


def _claims(run: Run, answer: str) -> Iterable[str]:
    said: dict[str, None] = {}
    for step in run.steps:
        if step.kind is StepKind.MODEL:
            said.update((_text(message.text), None) for message in step.output if message.role == "assistant")
    return [text for text in said if text.strip() and text != answer]


def _observation(call: ToolCall) -> Observation:
    return Observation(
        tool=_text(call.name),
        arguments=_text(call.raw_arguments) or None if call.arguments is None else _canonical(call.arguments),
        result=None if call.result is None else _text(call.result),
        error=None if call.error is None else _text(call.error),
    )


def _canonical(value: Any) -> str:
    return _text(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(", ", ": ")))


def _text(text: str | None) -> str:
    # A lone surrogate is a valid JSON escape and no valid UTF-8: it would stop the body from being stored.
    return (text or "").encode("utf-8", "replace").decode("utf-8")


def _body(sections: Document) -> str:
    return _encode(sections).decode("utf-8")


def _shorten(whole: Document, level: _Level) -> Document:
    return Document(
        system=_middle_out(whole.system, 2 * level.text),
        earlier=_shorten_turns(whole.earlier, level),
        request=whole.request,
        observations=tuple(_shorten_call(call, level.text) for call in _kept(whole.observations, level.calls)),
        claims=_shorten_claims(whole.claims, level),
        answer=whole.answer,
        cut=True,
        reference=whole.reference,
    )


def _middle_out(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[-tail:]}"


def _shorten_turns(turns: tuple[Turn, ...], level: _Level) -> tuple[Turn, ...]:
    left_out = len(turns) - level.calls
    mark = (Turn("", f"[… {left_out} turns left out …]"),) if left_out > 0 else ()
    return (*mark, *(Turn(turn.role, _middle_out(turn.text, level.text)) for turn in turns[-level.calls :]))


def _shorten_claims(claims: tuple[str, ...], level: _Level) -> tuple[str, ...]:
    left_out = len(claims) - level.calls
    mark = (f"[… {left_out} statements left out …]",) if left_out > 0 else ()
    return (*mark, *(_middle_out(text, level.text) for text in claims[-level.calls :]))


def _shorten_call(call: Observation, limit: int) -> Observation:
    return msgspec.structs.replace(
        call,
        tool=_middle_out(call.tool, limit),
        arguments=None if call.arguments is None else _middle_out(call.arguments, limit),
        result=None if call.result is None else _middle_out(call.result, limit),
        error=None if call.error is None else _middle_out(call.error, limit),
    )


def _kept(calls: Sequence[Observation], most: int) -> Iterable[Observation]:
    """Leave calls of the middle out: the last ones stay, then the latest errors, then the first ones."""
    count = len(calls)
    last = range(max(0, count - _LAST_CALLS), count)
    errors = [index for index in reversed(range(count)) if calls[index].error is not None]
    kept = sorted(list(dict.fromkeys([*reversed(last), *errors, *range(count)]))[:most])
    before = 0
    for index in kept:
        if index > before:
            yield Observation(left_out=index - before)
        yield calls[index]
        before = index + 1
