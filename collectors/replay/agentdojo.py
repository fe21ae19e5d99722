"""AgentDojo runs (ethz-spylab/agentdojo): an agent works on a user's task while tool results may try to inject another one.

Labelled by ``utility`` (the user's task was solved) and ``security``, which means that the ATTACK SUCCEEDED and says nothing where there was
none: such runs get no security label.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay.transcript import Transcript, spans
from collectors.replay.wire import requests_of
from pipeline.model.step import Message, ToolCall

NAME: Final = "agentdojo"
WHAT: Final = '{"suite_name", "pipeline_name", "user_task_id", "messages": […]}'

_NAMED_BY: Final = ("suite_name", "pipeline_name", "user_task_id", "injection_task_id", "attack_type")


def matches(document: Any) -> bool:
    """Whether the document is one run of one task."""
    return isinstance(document, dict) and {"suite_name", "user_task_id", "messages"} <= document.keys()


def requests(document: Any, file_name: str) -> Iterator[ExportTraceServiceRequest]:  # noqa: ARG001
    """Yield the run as spans."""
    suite = document["suite_name"]
    transcript = Transcript(
        source=NAME,
        name=tuple(str(document.get(part) or "") for part in _NAMED_BY),
        agent=f"agentdojo-{suite}",
        messages=_messages(document["messages"]),
        model=document.get("pipeline_name") or "",
        labels=_labels(document),
        error=document.get("error") or "",
    )
    yield from requests_of(spans(transcript))


def _labels(document: dict[str, Any]) -> dict[str, Any]:
    labels = {"task": document["user_task_id"], "utility": document.get("utility")}
    if document.get("attack_type"):
        labels |= {
            "attack_type": document["attack_type"],
            "injection_task": document.get("injection_task_id"),
            "security": document.get("security"),
        }
    return {key: value for key, value in labels.items() if value is not None}


def _messages(entries: Sequence[dict[str, Any]]) -> list[Message]:
    return [_message(entry) for entry in entries]


def _message(entry: dict[str, Any]) -> Message:
    text = _text(entry.get("content"))
    if entry["role"] != "tool":
        return Message(role=entry["role"], text=text, tool_calls=tuple(_call(call) for call in entry.get("tool_calls") or ()))
    error = entry.get("error")
    told = text or error or ""
    call = msgspec.structs.replace(_call(entry["tool_call"]), result=told, error=error)
    return Message(role="tool", text=told, tool_calls=(call,), tool_call_id=call.id)


def _call(call: dict[str, Any]) -> ToolCall:
    arguments = call.get("args") or {}
    raw = msgspec.json.encode(arguments).decode()
    return ToolCall(name=call["function"], id=call.get("id") or "", arguments=arguments, raw_arguments=raw)


def _text(content: Any) -> str:
    """Read content that is text, nothing, or (newer AgentDojo) a list of text blocks."""
    if isinstance(content, list):
        return "\n".join(block.get("content") or "" for block in content)
    return content or ""
