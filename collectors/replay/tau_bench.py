"""tau-bench trajectories (sierra-research/tau-bench): a simulated user talks with an airline or retail agent; labelled by reward.

The whole conversation is one run. What the simulated user says after the agent's last message closes the simulation and is on no span.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay.transcript import Transcript, spans
from collectors.replay.wire import requests_of
from pipeline.model.step import Message, ToolCall

NAME: Final = "tau-bench"
WHAT: Final = '{"task_id", "reward", "traj": […], "trial"}'

_DOMAIN: Final = re.compile(r"#\s*(\w+) agent policy", re.IGNORECASE)
_FILE: Final = re.compile(r"(.+?)-(?:airline|retail)\b")
_FAILED: Final = "Error:"


def matches(document: Any) -> bool:
    """Whether the document is one trial of one task."""
    return isinstance(document, dict) and {"task_id", "trial", "traj"} <= document.keys()


def requests(document: Any, file_name: str) -> Iterator[ExportTraceServiceRequest]:
    """Yield the trial as spans. Its model is not in it, but in the name of the benchmark's files: ``<model>-<domain>.json``."""
    model = _FILE.match(file_name)
    yield from requests_of(spans(_transcript(document, model[1] if model else "")))


def _transcript(document: dict[str, Any], model: str) -> Transcript:
    messages = _messages(document["traj"])
    domain = next(
        (found[1].lower() for message in messages if message.role == "system" and (found := _DOMAIN.search(message.text))), ""
    )
    return Transcript(
        source=NAME,
        name=(domain, str(document["task_id"]), str(document["trial"]), _first_words(messages)),
        agent=f"tau-{domain}" if domain else "tau",
        messages=messages,
        model=model,
        labels={"task": str(document["task_id"]), "trial": document["trial"], "reward": document.get("reward")},
    )


def _first_words(messages: Sequence[Message]) -> str:
    """Return what the agent said or called first: it tells apart the same trial of the same task by different models."""
    first = next((message for message in messages if message.role == "assistant"), Message(role="assistant"))
    return first.tool_calls[0].id if first.tool_calls else first.text


def _messages(trajectory: Sequence[dict[str, Any]]) -> list[Message]:
    messages: list[Message] = []
    asked: dict[str, ToolCall] = {}
    for entry in trajectory:
        text = entry.get("content") or ""
        calls = tuple(_call(call) for call in entry.get("tool_calls") or ())
        asked |= {call.id: call for call in calls}
        call_id = entry.get("tool_call_id") or ""
        if entry["role"] == "tool":
            call = asked.get(call_id, ToolCall(name=entry.get("name") or "", id=call_id))
            calls = (msgspec.structs.replace(call, result=text, error=text if text.startswith(_FAILED) else None),)
        messages.append(Message(role=entry["role"], text=text, tool_calls=calls, tool_call_id=call_id))
    return messages


def _call(call: dict[str, Any]) -> ToolCall:
    raw = call["function"]["arguments"]
    try:
        arguments = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        arguments = None
    return ToolCall(name=call["function"]["name"], id=call["id"], arguments=arguments, raw_arguments=raw)
