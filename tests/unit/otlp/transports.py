"""A receiver that listens on both transports, and clients that say in the same words what each was told."""

import asyncio
import gzip
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Protocol

import aiohttp
import grpc.aio
from aiohttp import web
from google.protobuf.json_format import Parse
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from unit.otlp.wire_forms import as_json, request, wire_span

from collectors.otlp.grpc import GrpcServer, serve
from collectors.otlp.http import routes, runner
from collectors.otlp.keys import Keys
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import Encoding
from collectors.otlp.traces import TRACES
from pipeline.config.receiver import ReceiverSettings
from pipeline.model.span import Span

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT = 20_000
PATIENCE_S = 30
NOW = 1_790_000_100_000_000_000
KEYS = {"key-a": "project-a", "key-b": "project-b"}


class Store:
    """A store that does as it is told."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.failures: list[Exception] = []
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def store(self, spans: Sequence[Span]) -> None:
        self.entered.set()
        await self.open.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.spans.extend(spans)


@dataclass
class Answer:
    """What a client was told, in words that both transports share."""

    outcome: str
    response: ExportTraceServiceResponse | None = None
    message: str = ""
    retry_after: int | None = None
    details: list[Message] = field(default_factory=list)


class Send(Protocol):
    """Sends one request; ``body`` is a message, or the bytes of one that no client would make."""

    async def __call__(self, body: Message | bytes, key: str | None = None) -> Answer: ...

    def write(self, message: Message) -> bytes:
        """Return the message as it is sent, before compression."""
        ...


async def in_the_end(send: Send, body: Message) -> Answer:
    """Send again as long as that is what is asked for, as exporters do: where a body has little time, a busy machine may need more."""
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await send(body)).outcome == "retry":
            pass
        return answer


@dataclass
class Service:
    """A receiver that listens on both transports."""

    store: Store
    counted: list[tuple[int, int]]
    http_port: int
    grpc_port: int
    receiver: Receiver
    listening: GrpcServer
    trouble: list[str]
    """Why nothing can be accepted now."""


@asynccontextmanager
async def on_http(served: Iterable[web.AbstractRouteDef]) -> AsyncIterator[int]:
    """Serve routes as the receiver's are served, and give the port."""
    application = web.Application()
    application.add_routes(served)
    web_runner = runner(application)
    await web_runner.setup()
    await web.TCPSite(web_runner, "127.0.0.1", 0).start()
    try:
        yield web_runner.addresses[0][1]
    finally:
        await web_runner.cleanup()


@asynccontextmanager
async def on_both(receiver: Receiver) -> AsyncIterator[tuple[int, GrpcServer]]:
    """Serve a receiver on both transports, and give the port of HTTP and the server of gRPC."""
    async with on_http(routes(receiver)) as http_port:
        server = await serve(receiver, "127.0.0.1", 0)
        try:
            yield http_port, server
        finally:
            await server.stop(None)


@asynccontextmanager
async def serving(keys: dict[str, str], **settings: Any) -> AsyncIterator[Service]:
    """Serve a receiver with these settings on both transports."""
    store = Store()
    trouble: list[str] = []
    counted: list[tuple[int, int]] = []
    receiver = Receiver(
        {TRACES: store},
        lambda: NOW,
        Keys(keys, "open"),
        ReceiverSettings.model_validate({"max_body": LIMIT, **settings}),
        trouble=lambda: "; ".join(trouble),
        on_received=lambda _, read: counted.append((len(read.items), read.rejected)),
    )
    async with on_both(receiver) as (http_port, server):
        try:
            yield Service(store, counted, http_port, server.port, receiver, server, trouble)
        finally:
            store.open.set()


OUTCOMES = {
    200: "ok",
    400: "invalid",
    401: "unauthenticated",
    403: "forbidden",
    413: "too large",
    429: "quota",
    503: "retry",
    500: "failed",
}
CODES = {
    grpc.StatusCode.INVALID_ARGUMENT: "invalid",
    grpc.StatusCode.UNAUTHENTICATED: "unauthenticated",
    grpc.StatusCode.PERMISSION_DENIED: "forbidden",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "too large",
    grpc.StatusCode.UNAVAILABLE: "retry",
    grpc.StatusCode.UNKNOWN: "failed",
}


COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}


def _details(status: Status) -> list[Message]:
    found: list[Message] = []
    for packed in status.details:
        for kind in (BadRequest, RetryInfo):
            if packed.Is(kind.DESCRIPTOR):
                packed.Unpack(detail := kind())
                found.append(detail)
    return found


