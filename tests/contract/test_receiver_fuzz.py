"""Fuzz: whatever bytes come, in whatever wrapping, are answered in time, never with a defect, and the next request is served."""

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, Final

import aiohttp
import grpc
import grpc.aio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stopwatch import Stopwatch
from unit.otlp.transports import COMPRESS, PATIENCE_S, TRANSPORTS, Service, in_the_end, named, serving
from unit.otlp.wire_forms import as_json, request, text, wire_span

from collectors.otlp.traces import TRACES

ALLOWED: Final = {200, 400, 413, 415}
CODES: Final = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED}
BOUNDED: Final = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

VALID: Final = request(wire_span(name="a", attributes=[text("k", "v"), text("é", "\\")]), wire_span(name="b", trace_id=b"x"))
KEYS: Final = [
    "resourceSpans",
    "scopeSpans",
    "spans",
    "resource",
    "scope",
    "attributes",
    "key",
    "value",
    "stringValue",
    "arrayValue",
    "values",
]
KEYS_OF_SPANS: Final = [
    "kvlistValue",
    "intValue",
    "doubleValue",
    "bytesValue",
    "traceId",
    "spanId",
    "name",
    "events",
    "links",
    "status",
    "flags",
    "kind",
]
LEAVES: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["5B8EFFF798038103D269B633813FC60C", "EEE19B7EC3C1B174", "NaN", "-Infinity", "9" * 30, "1e999"]),
)
TREES: Final = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.sampled_from(KEYS + KEYS_OF_SPANS), below, max_size=5),
    max_leaves=40,
)


def _enveloped(tree: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": tree if isinstance(tree, list) else [tree]}]}]}).encode()


def _spoiled(valid: bytes) -> st.SearchStrategy[bytes]:
    """Bytes that are nearly valid: some replaced, some taken out, some twice."""

    def spoil(places: list[tuple[int, int, bytes]]) -> bytes:
        body = valid
        for at, size, new in places:
            place = at % (len(body) + 1)
            body = body[:place] + new + body[place + size :]
        return body

    return st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 6), st.binary(max_size=6)), min_size=1, max_size=6).map(
        spoil
    )


BODIES: Final = st.one_of(
    st.binary(max_size=400),
    _spoiled(VALID.SerializeToString()),
    _spoiled(as_json(VALID)),
    TREES.map(lambda tree: json.dumps(tree).encode()),
    TREES.map(_enveloped),
    st.sampled_from(["[", '{"a":', '{"resourceSpans":[', '{"arrayValue":{"values":[']).flatmap(
        lambda opened: st.integers(1, 3000).map(lambda times: (opened * times).encode())
    ),
)
Wrap = Callable[[bytes], bytes]
WRAPS: Final[dict[str, Wrap]] = {
    **COMPRESS,
    "": lambda body: body,
    "identity": lambda body: body,
    "deflate": lambda body: body,
    "gzip twice": lambda body: COMPRESS["gzip"](COMPRESS["gzip"](body)),
    "gzip cut": lambda body: COMPRESS["gzip"](body)[:-3],
    "zstd cut": lambda body: COMPRESS["zstd"](body)[:-3],
    "gzip not": lambda body: body,
    "zstd not": lambda body: body,
    "gzip more": lambda body: COMPRESS["gzip"](body) + body,
}
TYPES: Final = [
    "application/json",
    "application/x-protobuf",
    "application/json; charset=utf-16",
    "text/plain",
    "application/",
    "/",
    "a/b/c",
]
REQUESTS: Final = st.lists(st.tuples(BODIES, st.sampled_from(sorted(WRAPS)), st.sampled_from(TYPES)), min_size=20, max_size=20)


@BOUNDED
@given(REQUESTS)
async def test_over_http_any_body_is_answered_by_the_rules(sent: list[tuple[bytes, str, str]]) -> None:
    async with serving({}) as service, aiohttp.ClientSession(f"http://127.0.0.1:{service.http_port}") as client:
        for body, wrap, media_type in sent:
            headers = {"Content-Type": media_type} | ({"Content-Encoding": wrap.partition(" ")[0]} if wrap else {})
            watch = Stopwatch()
            async with client.post("/v1/traces", data=WRAPS[wrap](body), headers=headers) as response:
                assert response.status in ALLOWED, await response.text()
                await response.read()
            assert watch.seconds < 1
        await _is_well(service)


@BOUNDED
@given(st.lists(BODIES, min_size=20, max_size=20))
async def test_over_grpc_any_message_is_answered_by_the_rules(bodies: list[bytes]) -> None:
    async with serving({}) as service, grpc.aio.insecure_channel(f"127.0.0.1:{service.grpc_port}") as channel:
        export = channel.unary_unary(f"/{TRACES.service}/Export", None, None)
        for index, body in enumerate(bodies):
            compression = grpc.Compression.Gzip if index % 2 else grpc.Compression.NoCompression
            watch = Stopwatch()
            code = await export(body, timeout=PATIENCE_S, compression=compression).code()
            assert code in CODES
            assert watch.seconds < 1
        await _is_well(service)


async def _is_well(service: Service) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while service.receiver.in_flight:  # noqa: ASYNC110 - nothing else tells that it has noticed who hung up
            await asyncio.sleep(0.01)
    for where in ("grpc", "http json"):
        assert (await in_the_end(TRANSPORTS[where](service), named("well"))).outcome == "ok"


HEAD: Final = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
FRAMES: Final = [
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}",
    HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"Content-Length: -1\r\n\r\n",
    HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    HEAD + b"Content-Length: abc\r\n\r\n{}",
    HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"Expect: something\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"Content-Length: 10\r\n\r\n{}",
    b"POST /v1/traces HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /v1/traces%00 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    b"\x00" * 100,
    os.urandom(100),
]


async def test_bytes_that_are_hardly_http_are_answered_or_hung_up_on() -> None:
    async with serving({}, body_timeout="300ms") as service:
        for frame in FRAMES:
            answer = await _spoken(service.http_port, frame)
            assert answer[:12] in {b"", *(f"HTTP/1.1 {status}".encode() for status in (100, 200, 400, 404, 413, 417, 503))} or (
                answer[:12] == b"HTTP/1.0 400"
            ), (frame, answer)
        await _is_well(service)


@BOUNDED
@given(st.lists(_spoiled(HEAD + b"Content-Length: 2\r\n\r\n{}"), min_size=10, max_size=10))
async def test_a_spoiled_head_is_answered_or_hung_up_on(frames: list[bytes]) -> None:
    async with serving({}, body_timeout="100ms") as service:
        for frame in frames:
            answer = await _spoken(service.http_port, frame)
            assert b" 500 " not in answer[:20], (frame, answer)
        await _is_well(service)


async def _spoken(port: int, frame: bytes) -> bytes:
    """Send bytes, say that there are no more, and return what is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(frame)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    except ConnectionError:
        return b""
    finally:
        writer.close()
