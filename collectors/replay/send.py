"""Sending a replay to an OTLP endpoint, and counting what became of it."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay.exporters import Answer, Exporter, GrpcExporter, HttpExporter
from collectors.replay.wire import spans_in
from pipeline.errors import ConfigurationError

TIMEOUT_S: Final = 30.0
"""How long one request is retried."""
GREATEST_REQUEST: Final = 2 * 1024 * 1024
"""Bytes: gRPC servers refuse more than 4 MiB unless told otherwise."""
GIVE_UP_AFTER: Final = 3
"""Requests that fail in a row. Each has been retried already: more of them would only take time."""
_MESSAGES: Final = 10
_GRPC_PORT: Final = 4317
_TRACES_PATH: Final = "/v1/traces"


class Protocol(StrEnum):
    """How an endpoint is spoken to."""

    GRPC = "grpc"
    HTTP = "http/protobuf"


class SendReport(msgspec.Struct, frozen=True):
    """What became of a replay, in spans. ``messages`` are the different reasons that were given, the first ten of them."""

    sent: int = 0
    """Accepted by the receiver."""
    rejected: int = 0
    """Refused one by one, in a ``partial_success``."""
    failed: int = 0
    """In requests that failed after their retries."""
    gave_up: bool = False
    """Several requests failed in a row, and the rest was not tried."""
    messages: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the receiver has everything."""
        return not (self.rejected or self.failed or self.gave_up)

    @property
    def exit_code(self) -> int:
        """What a command that sent this should exit with."""
        return 0 if self.ok else 1


class Sender:
    """A connection to an OTLP endpoint; a context manager that closes it.

    The protocol is the one given; else gRPC for ``grpc://``, ``grpcs://`` and port 4317, and HTTP otherwise. ``key`` goes out as a bearer token.

    Raises:
        ConfigurationError: the endpoint is no address.
    """

    def __init__(self, endpoint: str, protocol: Protocol | None = None, key: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self._exporter = _exporter(endpoint, protocol, {"authorization": f"Bearer {key}"} if key else {}, timeout_s)

    def send(self, request: ExportTraceServiceRequest) -> Answer:
        """Send one request, retried with the exporter's backoff, and return what became of it."""
        return self._exporter.export_request(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._exporter.shutdown()


def send(
    requests: Iterable[ExportTraceServiceRequest],
    endpoint: str,
    protocol: Protocol | None = None,
    key: str = "",
    progress: Callable[[int, int], None] | None = None,
    *,
    total: int = 0,
    timeout_s: float = TIMEOUT_S,
) -> SendReport:
    """Send the requests in order and report. ``progress`` is called after each with the spans dealt with and ``total``."""
    counts = _Counts()
    with Sender(endpoint, protocol, key, timeout_s) as sender:
        for request in requests:
            for piece in pieces(request):
                counts.add(sum(1 for _ in spans_in(piece)), sender.send(piece))
                if progress is not None:
                    progress(counts.dealt_with, total)
                if counts.failures >= GIVE_UP_AFTER:
                    return counts.report(gave_up=True)
    return counts.report(gave_up=False)


def pieces(request: ExportTraceServiceRequest, limit: int = GREATEST_REQUEST) -> Iterator[ExportTraceServiceRequest]:
    """Yield the request in parts of at most ``limit`` bytes, its spans in order; a span that is larger goes alone."""
    if request.ByteSize() <= limit:
        yield request
        return
    piece = ExportTraceServiceRequest()
    room = limit
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            spans = None
            for span in scope_spans.spans:
                if room < span.ByteSize() and piece.resource_spans:
                    yield piece
                    piece, room, spans = ExportTraceServiceRequest(), limit, None
                if spans is None:
                    group = piece.resource_spans.add(resource=resource_spans.resource, schema_url=resource_spans.schema_url)
                    spans = group.scope_spans.add(scope=scope_spans.scope, schema_url=scope_spans.schema_url).spans
                    room -= group.ByteSize()
                spans.append(span)
                room -= span.ByteSize()
    if piece.resource_spans:
        yield piece


class _Counts:
    """What a report counts, while it is counted."""

    def __init__(self) -> None:
        self.sent = self.rejected = self.failed = 0
        self.failures = 0
        """Failed requests since the last that was accepted."""
        self.messages: dict[str, None] = {}

    @property
    def dealt_with(self) -> int:
        return self.sent + self.rejected + self.failed

    def add(self, spans: int, answer: Answer) -> None:
        if answer.accepted:
            self.failures = 0
            self.rejected += answer.rejected
            self.sent += spans - answer.rejected
        else:
            self.failures += 1
            self.failed += spans
        if answer.message and len(self.messages) < _MESSAGES:
            self.messages[answer.message] = None

    def report(self, *, gave_up: bool) -> SendReport:
        return SendReport(
            sent=self.sent, rejected=self.rejected, failed=self.failed, gave_up=gave_up, messages=tuple(self.messages)
        )


def _exporter(endpoint: str, protocol: Protocol | None, headers: dict[str, str], timeout_s: float) -> Exporter:
    address = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    if not address.hostname or address.scheme not in ("http", "https", "grpc", "grpcs"):
        raise ConfigurationError(
            f"{endpoint!r} is no OTLP endpoint; write one such as http://127.0.0.1:4318 or grpc://127.0.0.1:4317"
        )
    secure = address.scheme.endswith("s")
    if protocol is None:
        protocol = Protocol.GRPC if address.scheme.startswith("grpc") or address.port == _GRPC_PORT else Protocol.HTTP
    if protocol is Protocol.GRPC:
        return GrpcExporter(address.netloc, insecure=not secure, headers=headers, timeout_s=timeout_s)
    url = f"{'https' if secure else 'http'}://{address.netloc}{address.path.rstrip('/') or _TRACES_PATH}"
    return HttpExporter(url, headers=headers, timeout_s=timeout_s)
