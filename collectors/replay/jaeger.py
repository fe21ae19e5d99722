"""Jaeger's JSON, as its UI and API give it out: tags, references and microseconds.

What Jaeger's translation of OTLP turned into tags (kind, status, scope) is turned back.
"""

from collections.abc import Iterator
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay.wire import RecordedEvent, RecordedLink, RecordedSpan, kind_number, requests_of, status_number
from pipeline.model.span import STATUS_ERROR, Attributes

NAME: Final = "Jaeger JSON"
WHAT: Final = '{"data": [{"traceID", "spans": […], "processes": {…}}]}'

_MICROSECOND: Final = 1000
_TRACE_DIGITS: Final = 32
_SPAN_DIGITS: Final = 16
_SCOPE_NAMES: Final = ("otel.scope.name", "otel.library.name")
_SCOPE_VERSIONS: Final = ("otel.scope.version", "otel.library.version")


def matches(document: Any) -> bool:
    """Whether the document is an answer of Jaeger's API, or one trace of it."""
    if not isinstance(document, dict):
        return False
    traces = document.get("data", [document])
    return isinstance(traces, list) and bool(traces) and isinstance(traces[0], dict) and {"traceID", "spans"} <= traces[0].keys()


def requests(document: Any, file_name: str) -> Iterator[ExportTraceServiceRequest]:  # noqa: ARG001
    """Yield the document's spans."""
    for trace in document.get("data", [document]):
        processes = trace.get("processes") or {}
        yield from requests_of(_span(span, processes) for span in trace["spans"])


def _span(span: dict[str, Any], processes: dict[str, Any]) -> RecordedSpan:
    tags = _tags(span.get("tags"))
    process = span.get("process") or processes.get(span.get("processID") or "") or {}
    start_ns = int(span["startTime"]) * _MICROSECOND
    parent, links = _references(span)
    failed = tags.pop("error", False) in (True, "true")
    status = status_number(tags.pop("otel.status_code", 0)) or (STATUS_ERROR if failed else 0)
    return RecordedSpan(
        trace_id=_trace_id(span),
        span_id=_span_id(span),
        parent_id=parent,
        name=span.get("operationName") or "",
        start_ns=start_ns,
        end_ns=start_ns + int(span.get("duration") or 0) * _MICROSECOND,
        kind=kind_number(tags.pop("span.kind", 0)),
        status_code=status,
        status_message=str(tags.pop("otel.status_description", "")),
        scope_name=_take(tags, _SCOPE_NAMES),
        scope_version=_take(tags, _SCOPE_VERSIONS),
        attributes=tags,
        events=tuple(_event(log) for log in span.get("logs") or ()),
        links=links,
        resource={"service.name": process.get("serviceName") or "", **_tags(process.get("tags"))},
    )


def _references(span: dict[str, Any]) -> tuple[str, tuple[RecordedLink, ...]]:
    """Return the parent, which is the first CHILD_OF in the same trace, and everything else as links."""
    parent = ""
    links: list[RecordedLink] = []
    for reference in span.get("references") or ():
        if not parent and reference.get("refType") == "CHILD_OF" and _trace_id(reference) == _trace_id(span):
            parent = _span_id(reference)
        else:
            links.append(RecordedLink(trace_id=_trace_id(reference), span_id=_span_id(reference)))
    return parent, tuple(links)


def _trace_id(holder: dict[str, Any]) -> str:
    """Return the trace id with the leading zeros that Jaeger leaves out."""
    return str(holder["traceID"]).zfill(_TRACE_DIGITS)


def _span_id(holder: dict[str, Any]) -> str:
    return str(holder["spanID"]).zfill(_SPAN_DIGITS)


def _tags(tags: list[dict[str, Any]] | None) -> Attributes:
    return {tag["key"]: tag.get("value") for tag in tags or ()}


def _take(tags: Attributes, keys: tuple[str, ...]) -> str:
    taken = [tags.pop(key, "") for key in keys]
    return str(taken[0] or taken[1])


def _event(log: dict[str, Any]) -> RecordedEvent:
    fields = _tags(log.get("fields"))
    return RecordedEvent(
        name=str(fields.pop("event", "")), time_ns=int(log.get("timestamp") or 0) * _MICROSECOND, attributes=fields
    )
