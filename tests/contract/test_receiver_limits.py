"""Back-pressure and quotas on both transports: what there is no room for is told to come back, and nobody else suffers."""

import asyncio
import gzip

import aiohttp
import grpc
import grpc.aio
import pytest
from contract.conformance import Told
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from stopwatch import Stopwatch
from unit.otlp.transports import (
    COMPRESS,
    KEYS,
    LIMIT,
    PATIENCE_S,
    TRANSPORTS,
    Answer,
    Grpc,
    Http,
    Service,
    in_the_end,
    named,
    serving,
)
from unit.otlp.wire_forms import request, wire_span

from collectors.otlp.grpc import serve
from collectors.otlp.keys import Keys
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import Encoding
from collectors.otlp.traces import TRACES
from pipeline.errors import ConfigurationError

MEBIBYTE = 1024 * 1024
KEY_A, KEY_B = KEYS


@pytest.fixture(params=TRANSPORTS)
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _large(size: int = LIMIT // 2) -> ExportTraceServiceRequest:
    return named("x" * size)


@pytest.mark.parametrize("most", [1, 7])
async def test_the_limit_of_spans_is_exact(most: int, where: str, told: Told) -> None:
    async with serving({}, max_spans=most) as service:
        send = TRANSPORTS[where](service)
        for count, outcome in ((most, "ok"), (most + 1, "too large")):
            spans = [wire_span(span_id=index.to_bytes(8, "big"), name="n" * 30) for index in range(1, count + 1)]
            answer = await send(request(*spans))
            assert (answer.outcome, answer.retry_after) == (outcome, None)
            told("O10", f"spans: limit {count - most:+}", where, outcome)
        assert f"more than {most} items" in answer.message
        assert "receiver.max_spans" in answer.message
        assert len(service.store.spans) == most


async def test_requests_beyond_the_room_are_told_to_come_back_and_are_accepted_later(where: str, told: Told) -> None:
    async with serving({}, max_in_flight=LIMIT) as service:
        send = TRANSPORTS[where](service)
        service.store.open.clear()
        first = asyncio.create_task(send(_large(LIMIT * 2 // 3)))
        await service.store.entered.wait()
        refused = await send(_large(LIMIT * 2 // 3))
        assert (refused.outcome, refused.retry_after) == ("retry", 1)
        small = asyncio.create_task(send(named("small")))
        service.store.open.set()
        assert [(await task).outcome for task in (first, small)] == ["ok", "ok"]
        assert (await send(_large(LIMIT * 2 // 3))).outcome == "ok"
        assert service.receiver.in_flight == 0
        told("O9", "no room for it among the requests in flight", where, "503 / UNAVAILABLE, with when")


async def test_over_http_there_is_no_room_before_the_body_is_read() -> None:
    async with serving({}, max_in_flight=LIMIT) as service:
        service.store.open.clear()
        first = asyncio.create_task(TRANSPORTS["http protobuf"](service)(_large()))
        await service.store.entered.wait()
        reader, writer = await asyncio.open_connection("127.0.0.1", service.http_port)
        head = "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
        writer.write(head.format(LIMIT - 100).encode())
        assert (await reader.readline()).split()[1] == b"503"
        writer.close()
        service.store.open.set()
        assert (await first).outcome == "ok"


async def test_a_quota_is_answered_with_when_and_the_other_project_does_not_notice(where: str, told: Told) -> None:
    async with serving(KEYS, quotas={"default": {"spans_per_s": 2}}) as service:
        send = TRANSPORTS[where](service)
        many = named(*(f"{index}" for index in range(30)))
        assert (await send(many, KEY_A)).outcome == "ok", "a request larger than a whole bucket is not refused for ever"
        for _ in range(3):
            answer = await send(named("a"), KEY_A)
            assert (answer.outcome, answer.retry_after) == (
                "quota",
                6,
            )  # 10 too many at 2 a second, and half a second for one more
            assert "quota of spans" in answer.message
        assert (await send(named("b"), KEY_B)).outcome == "ok"
        assert [span.name for span in service.store.spans if span.project == KEYS[KEY_B]] == ["b"]
        told("O9", "the project's quota is used up", where, "429 / RESOURCE_EXHAUSTED, with when")


async def test_a_quota_of_bytes_counts_them_after_decompression(where: str) -> None:
    async with serving({}, quotas={"open": {"bytes_per_s": 1000}}) as service:
        send = TRANSPORTS[where](service)
        assert (await send(_large())).outcome == "ok"
        answer = await send(named("a"))
        assert answer.outcome == "quota"
        assert answer.retry_after is not None


async def test_a_refusal_by_quota_costs_no_reading() -> None:
    async with serving({}, quotas={"open": {"spans_per_s": 1}}) as service:
        send = TRANSPORTS["http json"](service)
        await send(named(*(f"{index}" for index in range(20))))
        decoded: list[int] = []
        service.receiver._read = lambda *_: decoded.append(1)  # type: ignore[method-assign, assignment]
        assert {(await send(named("a"))).outcome for _ in range(5)} == {"quota"}
        assert decoded == []


async def test_a_flood_of_one_project_leaves_room_for_another() -> None:
    """S18: the flood waits for the store, and what another project sends is accepted all the same."""
    async with serving(KEYS, max_in_flight=4 * LIMIT) as service:
        send = TRANSPORTS["grpc"](service)
        service.store.open.clear()
        flood = [asyncio.create_task(send(_large(), KEY_A)) for _ in range(20)]
        outcomes = await _settled(flood, 20 - 3)  # half of the room is that of three
        assert set(outcomes) == {"retry"}
        other = [asyncio.create_task(send(_large(), KEY_B)) for _ in range(3)]
        while len(service.receiver._begun) < 3 + 3:  # noqa: ASYNC110 - nothing else tells that they are inside
            await asyncio.sleep(0.01)
        service.store.open.set()
        assert {(await one).outcome for one in other} == {"ok"}
        assert [(await one).outcome for one in flood].count("ok") == 3


async def _settled(tasks: "list[asyncio.Task[Answer]]", count: int) -> list[str]:
    while sum(task.done() for task in tasks) < count:  # noqa: ASYNC110 - whichever they are
        await asyncio.sleep(0.01)
    return [task.result().outcome for task in tasks if task.done()]


async def test_too_many_requests_over_grpc_are_told_to_come_back() -> None:
    async with serving({}, max_concurrent=2) as service:
        send = TRANSPORTS["grpc"](service)
        service.store.open.clear()
        tasks = [asyncio.create_task(send(named("a"))) for _ in range(5)]
        assert await _settled(tasks, 3) == ["retry"] * 3
        service.store.open.set()
        assert sorted([(await task).outcome for task in tasks]) == ["ok"] * 2 + ["retry"] * 3
        assert {task.result().retry_after for task in tasks} == {None, 1}


async def test_one_project_never_takes_all_of_grpc() -> None:
    async with serving(KEYS, max_concurrent=4) as service, grpc.aio.insecure_channel(f"127.0.0.1:{service.grpc_port}") as channel:
        export = channel.stream_unary(f"/{TRACES.service}/Export", None, None)
        hanging = [export(None, metadata=(("authorization", f"Bearer {KEY_A}"),)) for _ in range(2)]
        while len(service.receiver._begun) < 2:  # noqa: ASYNC110 - nothing else tells that they are inside
            await asyncio.sleep(0.01)
        send = TRANSPORTS["grpc"](service)
        assert (await send(named("a"), KEY_A)).outcome == "retry"
        assert (await send(named("b"), KEY_B)).outcome == "ok"
        for call in hanging:
            call.cancel()
        while service.receiver._begun:  # noqa: ASYNC110 - nor that they are gone
            await asyncio.sleep(0.01)
        assert (await send(named("a"), KEY_A)).outcome == "ok"


async def test_a_body_that_does_not_arrive_is_not_waited_for(told: Told) -> None:
    async with serving({}, body_timeout="200ms") as service:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.http_port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        )
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)).lower()
        assert head.startswith(b"http/1.1 503")
        assert b"retry-after: 1" in head
        assert await asyncio.wait_for(reader.read(), PATIENCE_S), "the refusal in JSON, and then the end of the connection"
        writer.close()
        assert service.receiver.in_flight == 0
        assert (await in_the_end(TRANSPORTS["http json"](service), named("a"))).outcome == "ok"
    told("O23", "a body that does not arrive", "http json", "503, and the connection is closed")


async def test_a_header_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, told: Told) -> None:
    monkeypatch.setattr("collectors.otlp.http.IDLE_S", 0.2)
    async with serving({}) as service:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.http_port)
        writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nX: ")
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
    told("O23", "a header that does not end", "http json", "the connection is closed")


async def test_a_request_that_does_not_arrive_over_grpc_is_not_waited_for(told: Told) -> None:
    async with (
        serving({}, body_timeout="200ms") as service,
        grpc.aio.insecure_channel(f"127.0.0.1:{service.grpc_port}") as channel,
    ):
        call = channel.stream_unary(f"/{TRACES.service}/Export", None, None)(None)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call
    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    told("O23", "a request without its message", "grpc", "UNAVAILABLE")


async def test_a_request_over_grpc_that_ends_without_a_message_is_a_bad_request() -> None:
    async with serving({}) as service, grpc.aio.insecure_channel(f"127.0.0.1:{service.grpc_port}") as channel:
        call = channel.stream_unary(f"/{TRACES.service}/Export", None, None)(iter(()))
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def _rss() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no path of ours
        return int(file.read().split()[1]) * 4096


async def _watched(work: "asyncio.Task[Answer]") -> tuple[Answer, int, float]:
    """Return what came of it, how many bytes the process grew by, and the longest time for which the event loop stood still."""
    before, grown, stood = _rss(), 0, 0.0
    while not work.done():
        watch = Stopwatch()
        await asyncio.sleep(0.01)
        stood = max(stood, watch.seconds)
        grown = max(grown, _rss() - before)
    return work.result(), grown, stood


async def _send_compressed(service: Service, body: bytes, compression: str) -> Answer:
    sender = Http(service.http_port, Encoding.PROTOBUF)
    headers = {"Content-Type": Encoding.PROTOBUF.value, "Content-Encoding": compression}
    async with aiohttp.ClientSession() as client, client.post(sender.url, data=body, headers=headers) as response:
        return sender._read(response, await response.read())


@pytest.mark.parametrize("compression", COMPRESS)
async def test_a_bomb_over_http_is_too_large_in_bounded_memory(compression: str, told: Told) -> None:
    bomb = COMPRESS[compression](bytes(400 * MEBIBYTE))
    async with serving({}, max_body=16 * MEBIBYTE) as service:
        answer, grown, stood = await _watched(asyncio.create_task(_send_compressed(service, bomb, compression)))
        assert (answer.outcome, answer.retry_after) == ("too large", None)
        assert grown < 64 * MEBIBYTE
        assert stood < 1
        assert service.receiver.in_flight == 0
        told("S10", f"400 MiB of zeros in {compression}", "http protobuf", "413")


@pytest.mark.parametrize("encoding", list(Encoding))
async def test_valid_and_wide_requests_are_too_large_before_they_cost_memory(encoding: Encoding, told: Told) -> None:
    """R19: some kilobytes of gzip that are millions of empty spans."""
    spans = 4_000_000
    wide = {
        Encoding.JSON: b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b"{}," * spans + b"{}]}]}]}",
        Encoding.PROTOBUF: b"\x0a\x00" * spans,
    }[encoding]
    async with serving({}, max_body=64 * MEBIBYTE) as service:
        send = Http(service.http_port, encoding, "gzip")
        answer, _, stood = await _watched(asyncio.create_task(send(wide)))
        assert answer.outcome == "too large"
        assert stood < 1
        told("S10", f"{len(wide) // MEBIBYTE} MiB of empty items in {len(gzip.compress(wide)) // 1024} KiB", send.encoding, "413")


async def test_a_bomb_over_grpc_is_too_large(told: Told) -> None:
    async with serving({}, max_body=16 * MEBIBYTE) as service:
        answer = await Grpc(service.grpc_port, compressed=True)(bytes(200 * MEBIBYTE))
        assert (answer.outcome, answer.retry_after) == ("too large", None)
        assert (await Grpc(service.grpc_port, compressed=True)(named("a"))).outcome == "ok"
    told("S10", "200 MiB of zeros in gzip", "grpc", "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize("name", ["zstd", "snappy"])
async def test_a_compression_that_grpc_does_not_have_is_refused_for_good(name: str, told: Told) -> None:
    message = COMPRESS["zstd"](named("a").SerializeToString())
    async with serving({}) as service:
        status = await _raw_grpc(service.grpc_port, name, b"\x01" + len(message).to_bytes(4, "big") + message)
        # UNIMPLEMENTED would be right. The library answers before we hear of it, with another code that is never sent again (O9).
        assert status == grpc.StatusCode.INTERNAL.value[0]
        assert service.store.spans == []
    told("O3", f"{name} over gRPC", "grpc", "INTERNAL, by the library")


async def test_a_port_in_use_is_a_configuration_error() -> None:
    async with serving({}) as service:
        receiver = Receiver({TRACES: service.store}, lambda: 1, Keys({}, "open"))
        with pytest.raises(ConfigurationError, match=r"receiver\.grpc_port: cannot listen on 127\.0\.0\.1:\d+"):
            await serve(receiver, "127.0.0.1", service.grpc_port)


async def _raw_grpc(port: int, encoding: str, message: bytes) -> int:
    """Send a message as no client of the library would, by hand over HTTP/2, and return its grpc-status."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/{TRACES.service}/Export",
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
        "grpc-encoding": encoding,
    }
    head = b"".join(
        b"\x00" + bytes([len(key)]) + key.encode() + bytes([len(value)]) + value.encode() for key, value in fields.items()
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    settings, headers, data = _frame(4, 0, 0, b""), _frame(1, 4, 1, head), _frame(0, 1, 1, message)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + headers + data)
    answer = b""
    while b"grpc-status" not in answer:
        answer += await asyncio.wait_for(reader.readexactly(1), PATIENCE_S)
    size = (await reader.readexactly(1))[0]
    status = int(await reader.readexactly(size))
    writer.close()
    return status


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content
