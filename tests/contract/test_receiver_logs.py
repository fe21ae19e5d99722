"""Log records through the receiver: the exporters that OpenTelemetry's own SDK ships, and the refusals, on both transports."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

import aiohttp
import grpc
import pytest
from opentelemetry._logs import LogRecord as ApiLogRecord
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import LogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import set_span_in_context
from unit.otlp.test_log_records import logs, record
from unit.otlp.transports import on_both
from unit.otlp.wire_forms import as_json

from collectors.otlp.keys import Keys
from collectors.otlp.logs import LOGS
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import Encoding
from pipeline.errors import TemporaryError
from pipeline.model.log_record import LogRecord


class Store:
    """A store that fails as often as it is told, then keeps."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.failures = 0

    async def store(self, records: Sequence[LogRecord]) -> None:
        if self.failures:
            self.failures -= 1
            raise TemporaryError("not yet", retry_after=3.0)
        self.records.extend(records)


@pytest.fixture
def store() -> Store:
    return Store()


class Ports(NamedTuple):
    """Where the receiver listens."""

    http: int
    grpc: int


@pytest.fixture
async def ports(store: Store) -> AsyncIterator[Ports]:
    async with on_both(Receiver({LOGS: store}, lambda: 7, Keys({"secret": "shop"}, "open"))) as (http, server):
        yield Ports(http, server.port)


HEADERS = {"authorization": "Bearer secret"}
EXPORTERS: dict[str, Callable[[Ports], LogRecordExporter]] = {
    "http": lambda ports: HttpExporter(endpoint=f"http://127.0.0.1:{ports.http}/v1/logs", headers=HEADERS),
    "grpc": lambda ports: GrpcExporter(endpoint=f"127.0.0.1:{ports.grpc}", insecure=True, headers=HEADERS),
}


def emit(exporter: LogRecordExporter) -> str:
    """Emit events of a span as an instrumentation does, and a line of a log; return the span's id."""
    provider = LoggerProvider(Resource({"service.name": "shop"}))
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    logger = provider.get_logger("instrumentation", "1.2")
    span = TracerProvider().get_tracer("t").start_span("chat")
    context = set_span_in_context(span)
    logger.emit(ApiLogRecord(context=context, event_name="gen_ai.user.message", body={"content": "Where is it?"}))
    logger.emit(ApiLogRecord(context=context, body="a line of a log"))
    logger.emit(ApiLogRecord(context=context, attributes={"event.name": "gen_ai.choice"}, body={"message": {"content": "Here."}}))
    provider.shutdown()
    return f"{span.get_span_context().span_id:016x}"


@pytest.mark.parametrize("transport", EXPORTERS)
async def test_what_an_sdk_exports_is_kept_as_far_as_it_is_of_use(transport: str, store: Store, ports: Ports) -> None:
    span_id = await asyncio.to_thread(emit, EXPORTERS[transport](ports))
    assert [(one.project, one.span_id, one.event_name, one.body) for one in store.records] == [
        ("shop", span_id, "gen_ai.user.message", {"content": "Where is it?"}),
        ("shop", span_id, "gen_ai.choice", {"message": {"content": "Here."}}),
    ]
    assert all(one.time_ns > 0 and one.resource["service.name"] == "shop" for one in store.records)


@pytest.mark.parametrize("encoding", Encoding)
async def test_over_http_a_bad_record_is_a_partial_success_and_trouble_is_retryable(
    encoding: Encoding, store: Store, ports: Ports
) -> None:
    message = logs(record(), record(trace_id=b"bad"))
    body = as_json(message) if encoding is Encoding.JSON else message.SerializeToString()
    headers = {"Content-Type": encoding.value, "Authorization": "Bearer secret"}
    store.failures = 1
    async with aiohttp.ClientSession(headers=headers) as client:
        url = f"http://127.0.0.1:{ports.http}/v1/logs"
        async with client.post(url, data=body) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "3")
        async with client.post(url, data=body) as response:
            assert (response.status, response.content_type) == (200, encoding)
            assert b"1 of 2 log records were rejected" in await response.read()
        async with client.post(url, data=body, headers={"Authorization": "Bearer wrong"}) as response:
            assert response.status == 401
        async with client.post(url, data=b"\xff{", headers={"Content-Type": encoding.value}) as response:
            assert response.status == 400
    assert len(store.records) == 1


async def test_over_grpc_a_bad_record_is_a_partial_success_and_trouble_is_retryable(store: Store, ports: Ports) -> None:
    body = logs(record(), record(trace_id=b"bad")).SerializeToString()
    store.failures = 1

    async def export(raw: bytes, key: str) -> bytes | grpc.StatusCode:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{ports.grpc}") as channel:
            call = channel.unary_unary(f"/{LOGS.service}/Export", None, None)
            try:
                answer: bytes = await call(raw, metadata=(("authorization", f"Bearer {key}"),), timeout=30)
            except grpc.aio.AioRpcError as error:
                return error.code()
            return answer

    assert await export(body, "secret") is grpc.StatusCode.UNAVAILABLE
    told = await export(body, "secret")
    assert isinstance(told, bytes)
    assert b"1 of 2 log records were rejected" in told
    assert await export(body, "wrong") is grpc.StatusCode.UNAUTHENTICATED
    assert await export(b"\xff{", "secret") is grpc.StatusCode.INVALID_ARGUMENT
    assert len(store.records) == 1
