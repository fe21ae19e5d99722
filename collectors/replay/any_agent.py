"""any-agent traces: pydantic dumps of OpenTelemetry's Python spans, ids as decimal numbers, kinds and states as words."""

from collections.abc import Iterator
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay.wire import RecordedEvent, RecordedLink, RecordedSpan, kind_number, requests_of, status_number
from pipeline.model.span import REMOTE_PARENT, REMOTE_PARENT_KNOWN

NAME: Final = "any-agent dump"
WHAT: Final = '{"spans": [{"context": {"trace_id", "span_id"}, "parent", …}, …]}'


def matches(document: Any) -> bool:
    """Whether the document is a trace whose spans hold their ids in a ``context``."""
    spans = document.get("spans") if isinstance(document, dict) else None
    return isinstance(spans, list) and bool(spans) and isinstance(spans[0], dict) and isinstance(spans[0].get("context"), dict)


def requests(document: Any, file_name: str) -> Iterator[ExportTraceServiceRequest]:  # noqa: ARG001
    """Yield the document's spans; the agent's final output beside them is on no span and is left out."""
    yield from requests_of(_span(span) for span in document["spans"])


def _span(span: dict[str, Any]) -> RecordedSpan:
    context = span["context"]
    parent = span.get("parent") or {}
    status = span.get("status") or {}
    scope = span.get("instrumentation_scope") or {}
    return RecordedSpan(
        trace_id=context["trace_id"],
        span_id=context["span_id"],
        parent_id=parent.get("span_id"),
        name=span.get("name") or "",
        start_ns=int(span.get("start_time") or 0),
        end_ns=int(span.get("end_time") or 0),
        kind=kind_number(span.get("kind", 0)),
        status_code=status_number(status.get("status_code", 0)),
        status_message=status.get("description") or "",
        attributes=span.get("attributes") or {},
        events=tuple(
            RecordedEvent(
                name=event.get("name") or "", time_ns=int(event.get("timestamp") or 0), attributes=event.get("attributes") or {}
            )
            for event in span.get("events") or ()
        ),
        links=tuple(_link(link) for link in span.get("links") or ()),
        resource=(span.get("resource") or {}).get("attributes") or {},
        scope_name=scope.get("name") or "",
        scope_version=scope.get("version") or "",
        flags=_flags(parent),
    )


def _link(link: dict[str, Any]) -> RecordedLink:
    context = link.get("context") or {}
    return RecordedLink(trace_id=context.get("trace_id"), span_id=context.get("span_id"), attributes=link.get("attributes") or {})


def _flags(parent: dict[str, Any]) -> int:
    if "is_remote" not in parent:
        return 0
    return REMOTE_PARENT_KNOWN | (REMOTE_PARENT if parent["is_remote"] else 0)
