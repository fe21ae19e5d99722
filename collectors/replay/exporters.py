"""The OTLP exporters of the OpenTelemetry SDK, fed with requests instead of its own spans, and asked what the receiver answered.

An SDK's exporter encodes the SDK's spans, which cannot hold everything that a recording holds, and drops the receiver's ``partial_success``.
So both are entered one step further down, where a finished request goes out: connection, TLS, headers, compression, timeouts and backoff are
the exporters' own, and so are their environment variables.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import msgspec
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.exporter.http.transport._base import BaseHTTPResult
from opentelemetry.exporter.http.transport._requests import RequestsHTTPTransport
from opentelemetry.exporter.otlp.proto.grpc.exporter import OTLPExporterMixin
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

_PROTOBUF: Final = "application/x-protobuf"


class Answer(msgspec.Struct, frozen=True):
    """What became of one request. ``rejected`` counts spans that the receiver refused of a request that it accepted.

    ``message`` is the receiver's, or why the request failed; empty where there is nothing to say.
    """

    accepted: bool
    rejected: int = 0
    message: str = ""


class Exporter(Protocol):
    """A way to send one request, retried with backoff until the exporter's timeout."""

    def export_request(self, request: ExportTraceServiceRequest) -> Answer:
        """Send a request and return what became of it."""
        ...

    def shutdown(self) -> None:
        """Close the connection."""
        ...


class GrpcExporter(
    OTLPExporterMixin[Sequence[ReadableSpan], ExportTraceServiceRequest, SpanExportResult, TraceServiceStub],
):
    """OTLP over gRPC to ``host:port``."""

    def __init__(self, endpoint: str, *, insecure: bool, headers: Mapping[str, str], timeout_s: float) -> None:
        self._answer = Answer(accepted=False)
        super().__init__(
            stub=cast("TraceServiceStub", self._listening_stub),
            result=cast("SpanExportResult", SpanExportResult),
            endpoint=endpoint,
            insecure=insecure,
            headers=dict(headers),
            timeout=timeout_s,
        )

    def export_request(self, request: ExportTraceServiceRequest) -> Answer:
        """Send a request and return what became of it."""
        self._answer = Answer(accepted=False)
        self._export(cast("Sequence[ReadableSpan]", request))
        return self._answer

    def _listening_stub(self, channel: Any) -> "_ListeningStub":
        return _ListeningStub(channel, self)

    def _translate_data(self, data: Any) -> ExportTraceServiceRequest:
        return cast("ExportTraceServiceRequest", data)

    def _count_data(self, data: Any) -> int:
        return len(data.resource_spans)

    @property
    def _exporting(self) -> str:
        return "recorded traces"


class _ListeningStub:
    """The service's client as the exporter calls it, which notes each answer; the last one counts."""

    def __init__(self, channel: Any, exporter: GrpcExporter) -> None:
        stub: Any = TraceServiceStub
        self._export: Callable[..., ExportTraceServiceResponse] = stub(channel).Export
        self._exporter = exporter

    def Export(self, **call: Any) -> ExportTraceServiceResponse:  # noqa: N802
        try:
            response = self._export(**call)
        except Exception as error:
            self._exporter._answer = Answer(accepted=False, message=_rpc_error(error))  # noqa: SLF001
            raise
        self._exporter._answer = _accepted(response)  # noqa: SLF001
        return response


class HttpExporter(OTLPSpanExporter):
    """OTLP over HTTP with protobuf to a full URL."""

    def __init__(self, endpoint: str, *, headers: Mapping[str, str], timeout_s: float) -> None:
        self._listening = _ListeningTransport()
        super().__init__(endpoint=endpoint, headers=headers, timeout=timeout_s, _transport=self._listening)

    def export_request(self, request: ExportTraceServiceRequest) -> Answer:
        """Send a request and return what became of it."""
        self._listening.last = None
        self._client.export(request.SerializeToString())
        return _http_answer(self._listening.last)


class _ListeningTransport(RequestsHTTPTransport):
    """The exporter's transport, which notes each answer; the last one counts."""

    last: BaseHTTPResult | None = None

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str] | None = None,
        timeout: float | None = None,
        data: bytes | None = None,
    ) -> BaseHTTPResult:
        self.last = super().request(method, url, headers=headers, timeout=timeout, data=data)
        return self.last


def _accepted(response: ExportTraceServiceResponse) -> Answer:
    partial = response.partial_success
    return Answer(accepted=True, rejected=partial.rejected_spans, message=partial.error_message)


def _rpc_error(error: Any) -> str:
    return f"{error.code().name}: {error.details()}" if hasattr(error, "code") else repr(error)


def _http_answer(result: BaseHTTPResult | None) -> Answer:
    """Read an HTTP answer. Only 2xx is success: the exporter follows no redirect, and takes one for success."""
    if result is None or result.status_code is None:
        return Answer(accepted=False, message=str(result.error) if result else "no answer")
    if not 200 <= result.status_code < 300:  # noqa: PLR2004
        return Answer(accepted=False, message=f"{result.status_code} {result.reason}: {_refusal(result)}")
    try:
        return _accepted(ExportTraceServiceResponse.FromString(result.content()))
    except DecodeError:
        return Answer(accepted=True, message=f"the receiver's answer is no OTLP: {_readable(result.content())}")


def _refusal(result: BaseHTTPResult) -> str:
    """An OTLP receiver answers protobuf with a ``Status`` in protobuf; whatever else there is on the way, with text."""
    try:
        said: str = Status.FromString(result.content()).message if _PROTOBUF in result.headers().get("Content-Type", "") else ""
    except DecodeError:
        said = ""
    return said or _readable(result.content())


def _readable(body: bytes) -> str:
    return body[:500].decode("utf-8", "replace").strip()
