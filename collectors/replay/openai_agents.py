"""OpenAI Agents SDK: what its own exporter posts, traces and spans in one list, kept in files (dialects reference, section 9).

Its spans hang below a trace that has neither times nor an id of a span; it becomes the span at their root.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.dialects.openai_agents import SCOPE
from collectors.replay.wire import RecordedSpan, requests_of
from pipeline.model.span import STATUS_ERROR, Attributes

NAME: Final = "OpenAI Agents export"
WHAT: Final = '{"data": [{"object": "trace.span", "id", "trace_id", "span_data": {…}}, …]}, or such objects by themselves'

_TRACE: Final = "trace"
_SPAN: Final = "trace.span"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = 1000


def matches(document: Any) -> bool:
    """Whether the document is what the exporter posts, or one trace or span of it."""
    if not isinstance(document, dict):
        return False
    listed = document.get("data", [document])
    return (
        isinstance(listed, list) and bool(listed) and isinstance(listed[0], dict) and listed[0].get("object") in (_TRACE, _SPAN)
    )


def requests(document: Any, file_name: str) -> Iterator[ExportTraceServiceRequest]:  # noqa: ARG001
    """Yield the document's spans, each trace before its own."""
    items = document.get("data", [document])
    spans = [_span(item) for item in items if item["object"] == _SPAN]
    yield from requests_of([*(_root(item, spans) for item in items if item["object"] == _TRACE), *spans])


def _root(trace: dict[str, Any], spans: list[RecordedSpan]) -> RecordedSpan:
    own = [span for span in spans if span.trace_id == _trace_id(trace["id"])]
    name = trace.get("workflow_name") or ""
    return RecordedSpan(
        trace_id=_trace_id(trace["id"]),
        span_id=trace["id"],
        parent_id=None,
        name=name,
        start_ns=min((span.start_ns for span in own if span.start_ns), default=0),
        end_ns=max((span.end_ns for span in own), default=0),
        attributes=_given({"type": _TRACE, "name": name, "group_id": trace.get("group_id"), "metadata": trace.get("metadata")}),
        scope_name=SCOPE,
    )


def _span(item: dict[str, Any]) -> RecordedSpan:
    data = item.get("span_data") or {}
    error = item.get("error")
    return RecordedSpan(
        trace_id=_trace_id(item["trace_id"]),
        span_id=item["id"],
        parent_id=item.get("parent_id") or item["trace_id"],
        name=data.get("name") or data.get("type") or "",
        start_ns=_nanoseconds(item.get("started_at")),
        end_ns=_nanoseconds(item.get("ended_at")),
        status_code=STATUS_ERROR if error else 0,
        status_message=_why(error) if error else "",
        attributes=_given(data),
        scope_name=SCOPE,
    )


def _trace_id(raw: str) -> str:
    return raw.removeprefix("trace_")


def _why(error: dict[str, Any]) -> str:
    """Return what the error says; the exception's own words are among its data."""
    raised = (error.get("data") or {}).get("error")
    message = error.get("message") or ""
    return f"{message}: {raised}" if raised and str(raised) not in message else message


def _given(data: Attributes) -> Attributes:
    return {key: value for key, value in data.items() if value is not None}


def _nanoseconds(text: str | None) -> int:
    """Read an ISO time exactly: its microseconds are whole, a float of seconds would not be."""
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1) * _MICROSECOND if text else 0
