"""OTLP/JSON: requests as an exporter or the Collector's file exporter writes them, and Tempo's export in the old key names.

Read leniently where files in the wild differ from the protocol (reference dialects section 13): snake_case keys, enum words, times as
numbers, ids in base64, decimal or free text.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay import identity
from collectors.replay.identity import ORIGINAL_SPAN_ID, ORIGINAL_TRACE_ID, Identity
from collectors.replay.wire import SPANS_A_REQUEST

NAME: Final = "OTLP/JSON"
WHAT: Final = '{"resourceSpans": …} or {"batches": …}'

_RESOURCE_SPANS: Final = ("resourceSpans", "resource_spans", "batches")
_SCOPE_SPANS: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
_SCOPE: Final = ("scope", "instrumentationLibrary", "instrumentation_library")


def matches(document: Any) -> bool:
    """Whether the document is a trace request, or Tempo's form of one."""
    return isinstance(document, dict) and any(isinstance(document.get(key), list) for key in _RESOURCE_SPANS)


def requests(document: Any, file_name: str) -> Iterator[ExportTraceServiceRequest]:  # noqa: ARG001
    """Yield the document's spans; resources are kept whole and gathered up to the size of an SDK's batch."""
    gathered: list[Any] = []
    size = 0
    for resource_spans in _first(document, _RESOURCE_SPANS) or ():
        size += _normalise(resource_spans)
        gathered.append(resource_spans)
        if size >= SPANS_A_REQUEST:
            yield _request(gathered)
            gathered, size = [], 0
    if gathered:
        yield _request(gathered)


def _request(resource_spans: list[Any]) -> ExportTraceServiceRequest:
    return ParseDict({"resourceSpans": resource_spans}, ExportTraceServiceRequest(), ignore_unknown_fields=True)


def _first(parent: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((parent[key] for key in keys if parent.get(key)), None)


def _normalise(resource_spans: dict[str, Any]) -> int:
    """Bring keys and ids to what protobuf reads, in place; return how many spans there are."""
    scopes = _first(resource_spans, _SCOPE_SPANS) or []
    for key in _SCOPE_SPANS:
        resource_spans.pop(key, None)
    resource_spans["scopeSpans"] = scopes
    spans = 0
    for scope_spans in scopes:
        scope = _first(scope_spans, _SCOPE)
        for key in _SCOPE:
            scope_spans.pop(key, None)
        if scope is not None:
            scope_spans["scope"] = scope
        for span in scope_spans.get("spans", ()):
            _map_ids(span)
            spans += 1
    return spans


def _map_ids(span: dict[str, Any]) -> None:
    originals = {
        ORIGINAL_TRACE_ID: _map_id(span, ("traceId", "trace_id"), identity.trace_id),
        ORIGINAL_SPAN_ID: _map_id(span, ("spanId", "span_id"), identity.span_id),
    }
    _map_id(span, ("parentSpanId", "parent_span_id"), lambda raw: Identity(identity.parent_id(raw), ""))
    for link in span.get("links", ()):
        _map_id(link, ("traceId", "trace_id"), identity.trace_id)
        _map_id(link, ("spanId", "span_id"), identity.span_id)
    noted = [{"key": key, "value": {"stringValue": original}} for key, original in originals.items() if original]
    if noted:
        span["attributes"] = [*(span.get("attributes") or ()), *noted]


def _map_id(holder: dict[str, Any], keys: tuple[str, str], read: Callable[[identity.RawId], Identity]) -> str:
    """Replace the id by the base64 that protobuf's JSON mapping wants for bytes; return what stood there if it was no hex."""
    mapped = read(_first(holder, keys))
    for key in keys:
        holder.pop(key, None)
    if mapped.hex:
        holder[keys[0]] = b64encode(bytes.fromhex(mapped.hex)).decode("ascii")
    return mapped.original
