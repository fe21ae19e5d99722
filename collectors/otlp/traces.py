"""Traces: spans as a signal."""

from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collectors.otlp import json, protobuf
from collectors.otlp.signal import Encoding, Reply, Signal
from pipeline.model.span import Span


def _response(reply: Reply) -> ExportTraceServiceResponse:
    """Return the response; ``partial_success`` is unset where every span was accepted and nothing is to be said (O4, O6)."""
    response = ExportTraceServiceResponse()
    if reply.message:
        response.partial_success.rejected_spans = reply.rejected
        response.partial_success.error_message = reply.message
    return response


TRACES: Final[Signal[Span]] = Signal(
    path="/v1/traces",
    service="opentelemetry.proto.collector.trace.v1.TraceService",
    envelope=json.ENVELOPE,
    response=_response,
    decoders={Encoding.PROTOBUF: protobuf.decode, Encoding.JSON: json.decode},
)
