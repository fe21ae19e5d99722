"""Logs: log records as a signal."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.logs.v1 import logs_pb2

from collectors.otlp import json_parts, protobuf_parts
from collectors.otlp.decoding import Codec, Group, Origin
from collectors.otlp.envelope import Request
from collectors.otlp.log_decoding import DecodedLogs, accept, decode_groups
from collectors.otlp.mending import LOG_RECORD
from collectors.otlp.signal import Encoding, Reply, Signal
from collectors.otlp.wire import LogsRequest, WireLogRecord
from collectors.redaction.redactor import Redactor
from pipeline.errors import PermanentError
from pipeline.model.log_record import LogRecord

_SEVERITIES: Final = {
    f"SEVERITY_NUMBER_{name}{number or ''}": 4 * level + max(number, 1)
    for level, name in enumerate(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"))
    for number in (0, 2, 3, 4)
} | {"SEVERITY_NUMBER_UNSPECIFIED": 0}


def decode_protobuf(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> DecodedLogs:
    """Read an ``ExportLogsServiceRequest`` (or a ``LogsData``), redacted where a redactor is given.

    Raises:
        PermanentError: the bytes are no such message.
    """
    try:
        request = Request.FromString(body)
    except DecodeError as error:
        raise PermanentError(f"the body is not an OTLP logs request in protobuf: {error}") from error
    return decode_groups(_protobuf_groups(request), _PROTOBUF, project, received_ns, redactor)


def decode_json(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> DecodedLogs:
    """Read an ``ExportLogsServiceRequest`` (or a ``LogsData``) as OTLP/JSON writes it, by the same rules as spans.

    Raises:
        PermanentError: the bytes are no such object.
    """
    request = json_parts.opened(body, _request_decoder, b'_logs"', "logs")
    return decode_groups(_json_groups(request), _JSON, project, received_ns, redactor)


def _protobuf_groups(request: Any) -> Iterator[Group[bytes]]:
    # The schema of the envelope names its fields for spans; on the wire they are the same.
    for resource_logs in request.resource_spans:
        for scope_logs in resource_logs.scope_spans:
            yield Group(resource_logs.resource, scope_logs.scope, scope_logs.spans)


def _json_groups(request: LogsRequest) -> Iterator[Group[msgspec.Raw]]:
    for resource_logs in request.resource_logs or ():
        for scope_logs in resource_logs.scope_logs or ():
            yield Group(resource_logs.resource, scope_logs.scope, scope_logs.log_records or ())


def _of_protobuf(raw: bytes, origin: Origin) -> LogRecord | None:
    record = protobuf_parts.parsed(logs_pb2.LogRecord, raw, LOG_RECORD, "a log record")
    return accept(
        origin,
        trace_id=record.trace_id,
        span_id=record.span_id,
        event_name=record.event_name,
        time_ns=record.time_unix_nano,
        observed_ns=record.observed_time_unix_nano,
        severity=record.severity_number,
        body=protobuf_parts.value(record.body),
        attributes=protobuf_parts.attributes(record.attributes),
        dropped=record.dropped_attributes_count,
    )


def _of_json(raw: msgspec.Raw, origin: Origin) -> LogRecord | None:
    record = json_parts.part(_record_decoder, raw, "a log record")
    return accept(
        origin,
        trace_id=json_parts.hex_id(record.trace_id, "traceId"),
        span_id=json_parts.hex_id(record.span_id, "spanId"),
        event_name=record.event_name or "",
        time_ns=json_parts.integer(record.time_unix_nano, "timeUnixNano"),
        observed_ns=json_parts.integer(record.observed_time_unix_nano, "observedTimeUnixNano"),
        severity=json_parts.enum(record.severity_number, _SEVERITIES, "severityNumber"),
        body=json_parts.value(record.body),
        attributes=json_parts.attributes(record.attributes),
        dropped=json_parts.integer(record.dropped_attributes_count, "droppedAttributesCount"),
    )


def _wrap_protobuf(group: Group[bytes]) -> bytes:
    scope_logs = [{"scope": group.scope, "spans": group.items}]
    wrapped: bytes = Request(resource_spans=[{"resource": group.resource, "scope_spans": scope_logs}]).SerializeToString()
    return wrapped


def _wrap_json(group: Group[msgspec.Raw]) -> bytes:
    scope_logs = [{"scope": group.scope, "logRecords": group.items}]
    return msgspec.json.encode({"resourceLogs": [{"resource": group.resource, "scopeLogs": scope_logs}]})


def _response(reply: Reply) -> ExportLogsServiceResponse:
    """Return the response; ``partial_success`` is unset where every log record was accepted (O4, O6)."""
    response = ExportLogsServiceResponse()
    if reply.rejected:
        response.partial_success.rejected_log_records = reply.rejected
        response.partial_success.error_message = reply.message
    return response


_request_decoder: Final = msgspec.json.Decoder(LogsRequest)
_record_decoder: Final = msgspec.json.Decoder(WireLogRecord)
_PROTOBUF: Final = Codec(protobuf_parts.resource, protobuf_parts.scope, _of_protobuf, _wrap_protobuf)
_JSON: Final = Codec(json_parts.resource, json_parts.scope, _of_json, _wrap_json)
LOGS: Final[Signal[LogRecord]] = Signal(
    path="/v1/logs",
    service="opentelemetry.proto.collector.logs.v1.LogsService",
    envelope=("resourceLogs", "scopeLogs", "logRecords"),
    response=_response,
    decoders={Encoding.PROTOBUF: decode_protobuf, Encoding.JSON: decode_json},
)
