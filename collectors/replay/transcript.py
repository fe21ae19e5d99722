"""Transcripts that never were spans, rendered as spans: an agent, a model call per assistant message, a tool span per tool message.

The form is OpenTelemetry's GenAI conventions (reference dialects section 2). Every span says from what it was converted. What a transcript
lacks is made up visibly: times are one second apart from a fixed day, ids are hashes of what names the run. What people said of the run
becomes labels on the agent span, to be compared with grades and never used as one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import msgspec

from collectors.replay.wire import RecordedSpan
from pipeline.model.ids import digest
from pipeline.model.span import STATUS_ERROR, Attributes
from pipeline.model.step import Message, ToolCall
from pipeline.model.time import SECOND

CONVERTED_FROM: Final = "tracegrade.converted_from"
LABEL: Final = "tracegrade.label."
BASE_NS: Final = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z, when every converted run starts."""

_INTERNAL: Final = 1
_CLIENT: Final = 3
_SCOPE: Final = "tracegrade.replay"
_PROVIDERS: Final = (("gpt-", "openai"), ("o1", "openai"), ("o3", "openai"), ("claude-", "anthropic"), ("gemini-", "gcp.gemini"))
_EXCEPTION: Final = re.compile(r"([\w.]*(?:Error|Exception)): ")
_NOTHING: Final = (None, "", "[]")
_OTHER_ERROR: Final = "_OTHER"
"""What the conventions write in ``error.type`` where no class of error is known."""


class Transcript(msgspec.Struct, frozen=True):
    """One run as a benchmark wrote it down.

    Tool messages carry the call that they answer, with its result and error; ``labels`` are what the benchmark says of the run.
    """

    source: str
    name: tuple[str, ...]
    """What tells this run from all others of the source."""
    agent: str
    messages: Sequence[Message]
    model: str = ""
    labels: Mapping[str, Any] = {}
    error: str = ""
    """Why the run broke off; empty unless it did."""


def spans(transcript: Transcript) -> Iterator[RecordedSpan]:
    """Yield the run's spans, the agent's first."""
    trace_id = digest(16, transcript.source, *transcript.name)
    ids = (digest(8, trace_id, str(number)) for number in count())
    head = next(ids)
    below: list[RecordedSpan] = []
    heard: list[Message] = []
    now = BASE_NS
    for message in transcript.messages:
        now += SECOND
        step = _step(message, heard, transcript)
        heard = [] if message.role == "assistant" else [*heard, message]
        if step is None:
            continue
        below.append(
            msgspec.structs.replace(step, trace_id=trace_id, span_id=next(ids), parent_id=head, start_ns=now - SECOND, end_ns=now)
        )
    yield msgspec.structs.replace(_agent(transcript), trace_id=trace_id, span_id=head, start_ns=BASE_NS, end_ns=now)
    yield from below


def tool_error(text: str) -> str:
    """Return the ``error.type`` of a tool's error text: the exception's class where it starts with one."""
    named = _EXCEPTION.match(text)
    return named[1] if named else _OTHER_ERROR


def _step(message: Message, heard: Sequence[Message], transcript: Transcript) -> RecordedSpan | None:
    if message.role == "assistant":
        return _chat(message, heard, transcript)
    if message.role == "tool" and message.tool_calls:
        return _tool(message.tool_calls[0], transcript)
    return None


def _agent(transcript: Transcript) -> RecordedSpan:
    roles = [message.role for message in transcript.messages]
    asked = [message for message in transcript.messages[: _index(roles, "assistant")] if message.role == "user"]
    said = [message for message in transcript.messages if message.role == "assistant"][-1:]
    answers = [message for message in said if not message.tool_calls]
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": transcript.agent,
        "gen_ai.system_instructions": _json([_text(message.text) for message in transcript.messages if message.role == "system"]),
        "gen_ai.input.messages": _json([_message(message) for message in asked]),
        "gen_ai.output.messages": _json([_output(message) for message in answers]),
        **{LABEL + key: value for key, value in transcript.labels.items()},
    }
    return _span(transcript, f"invoke_agent {transcript.agent}", _INTERNAL, attributes, transcript.error)


def _index(roles: Sequence[str], role: str) -> int:
    return roles.index(role) if role in roles else len(roles)


def _chat(message: Message, heard: Sequence[Message], transcript: Transcript) -> RecordedSpan:
    """Render a model call. Its input is what came since the previous one: the whole history on each would grow as the square."""
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": transcript.agent,
        "gen_ai.input.messages": _json([_message(said) for said in heard]),
        "gen_ai.output.messages": _json([_output(message)]),
    }
    return _span(transcript, f"chat {transcript.model}".rstrip(), _CLIENT, attributes)


def _tool(call: ToolCall, transcript: Transcript) -> RecordedSpan:
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": transcript.agent,
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": call.raw_arguments,
        "gen_ai.tool.call.result": call.result,
    }
    return _span(transcript, f"execute_tool {call.name}", _INTERNAL, attributes, call.error or "")


def _span(transcript: Transcript, name: str, kind: int, attributes: Attributes, error: str = "") -> RecordedSpan:
    model = {"gen_ai.request.model": transcript.model} if transcript.model and "gen_ai.tool.name" not in attributes else {}
    provider = next((name for prefix, name in _PROVIDERS if transcript.model.startswith(prefix)), "")
    if model and provider:
        model["gen_ai.provider.name"] = provider
    failed = {"error.type": tool_error(error)} if error else {}
    said = {key: value for key, value in attributes.items() if value not in _NOTHING}
    return RecordedSpan(
        trace_id="",
        span_id="",
        parent_id="",
        name=name,
        start_ns=0,
        end_ns=0,
        kind=kind,
        status_code=STATUS_ERROR if error else 0,
        status_message=error,
        attributes={**said, **model, **failed, CONVERTED_FROM: transcript.source},
        resource={"service.name": transcript.source},
        scope_name=_SCOPE,
    )


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        response = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}
        return {"role": "tool", "parts": [response]}
    parts = [_text(message.text)] if message.text else []
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": _arguments(call)} for call in message.tool_calls
    ]
    return {"role": message.role, "parts": [*parts, *calls]}


def _output(message: Message) -> dict[str, Any]:
    return {**_message(message), "finish_reason": "tool_call" if message.tool_calls else "stop"}


def _arguments(call: ToolCall) -> Any:
    return call.raw_arguments if call.arguments is None else call.arguments


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
