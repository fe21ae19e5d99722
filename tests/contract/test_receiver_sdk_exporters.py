"""The exporters that OpenTelemetry's own SDK ships, against the receiver: what a user's agent really sends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.util.types import Attributes
from unit.otlp.transports import NOW, Service, Store, serving

from pipeline.errors import TemporaryError


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with serving({"secret": "shop"}) as made:
        yield made


@pytest.fixture
def store(service: Service) -> Store:
    return service.store


def _http(service: Service, key: str, *, gzip: bool) -> SpanExporter:
    compression = Compression.Gzip if gzip else Compression.NoCompression
    endpoint = f"http://127.0.0.1:{service.http_port}/v1/traces"
    return HttpExporter(endpoint, headers={"Authorization": f"Bearer {key}"}, compression=compression, timeout=20)


def _grpc(service: Service, key: str, *, gzip: bool) -> SpanExporter:
    compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
    endpoint = f"http://127.0.0.1:{service.grpc_port}"
    return GrpcExporter(endpoint, insecure=True, headers={"authorization": f"Bearer {key}"}, compression=compression, timeout=20)


Exporter = Callable[[str], SpanExporter]


@pytest.fixture(
    params=[(_http, False), (_http, True), (_grpc, False), (_grpc, True)], ids=["http", "http gzip", "grpc", "grpc gzip"]
)
def exporter(request: pytest.FixtureRequest, service: Service) -> Exporter:
    make, gzip = request.param
    return lambda key: make(service, key, gzip=gzip)


def _agent_run() -> Sequence[ReadableSpan]:
    """An agent that calls a model, which fails."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "support", "service.version": "3"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("an.instrumentation", "1.0")
    agent = tracer.start_span("invoke_agent support", attributes={"gen_ai.operation.name": "invoke_agent"})
    attributes: Attributes = {"gen_ai.usage.input_tokens": 12, "reasons": ["stop"]}
    call = tracer.start_span("chat m", set_span_in_context(agent), SpanKind.CLIENT, attributes)
    call.add_event("exception", {"exception.type": "Timeout"})
    call.set_status(StatusCode.ERROR, "timed out")
    call.end()
    agent.end()
    provider.shutdown()
    return memory.get_finished_spans()


async def _export(exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> SpanExportResult:
    """Export as an agent's process does, which is not the receiver's."""
    try:
        return await asyncio.to_thread(exporter.export, spans)
    finally:
        await asyncio.to_thread(exporter.shutdown)


async def test_what_the_sdk_exports_is_what_is_stored(exporter: Exporter, store: Store) -> None:
    sent = _agent_run()
    assert await _export(exporter("secret"), sent) is SpanExportResult.SUCCESS
    call, agent = store.spans
    assert [span.name for span in sent] == [call.name, agent.name]
    (parent,) = [span.parent for span in sent if span.parent]
    assert (call.parent_id, call.trace_id) == (f"{parent.span_id:016x}", f"{parent.trace_id:032x}")
    assert (agent.span_id, agent.parent_id, agent.trace_id) == (call.parent_id, "", call.trace_id)
    assert [(span.start_time, span.end_time) for span in sent] == [(call.start_ns, call.end_ns), (agent.start_ns, agent.end_ns)]
    assert (call.project, call.received_ns, call.kind, call.status_code, call.status_message) == ("shop", NOW, 3, 2, "timed out")
    assert call.attributes == {"gen_ai.usage.input_tokens": 12, "reasons": ["stop"]}
    assert [(event.name, event.attributes) for event in call.events] == [("exception", {"exception.type": "Timeout"})]
    assert (agent.resource["service.name"], agent.scope_name, agent.scope_version) == ("support", "an.instrumentation", "1.0")


async def test_the_sdk_sends_again_after_temporary_trouble_and_the_spans_are_stored_once(
    exporter: Exporter, store: Store
) -> None:
    store.failures = [TemporaryError("not yet")]
    assert await _export(exporter("secret"), _agent_run()) is SpanExportResult.SUCCESS
    assert [span.name for span in store.spans] == ["chat m", "invoke_agent support"]


async def test_the_sdk_gives_up_at_once_with_a_wrong_key(exporter: Exporter, store: Store) -> None:
    assert await _export(exporter("wrong"), _agent_run()) is SpanExportResult.FAILURE
    assert store.spans == []
