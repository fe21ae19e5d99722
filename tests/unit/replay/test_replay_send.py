import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import web
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceServicer, add_TraceServiceServicer_to_server

from collectors.replay import Protocol, SendReport, requests_of, send
from collectors.replay.send import Sender, pieces
from collectors.replay.wire import RecordedSpan, request_of, spans_in
from pipeline.errors import ConfigurationError

DEMO = Path(__file__).parents[3] / "pipeline" / "apps" / "demo" / "traces"
REFUSED = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=2, error_message="two have no ids"))


def a_request(spans: int = 3) -> ExportTraceServiceRequest:
    return request_of(
        RecordedSpan(
            trace_id="t",
            span_id=f"s{n}",
            parent_id="",
            name="n",
            start_ns=1,
            end_ns=2,
            attributes={"nested": {"list": [1, {"x": None}]}},
        )
        for n in range(spans)
    )


class Receiver(TraceServiceServicer):
    """Answers by script, then with success; an answer is a response or (status, whether to say when to retry)."""

    def __init__(self) -> None:
        self.script: list[ExportTraceServiceResponse | tuple[grpc.StatusCode, bool]] = []
        self.requests: list[ExportTraceServiceRequest] = []
        self.keys: list[str] = []

    def Export(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> ExportTraceServiceResponse:  # noqa: N802
        self.requests.append(request)
        self.keys += [str(value) for name, value in context.invocation_metadata() if name == "authorization"]
        answer = self.script.pop(0) if self.script else ExportTraceServiceResponse()
        if isinstance(answer, ExportTraceServiceResponse):
            return answer
        code, retry = answer
        if retry:
            soon = RetryInfo(retry_delay=Duration(nanos=1_000_000))
            context.set_trailing_metadata((("google.rpc.retryinfo-bin", soon.SerializeToString()),))
        context.abort(code, "as scripted")
        raise AssertionError


@pytest.fixture
def over_grpc() -> Iterator[tuple[Receiver, str]]:
    receiver = Receiver()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    add_TraceServiceServicer_to_server(receiver, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield receiver, f"grpc://127.0.0.1:{port}"
    server.stop(None).wait()


def test_grpc_delivers_every_span_as_it_is_and_reports_progress(over_grpc: tuple[Receiver, str]) -> None:
    receiver, endpoint = over_grpc
    sent = [*requests_of(DEMO / "langgraph" / "refund_ok.jsonl"), a_request()]
    seen: list[tuple[int, int]] = []
    report = send(sent, endpoint, progress=lambda done, total: seen.append((done, total)), total=14)
    assert report == SendReport(sent=14)
    assert report.exit_code == 0
    assert receiver.requests == sent
    assert seen[-1] == (14, 14)


def test_grpc_counts_the_spans_that_a_partial_success_rejects_and_sends_them_only_once(over_grpc: tuple[Receiver, str]) -> None:
    receiver, endpoint = over_grpc
    receiver.script = [REFUSED]
    report = send([a_request(), a_request()], endpoint)
    assert (report.sent, report.rejected, report.failed) == (4, 2, 0)
    assert report.messages == ("two have no ids",)
    assert report.exit_code == 1
    assert len(receiver.requests) == 2


def test_grpc_retries_what_is_temporary_when_the_receiver_says(over_grpc: tuple[Receiver, str]) -> None:
    receiver, endpoint = over_grpc
    receiver.script = [(grpc.StatusCode.UNAVAILABLE, True), (grpc.StatusCode.RESOURCE_EXHAUSTED, True)]
    assert send([a_request()], endpoint) == SendReport(sent=3)
    assert len(receiver.requests) == 3


def test_grpc_reports_what_failed_for_good_and_goes_on(over_grpc: tuple[Receiver, str]) -> None:
    receiver, endpoint = over_grpc
    receiver.script = [(grpc.StatusCode.INVALID_ARGUMENT, False)]
    report = send([a_request(), a_request(1)], endpoint)
    assert (report.sent, report.failed, report.gave_up) == (1, 3, False)
    assert report.messages == ("INVALID_ARGUMENT: as scripted",)


def test_several_failures_in_a_row_end_the_replay(over_grpc: tuple[Receiver, str]) -> None:
    receiver, endpoint = over_grpc
    receiver.script = [(grpc.StatusCode.UNAUTHENTICATED, False)] * 9
    report = send([a_request(1)] * 9, endpoint, key="wrong")
    assert (report.failed, report.gave_up, report.exit_code) == (3, True, 1)
    assert receiver.keys == ["Bearer wrong"] * 3


def test_failures_between_successes_do_not_end_the_replay(over_grpc: tuple[Receiver, str]) -> None:
    receiver, endpoint = over_grpc
    failed = (grpc.StatusCode.INVALID_ARGUMENT, False)
    receiver.script = [failed, failed, ExportTraceServiceResponse(), failed, failed]
    report = send([a_request(1)] * 6, endpoint)
    assert (report.sent, report.failed, report.gave_up) == (2, 4, False)


@contextlib.asynccontextmanager
async def over_http(answer: Callable[[web.Request, bytes], web.Response], path: str = "/v1/traces") -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.Response:
        return answer(request, await request.read())

    app = web.Application()
    app.router.add_post(path, handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def scripted(*answers: web.Response, bodies: list[bytes] | None = None) -> Callable[[web.Request, bytes], web.Response]:
    waiting = list(answers)

    def answer(_: web.Request, body: bytes) -> web.Response:
        if bodies is not None:
            bodies.append(body)
        return waiting.pop(0) if waiting else web.Response(body=ExportTraceServiceResponse().SerializeToString())

    return answer


async def sent(endpoint: str, *requests: ExportTraceServiceRequest, **options: Any) -> SendReport:
    return await asyncio.to_thread(send, requests, endpoint, **options)


async def test_http_delivers_every_span_as_it_is() -> None:
    bodies: list[bytes] = []
    requests = [*requests_of(DEMO / "langgraph" / "refund_ok.jsonl"), a_request()]
    async with over_http(scripted(bodies=bodies)) as endpoint:
        assert await sent(endpoint, *requests) == SendReport(sent=14)
    assert [ExportTraceServiceRequest.FromString(body) for body in bodies] == requests


async def test_http_counts_the_spans_that_a_partial_success_rejects_and_sends_them_only_once() -> None:
    bodies: list[bytes] = []
    async with over_http(scripted(web.Response(body=REFUSED.SerializeToString()), bodies=bodies)) as endpoint:
        report = await sent(endpoint, a_request(), a_request())
    assert (report.sent, report.rejected, report.failed) == (4, 2, 0)
    assert report.messages == ("two have no ids",)
    assert len(bodies) == 2


async def test_http_retries_what_is_temporary_when_the_receiver_says() -> None:
    busy = [web.Response(status=status, headers={"Retry-After": "0"}) for status in (503, 429)]
    bodies: list[bytes] = []
    async with over_http(scripted(*busy, bodies=bodies)) as endpoint:
        assert await sent(endpoint, a_request()) == SendReport(sent=3)
    assert len(bodies) == 3


async def test_http_reports_what_failed_for_good_and_goes_on() -> None:
    async with over_http(scripted(web.Response(status=400, text="no such thing"))) as endpoint:
        report = await sent(endpoint, a_request(), a_request(1))
    assert (report.sent, report.failed, report.gave_up) == (1, 3, False)
    assert report.messages == ("400 Bad Request: no such thing",)


async def test_http_reports_the_sentence_of_a_receiver_that_answers_in_protobuf() -> None:
    refusal = web.Response(
        status=401, body=Status(code=16, message="send an API key").SerializeToString(), content_type="application/x-protobuf"
    )
    async with over_http(scripted(refusal)) as endpoint:
        report = await sent(endpoint, a_request())
    assert report.messages == ("401 Unauthorized: send an API key",)


async def test_http_takes_no_redirect_for_success() -> None:
    async with over_http(scripted(web.Response(status=302, headers={"Location": "/elsewhere"}))) as endpoint:
        report = await sent(endpoint, a_request())
    assert (report.sent, report.failed) == (0, 3)


async def test_http_sends_the_key_to_the_path_that_is_given() -> None:
    keys: list[str] = []

    def answer(request: web.Request, _: bytes) -> web.Response:
        keys.append(request.headers["Authorization"])
        return web.Response(text="fine")

    async with over_http(answer, path="/custom") as endpoint:
        report = await sent(f"{endpoint}/custom", a_request(), protocol=Protocol.HTTP, key="secret")
    assert report.sent == 3
    assert keys == ["Bearer secret"]


@pytest.mark.parametrize("protocol", Protocol)
def test_nobody_listening_is_a_failure_and_not_an_exception(protocol: Protocol) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        report = send([a_request()], f"http://127.0.0.1:{silent.getsockname()[1]}", protocol, timeout_s=0.5)
    assert (report.sent, report.failed, report.exit_code) == (0, 3, 1)
    assert report.messages


@pytest.mark.parametrize(
    ("endpoint", "protocol", "name", "address"),
    [
        ("http://127.0.0.1:4317", None, "GrpcExporter", "127.0.0.1:4317"),
        ("127.0.0.1:4317", None, "GrpcExporter", "127.0.0.1:4317"),
        ("grpc://127.0.0.1:5000", None, "GrpcExporter", "127.0.0.1:5000"),
        ("http://127.0.0.1:4318", None, "HttpExporter", "http://127.0.0.1:4318/v1/traces"),
        ("127.0.0.1:4318/", None, "HttpExporter", "http://127.0.0.1:4318/v1/traces"),
        ("https://otlp.example.com/prefix/v1/traces", None, "HttpExporter", "https://otlp.example.com/prefix/v1/traces"),
        ("http://127.0.0.1:4317", Protocol.HTTP, "HttpExporter", "http://127.0.0.1:4317/v1/traces"),
        ("http://127.0.0.1:4318", Protocol.GRPC, "GrpcExporter", "127.0.0.1:4318"),
    ],
)
def test_the_protocol_follows_flag_scheme_and_port(endpoint: str, protocol: Protocol | None, name: str, address: str) -> None:
    with Sender(endpoint, protocol) as sender:
        assert type(sender._exporter).__name__ == name
        assert sender._exporter._endpoint == address  # type: ignore[attr-defined]


@pytest.mark.parametrize("endpoint", ["", "ftp://127.0.0.1", "http://"])
def test_what_is_no_endpoint_is_an_error_that_says_what_to_write(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match="write one such as"):
        Sender(endpoint)


@given(
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from("ab"), st.sampled_from("xy")), max_size=12), st.integers(100, 1500)
)
def test_a_large_request_is_sent_in_pieces_that_hold_the_same_spans_where_they_were(
    drawn: list[tuple[int, str, str]], limit: int
) -> None:
    request = request_of(
        RecordedSpan(
            trace_id="t",
            span_id=f"s{number}",
            parent_id="",
            name="n" * size,
            start_ns=1,
            end_ns=2,
            resource={"service.name": service},
            scope_name=scope,
        )
        for number, (size, service, scope) in enumerate(drawn)
    )
    placed = [(service, scope) for service, scope, _ in _places(request)]
    assert sorted(placed) == sorted((service, scope) for _, service, scope in drawn)
    parts = list(pieces(request, limit))
    assert [place for part in parts for place in _places(part)] == list(_places(request))
    assert all(part.ByteSize() <= limit + 64 or sum(1 for _ in spans_in(part)) == 1 for part in parts)
    assert len(parts) == 1 or all(any(spans_in(part)) for part in parts)


def _places(request: ExportTraceServiceRequest) -> Iterator[tuple[str, str, bytes]]:
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield resource_spans.resource.attributes[0].value.string_value, scope_spans.scope.name, span.SerializeToString()
