"""Langfuse exports: a trace and its observations, the attributes they arrived with under ``metadata.attributes``.

Langfuse shows JSON attributes parsed and numbers as text, and moves what its own SDK sends, and messages, arguments and results of OpenTelemetry's
conventions, into columns; all of it is turned back.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay.wire import RecordedSpan, requests_of
from pipeline.model.span import STATUS_ERROR, Attributes

NAME: Final = "Langfuse export"
WHAT: Final = '{"trace": {…}, "observations": […]}'

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = 1000
_TOKENS: Final = re.compile(r"\.usage\.|\.token_count\.")
_LANGFUSE_SDK: Final = "langfuse-sdk"
_OPERATION: Final = "gen_ai.operation.name"
_CONTENT: Final = {
    "execute_tool": ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
    "invoke_agent": ("gen_ai.input.messages", "gen_ai.output.messages"),
    "chat": ("gen_ai.input.messages", "gen_ai.output.messages"),
}
"""Operation → the attributes of the conventions that the export holds in ``input`` and ``output``, and not among the attributes."""
_INDEXED: Final = ("gen_ai.prompt.", "gen_ai.completion.")


def matches(document: Any) -> bool:
    """Whether the document has a trace and its observations."""
    return (
        isinstance(document, dict) and isinstance(document.get("observations"), list) and isinstance(document.get("trace"), dict)
    )


def requests(document: Any, file_name: str) -> Iterator[ExportTraceServiceRequest]:  # noqa: ARG001
    """Yield the document's observations as the spans that they were; scores are not on spans and are left out."""
    yield from requests_of(_span(observation) for observation in document["observations"])


def _span(observation: dict[str, Any]) -> RecordedSpan:
    metadata = observation.get("metadata") or {}
    scope = metadata.get("scope") or {}
    attributes = {key: _sent(key, value) for key, value in (metadata.get("attributes") or {}).items()}
    if scope.get("name") == _LANGFUSE_SDK:
        attributes = _columns(observation) | attributes
    elif _OPERATION in attributes:
        attributes = _content(observation, attributes) | attributes
    return RecordedSpan(
        trace_id=observation["traceId"],
        span_id=observation["id"],
        parent_id=observation.get("parentObservationId"),
        name=observation.get("name") or "",
        start_ns=_nanoseconds(observation.get("startTime")),
        end_ns=_nanoseconds(observation.get("endTime")),
        status_code=STATUS_ERROR if observation.get("level") == "ERROR" else 0,
        status_message=observation.get("statusMessage") or "",
        attributes=attributes,
        resource=metadata.get("resourceAttributes") or {},
        scope_name=scope.get("name") or "",
        scope_version=scope.get("version") or "",
        scope_attributes=scope.get("attributes") or {},
    )


def _nanoseconds(text: str | None) -> int:
    """Read an ISO time exactly: its microseconds are whole, a float of seconds would not be."""
    if not text:
        return 0
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1) * _MICROSECOND


def _sent(key: str, value: Any) -> Any:
    """Return an attribute as it was sent: structures as JSON text, token counts as numbers."""
    if isinstance(value, str) and value.isdecimal() and _TOKENS.search(key):
        return int(value)
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)):
        return _json(value)
    return value


def _columns(observation: dict[str, Any]) -> Attributes:
    """Return what Langfuse's own SDK sent as attributes and the export holds in columns."""
    columns = {
        "langfuse.observation.type": (observation.get("type") or "").lower(),
        "langfuse.observation.level": observation.get("level"),
        "langfuse.observation.status_message": observation.get("statusMessage"),
        "langfuse.observation.model.name": observation.get("model"),
        "langfuse.observation.input": observation.get("input"),
        "langfuse.observation.output": observation.get("output"),
    }
    return {key: value if isinstance(value, str) else _json(value) for key, value in columns.items() if value}


def _content(observation: dict[str, Any], attributes: Attributes) -> Attributes:
    """Return what was moved out of the attributes of a span of the conventions; nothing where it is there under older names."""
    if any(key.startswith(_INDEXED) for key in attributes):
        return {}
    names = _CONTENT.get(str(attributes[_OPERATION]), ())
    found = zip(names, (observation.get("input"), observation.get("output")), strict=False)
    return {name: value if isinstance(value, str) else _json(value) for name, value in found if value}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
