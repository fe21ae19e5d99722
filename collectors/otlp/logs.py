"""Logs: log records as a signal."""

from typing import Final

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.logs.v1 import logs_pb2

from collectors.otlp import json_parts, protobuf_parts
from collectors.otlp.decoding import Codec, Decoded, Origin
from collectors.otlp.log_decoding import accept, decode_groups
from collectors.otlp.mending import LOG_RECORD
from collectors.otlp.signal import Encoding, Reply, Signal
from collectors.otlp.trimming import OF_LOG_RECORD
from collectors.otlp.wire import Envelope, WireLogRecord
from collectors.redaction.redactor import Redactor
from pipeline.model.log_record import LogRecord

_ENVELOPE: Final[Envelope] = ("resourceLogs", "scopeLogs", "logRecords")
_SEVERITIES: Final = {
    f"SEVERITY_NUMBER_{name}{number or ''}": 4 * level + max(number, 1)
    for level, name in enumerate(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"))
    for number in (0, 2, 3, 4)
} | {"SEVERITY_NUMBER_UNSPECIFIED": 0}


def decode_protobuf(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> Decoded[LogRecord]:
    """Read an ``ExportLogsServiceRequest`` (or a ``LogsData``), redacted where a redactor is given.

    Raises:
        PermanentError: the bytes are no such message.
    """
    return decode_groups(protobuf_parts.opened(body, "logs"), _PROTOBUF, project, received_ns, redactor)


def decode_json(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> Decoded[LogRecord]:
    """Read an ``ExportLogsServiceRequest`` (or a ``LogsData``) as OTLP/JSON writes it, by the same rules as spans.

    Raises:
        PermanentError: the bytes are no such object.
    """
    return decode_groups(json_parts.opened(body, _ENVELOPE, "logs"), _JSON, project, received_ns, redactor)


def _of_protobuf(raw: bytes, origin: Origin) -> LogRecord | None:
    record = protobuf_parts.parsed(logs_pb2.LogRecord, raw, LOG_RECORD, OF_LOG_RECORD, "a log record")
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


def _response(reply: Reply) -> ExportLogsServiceResponse:
    """Return the response; ``partial_success`` is unset where every log record was accepted and nothing is to be said (O4, O6)."""
    response = ExportLogsServiceResponse()
    if reply.message:
        response.partial_success.rejected_log_records = reply.rejected
        response.partial_success.error_message = reply.message
    return response


_record_decoder: Final = msgspec.json.Decoder(WireLogRecord)
_PROTOBUF: Final = Codec(protobuf_parts.resource, protobuf_parts.scope, _of_protobuf, protobuf_parts.wrapped)
_JSON: Final = Codec(json_parts.resource, json_parts.scope, _of_json, json_parts.wrapping(_ENVELOPE))
LOGS: Final[Signal[LogRecord]] = Signal(
    path="/v1/logs",
    service="opentelemetry.proto.collector.logs.v1.LogsService",
    envelope=_ENVELOPE,
    response=_response,
    decoders={Encoding.PROTOBUF: decode_protobuf, Encoding.JSON: decode_json},
)