@dataclass
class Http:
    """OTLP/HTTP in one encoding."""

    port: int
    encoding: Encoding
    compression: str = ""

    async def __call__(self, body: Message | bytes, key: str | None = None) -> Answer:
        raw = self.write(body) if isinstance(body, Message) else body
        headers = {"Content-Type": self.encoding.value}
        if self.compression:
            raw, headers["Content-Encoding"] = COMPRESS[self.compression](raw), self.compression
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        async with aiohttp.ClientSession() as client, client.post(self.url, data=BytesIO(raw), headers=headers) as response:
            return self._read(response, await response.read())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/traces"

    def write(self, message: Message) -> bytes:
        return as_json(message) if self.encoding is Encoding.JSON else message.SerializeToString()

    def _read(self, response: aiohttp.ClientResponse, raw: bytes) -> Answer:
        outcome = OUTCOMES[response.status]
        if outcome == "failed":
            return Answer(outcome)
        assert response.content_type == self.encoding, "an answer is written as the request was"
        if outcome == "ok":
            return Answer(outcome, self._parse(raw, ExportTraceServiceResponse()))
        assert (response.headers.get("WWW-Authenticate") is not None) == (outcome == "unauthenticated")
        status = self._parse(raw, Status())
        retry_after = response.headers.get("Retry-After")
        return Answer(outcome, None, status.message, int(retry_after) if retry_after else None, _details(status))

    def _parse(self, raw: bytes, message: Any) -> Any:
        if self.encoding is Encoding.JSON:
            return Parse(raw, message)
        message.ParseFromString(raw)
        return message


@dataclass
class Grpc:
    """OTLP/gRPC, by bare bytes."""

    port: int
    compressed: bool

    async def __call__(self, body: Message | bytes, key: str | None = None) -> Answer:
        raw = self.write(body) if isinstance(body, Message) else body
        metadata = (("authorization", f"Bearer {key}"),) if key is not None else ()
        compression = grpc.Compression.Gzip if self.compressed else grpc.Compression.NoCompression
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.port}", compression=compression) as channel:
            export = channel.unary_unary(f"/{TRACES.service}/Export", None, None)
            try:
                return Answer(
                    "ok", ExportTraceServiceResponse.FromString(await export(raw, metadata=metadata, timeout=PATIENCE_S))
                )
            except grpc.aio.AioRpcError as error:
                return self._read(error)

    def write(self, message: Message) -> bytes:
        return message.SerializeToString()

    def _read(self, error: grpc.aio.AioRpcError) -> Answer:
        metadata: Any = error.trailing_metadata() or ()  # pairs, whatever the stubs say
        packed = [value for key, value in metadata if key == "grpc-status-details-bin"]
        status = Status.FromString(packed[0] if packed else b"")
        details = _details(status)
        retry_after = next((detail.retry_delay.seconds for detail in details if isinstance(detail, RetryInfo)), None)
        if status.message:
            assert (status.code, status.message) == (error.code().value[0], error.details())
        outcome = "quota" if CODES[error.code()] == "too large" and retry_after else CODES[error.code()]
        return Answer(outcome, None, error.details() or "", retry_after, details)


TRANSPORTS: dict[str, Callable[[Service], Send]] = {
    "grpc": lambda service: Grpc(service.grpc_port, False),
    "grpc gzip": lambda service: Grpc(service.grpc_port, True),
    "http protobuf": lambda service: Http(service.http_port, Encoding.PROTOBUF),
    "http protobuf gzip": lambda service: Http(service.http_port, Encoding.PROTOBUF, "gzip"),
    "http protobuf zstd": lambda service: Http(service.http_port, Encoding.PROTOBUF, "zstd"),
    "http json": lambda service: Http(service.http_port, Encoding.JSON),
    "http json gzip": lambda service: Http(service.http_port, Encoding.JSON, "gzip"),
    "http json zstd": lambda service: Http(service.http_port, Encoding.JSON, "zstd"),
}


def named(*names: str, **fields: Any) -> ExportTraceServiceRequest:
    """A request with spans of these names."""
    return request(*[wire_span(name=name, span_id=index.to_bytes(8, "big"), **fields) for index, name in enumerate(names, 1)])


def mixed(**bad: Any) -> ExportTraceServiceRequest:
    """A request with a bad span between two good ones."""
    return request(wire_span(name="a"), wire_span(name="bad", **bad), wire_span(name="b"))
