"""Lists of span dictionaries in snake_case, as agent evaluation suites keep them as fixtures (strands-agents/evals).

A list of spans, a ``{"spans": […]}`` wrapper around one, or one span a line; ids may be any text, times are whole nanoseconds.
"""

from collections.abc import Iterator
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay.wire import RecordedEvent, RecordedLink, RecordedSpan, kind_number, requests_of, status_number
from pipeline.model.span import Attributes

NAME: Final = "span dictionaries"
WHAT: Final = '[{"trace_id", "span_id", "name", "start_time", "attributes": {…}}, …] or {"spans": […]}'


def matches(document: Any) -> bool:
    """Whether the document is such a span, a list of them, or the wrapper around one."""
    if isinstance(document, dict) and isinstance(document.get("spans"), list):
        document = document["spans"]
    first = document[0] if isinstance(document, list) and document else document
    return isinstance(first, dict) and {"trace_id", "span_id", "start_time"} <= first.keys()


def requests(document: Any, file_name: str) -> Iterator[ExportTraceServiceRequest]:  # noqa: ARG001
    """Yield the document's spans."""
    spans = document.get("spans", [document]) if isinstance(document, dict) else document
    yield from requests_of(_span(span) for span in spans)


def _span(span: dict[str, Any]) -> RecordedSpan:
    scope = span.get("scope") or {}
    status = span.get("status") or {}
    if isinstance(status, str):
        status = {"code": status}
    return RecordedSpan(
        trace_id=span["trace_id"],
        span_id=span["span_id"],
        parent_id=span.get("parent_span_id"),
        name=span.get("name") or "",
        start_ns=int(span["start_time"] or 0),
        end_ns=int(span.get("end_time") or 0),
        kind=kind_number(span.get("kind", 0)),
        status_code=status_number(status.get("code", 0)),
        status_message=status.get("message") or status.get("description") or "",
        attributes=span.get("attributes") or {},
        events=tuple(_event(event) for event in span.get("span_events") or span.get("events") or ()),
        links=tuple(
            RecordedLink(trace_id=link.get("trace_id"), span_id=link.get("span_id"), attributes=link.get("attributes") or {})
            for link in span.get("links") or ()
        ),
        resource=_resource(span.get("resource") or {}),
        scope_name=scope.get("name") or "",
        scope_version=scope.get("version") or "",
    )


def _event(event: dict[str, Any]) -> RecordedEvent:
    """Read an event; log records that were joined to a span have a body, which OTLP events lack: it becomes an attribute."""
    attributes = dict(event.get("attributes") or {})
    if event.get("body") is not None:
        attributes["body"] = event["body"]
    return RecordedEvent(
        name=event.get("event_name") or event.get("name") or "", time_ns=int(event.get("timestamp") or 0), attributes=attributes
    )


def _resource(resource: dict[str, Any]) -> Attributes:
    attributes = resource.get("attributes")
    return attributes if isinstance(attributes, dict) else resource
