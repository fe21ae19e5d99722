"""OTLP by its rules, one row a rule and case, on every transport, encoding and compression (reliability section 1.7).

Real servers, real clients. ``pytest -s`` prints the table of what was asked and answered.
"""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import grpc.aio
import pytest
from contract.conformance import Told
from google.protobuf.json_format import Parse
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from unit.otlp.transports import COMPRESS, KEYS, LIMIT, NOW, TRANSPORTS, Send, Service, mixed, named, serving
from unit.otlp.wire_forms import SPAN_ID, TRACE_ID, json_attribute, json_request, request, text, wire_span

from collectors.otlp.signal import Encoding
from collectors.otlp.traces import TRACES
from pipeline.errors import PermanentError, TemporaryError

EVERYWHERE = tuple(TRANSPORTS)
PROTOBUF = tuple(name for name in TRANSPORTS if "json" not in name)
JSON = tuple(name for name in TRANSPORTS if "json" in name)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with serving({}) as one:
        yield one


@dataclass(frozen=True)
class Row:
    """A request that every transport must answer alike."""

    rule: str
    case: str
    body: Message | bytes
    outcome: str = "ok"
    stored: tuple[str, ...] = ()
    rejected: int = 0
    says: str = ""
    where: tuple[str, ...] = EVERYWHERE


def _spans(**envelope: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [_span(), _span("b")]} | envelope]}]}).encode()


def _span(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"traceId": TRACE_ID.hex(), "spanId": SPAN_ID.hex(), "name": name} | fields


EMPTY = ExportTraceServiceRequest(resource_spans=[ResourceSpans(), ResourceSpans(scope_spans=[ScopeSpans()])])
VALUES = [
    KeyValue(key="empty", value=AnyValue()),
    KeyValue(key="none"),
    KeyValue(key="bytes", value=AnyValue(bytes_value=b"\xff")),
    KeyValue(
        key="mixed", value=AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue(), AnyValue(bool_value=True)]))
    ),
    KeyValue(key="not a number", value=AnyValue(double_value=float("nan"))),
]
SNAKE = b'{"resource_spans":[{"scope_spans":[{"spans":[{"trace_id":"%s","span_id":"%s","name":"a"}]}]}]}' % (
    TRACE_ID.hex().encode(),
    SPAN_ID.hex().encode(),
)
GO = b"""{"resource_spans":[{"scope_spans":[{"spans":[{"trace_id":"cgXI6uihz643E6Zqq7Nl4w==","span_id":"JO77rzsyE8c=","name":"a",
"attributes":[{"key":"k","value":{"Value":{"StringValue":"v"}}}]}]}]}]}"""
MANY_REASONS = request(*[wire_span(trace_id=bytes(index + 17)) for index in range(40)])
ROWS = [
    Row("O4", "spans are stored, partial_success is unset", named("a", "b"), stored=("a", "b")),
    Row("O5", "no spans at all", ExportTraceServiceRequest()),
    Row("O5", "empty envelopes", EMPTY),
    Row("O5", "no bytes of protobuf", b"", where=PROTOBUF),
    Row("O5", "no bytes of JSON", b"", "invalid", says="not an OTLP trace request", where=JSON),
    Row("O6", "a bad span between two good ones", mixed(trace_id=b"x" * 24), "ok", ("a", "b"), 1, "traceId must be 16 bytes"),
    Row("O6", "nothing but bad spans", named("a", "b", trace_id=b"x"), "ok", (), 2, "2 of 2 spans were rejected"),
    Row("O7", "bytes that are no request", b"\xff\xff\xff", "invalid", says="not an OTLP trace request"),
    Row("O7", "JSON that is no object", b"[1]", "invalid", says="not an OTLP trace request", where=JSON),
    Row("O7", "JSON that is cut", _spans()[:-3], "invalid", says="not an OTLP trace request", where=JSON),
    Row("O11", "many reasons make a short answer", MANY_REASONS, "ok", (), 40, "other reasons"),
    Row("O12", "a trace id of zeros", mixed(trace_id=bytes(16)), "ok", ("a", "b"), 1, "traceId is all zeros"),
    Row("O12", "no trace id", mixed(trace_id=b""), "ok", ("a", "b"), 1, "traceId must be 16 bytes"),
    Row("O12", "a span id of zeros", mixed(span_id=bytes(8)), "ok", ("a", "b"), 1, "spanId is all zeros"),
    Row("O12", "no span id", mixed(span_id=b""), "ok", ("a", "b"), 1, "spanId must be 8 bytes"),
    Row(
        "O12", "a parent id of the wrong length", mixed(parent_span_id=b"x"), "ok", ("a", "b"), 1, "parentSpanId must be 8 bytes"
    ),
    Row("O12", "a parent id of zeros is none", named("a", parent_span_id=bytes(8)), stored=("a",)),
    Row("O12", "lower-case hex", json_request(traceId=TRACE_ID.hex(), name="a"), stored=("a",), where=JSON),
    Row("O12", "upper-case hex", json_request(traceId=TRACE_ID.hex().upper(), name="a"), stored=("a",), where=JSON),
    Row("O12", "base64", json_request(traceId="cgXI6uihz643E6Zqq7Nl4w=="), rejected=1, says="not as base64", where=JSON),
    Row(
        "O12",
        "base64, in snake case, with the values of Go",
        GO,
        rejected=1,
        says="traceId 'cgXI6uihz643E6Zqq7Nl4w=='",
        where=JSON,
    ),
    Row("O13", "an unknown kind survives", named("a", kind=99), stored=("a",)),
    Row("O13", "no kind is none", json_request(kind=None, name="a"), stored=("a",), where=JSON),
    Row("O13", "enums by name", json_request(kind="SPAN_KIND_CLIENT", name="a"), stored=("a",), where=JSON),
    Row("O13", "an unknown name of an enum", json_request(kind="CLIENT"), rejected=1, says="send the number", where=JSON),
    Row("O13", "keys in snake case", SNAKE, stored=("a",), where=JSON),
    Row("O14", "unknown fields at any depth", _spans(x={"y": [1]}, schemaUrl="u"), stored=("a", "b"), where=JSON),
    Row("O15", "64-bit numbers as strings", json_request(startTimeUnixNano="7", name="a"), stored=("a",), where=JSON),
    Row("O15", "64-bit numbers as numbers", json_request(startTimeUnixNano=7, name="a"), stored=("a",), where=JSON),
    Row(
        "O15", "a string that is no number", json_attribute({"intValue": "4x"}), rejected=1, says="not a whole number", where=JSON
    ),
    Row("O15", "base64 bytes, doubles by name", json_attribute({"doubleValue": "NaN"}), stored=("chat",), where=JSON),
    Row("O16", "empty, bytes, mixed and infinite values", named("a", attributes=VALUES), stored=("a",)),
    Row("O16", "an index of profiles is absent", json_attribute({"stringValueStrindex": 1}), stored=("chat",), where=JSON),
    Row("O17", "a key twice is accepted", named("a", attributes=[text("k", "1"), text("k", "2")]), stored=("a",)),
    Row("O18", "all bits of flags", named("a", flags=0xFFFFFFFF), stored=("a",)),
    Row("O18", "an end before the start", named("a", end_time_unix_nano=5), stored=("a",)),
]


@pytest.mark.parametrize(
    ("row", "where"),
    [(row, where) for row in ROWS for where in row.where],
    ids=lambda value: value if isinstance(value, str) else f"{value.rule} {value.case}",
)
async def test_a_request_is_answered_by_the_rules(row: Row, where: str, service: Service, told: Told) -> None:
    answer = await TRANSPORTS[where](service)(row.body)
    assert answer.outcome == row.outcome
    assert tuple(span.name for span in service.store.spans) == row.stored
    assert all((span.project, span.received_ns) == ("open", NOW) for span in service.store.spans)
    assert all((len(span.trace_id), len(span.span_id)) == (32, 16) for span in service.store.spans)
    assert service.counted == ([(len(row.stored), row.rejected)] if row.outcome == "ok" else [])
    if answer.response is None:
        assert row.says in answer.message
        assert isinstance(answer.details[0], BadRequest)
    else:
        assert answer.response.HasField("partial_success") == (row.rejected > 0)
        assert answer.response.partial_success.rejected_spans == row.rejected
        assert row.says in answer.response.partial_success.error_message
        assert answer.response.ByteSize() < 2000, "answers are limited too (O11)"
    told(row.rule, row.case, where, f"{answer.outcome}, {len(row.stored)} stored, {row.rejected} rejected")


@dataclass(frozen=True)
class Asked:
    """A request of HTTP's own."""

    rule: str
    case: str
    status: int
    media_type: str
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    says: str = ""


def _typed(media_type: str, encoding: str = "") -> dict[str, str]:
    return {"Content-Type": media_type} | ({"Content-Encoding": encoding} if encoding else {})


def _bad_encodings() -> Iterator[Asked]:
    """Yield what must be a bad request in the type of the request (O2, O3)."""
    for media_type in Encoding:
        for name, write in COMPRESS.items():
            sent = write(b'{"resourceSpans": []}')
            bad = {
                "no bytes": b"",
                "cut in the header": sent[:3],
                "cut": sent[:-1],
                "not compressed": b"{}",
                "more behind it": sent + b"x",
            }
            for case, body in bad.items():
                yield Asked("O3", f"{name}: {case}", 400, media_type, headers=_typed(media_type, name), body=body, says=name)
        for name in ("deflate", "br", "snappy", "gzip, gzip", "x" * 1000):
            yield Asked(
                "O3", f"{name[:20]}: unsupported", 400, media_type, headers=_typed(media_type, name), says="send gzip, zstd, or"
            )


BOTH = "Content-Type must be application/x-protobuf or application/json\n"
ASKED = [
    *(
        Asked("O1", f"{method} is not allowed", 405, "text/plain", method)
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS")
    ),
    *(
        Asked("O1", f"Content-Type {name or 'missing'}", 415, "text/plain", headers=_typed(name) if name else {}, says=BOTH)
        for name in (
            "",
            "text/plain",
            "application/octet-stream",
            "application/xml",
            "application/grpc",
            "application/x-protobuf2",
        )
    ),
    *(
        Asked("O1", f"Content-Type {name}", 200, "application/json", headers=_typed(name), says="{}")
        for name in ("application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8;x=y")
    ),
    Asked("O1", "another path", 404, "text/plain", headers=_typed("application/json")),
    Asked("O2", "an error in protobuf", 400, Encoding.PROTOBUF, headers=_typed(Encoding.PROTOBUF), body=b"\xff", says="protobuf"),
    Asked("O2", "an error in JSON", 400, Encoding.JSON, headers=_typed(Encoding.JSON), body=b"\xff", says="JSON"),
    Asked("O3", "identity", 200, Encoding.JSON, headers=_typed(Encoding.JSON, "identity")),
    Asked("O3", "gzip in capitals", 200, Encoding.JSON, headers=_typed(Encoding.JSON, "GZIP"), body=gzip.compress(b"{}")),
    *(
        Asked(
            "O3",
            f"several members of {name}",
            200,
            Encoding.JSON,
            headers=_typed(Encoding.JSON, name),
            body=write(b"{") + write(b"") + write(b"}"),
        )
        for name, write in COMPRESS.items()
    ),
    *_bad_encodings(),
    Asked("O4", "full success is no bytes of protobuf", 200, Encoding.PROTOBUF, headers=_typed(Encoding.PROTOBUF), body=b""),
    Asked(
        "O6",
        "int64 in JSON is a string",
        200,
        Encoding.JSON,
        headers=_typed(Encoding.JSON),
        body=json_request(spanId=None),
        says='"rejectedSpans":"1"',
    ),
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked.rule} {asked.case} {asked.media_type}")
async def test_http_is_answered_by_the_rules(asked: Asked, service: Service, told: Told) -> None:
    url = f"http://127.0.0.1:{service.http_port}{'/v1/nothing' if asked.status == 404 else '/v1/traces'}"
    async with aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as client:
        asking = client.request(asked.method, url, data=asked.body, headers=asked.headers)
        async with asking as response:
            assert (response.status, response.content_type) == (asked.status, asked.media_type)
            raw = await response.read()
    if asked.status == 400:
        status = Parse(raw, Status()) if asked.media_type == Encoding.JSON else Status.FromString(raw)
        assert (status.code, len(status.details)) == (grpc.StatusCode.INVALID_ARGUMENT.value[0], 1)
        assert asked.says in status.message
    else:
        assert asked.says in raw.decode().replace(": ", ":").replace("open:", "open: ") or asked.says in raw.decode()
    if asked.status == 405:
        assert response.headers["Allow"] == "POST"
    if asked.case.startswith("full success"):
        assert raw == b""
    told(asked.rule, asked.case, f"http {asked.media_type.rpartition('/')[2]}", f"{asked.status}")


@pytest.fixture(params=EVERYWHERE)
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def send(where: str, service: Service) -> Send:
    return TRANSPORTS[where](service)


@pytest.mark.parametrize(("said", "waits"), [(None, 1), (0.2, 1), (7, 7), (7.1, 8)])
async def test_temporary_trouble_is_told_to_send_again(
    said: float | None, waits: int, service: Service, send: Send, where: str, told: Told
) -> None:
    service.store.failures.append(TemporaryError("the database is starting", said))
    answer = await send(mixed(trace_id=b"x"))
    assert (answer.outcome, answer.retry_after, answer.message) == ("retry", waits, "the database is starting")
    assert isinstance(answer.details[0], RetryInfo)
    assert (service.store.spans, service.counted) == ([], [])
    assert (await send(mixed(trace_id=b"x"))).outcome == "ok"
    assert service.counted == [(2, 1)]
    told("O8", "the store cannot take it now", where, "503 / UNAVAILABLE, with when")
    told("O9", "and afterwards it is accepted", where, "ok")


async def test_what_the_store_will_never_take_is_told_not_to_send_again(
    service: Service, send: Send, where: str, told: Told
) -> None:
    service.store.failures.append(PermanentError("no such project"))
    answer = await send(named("a"))
    assert (answer.outcome, answer.retry_after, answer.message) == ("invalid", None, "no such project")
    told("O7", "the store will never take it", where, answer.outcome)


@pytest.mark.filterwarnings("default")
async def test_a_defect_of_the_store_acknowledges_nothing(service: Service, send: Send) -> None:
    service.store.failures.append(RuntimeError("a defect"))
    assert (await send(named("a"))).outcome == "failed"
    assert service.counted == []


def _of_size(size: int, write: Callable[[Message], bytes]) -> Message:
    """A request that is exactly so many bytes long as it is written."""
    padding = size
    while len(write(message := named("x" * padding))) > size:
        padding -= len(write(message)) - size
    assert len(write(message)) == size
    return message


@pytest.mark.parametrize(
    ("size", "outcome"), [(LIMIT - 1, "ok"), (LIMIT, "ok"), (LIMIT + 1, "too large"), (50 * LIMIT, "too large")]
)
async def test_the_size_limit_is_exact_and_holds_after_decompression(
    size: int, outcome: str, service: Service, send: Send, where: str, told: Told
) -> None:
    answer = await send(_of_size(size, send.write))
    assert (answer.outcome, answer.retry_after) == (outcome, None)
    assert len(service.store.spans) == (outcome == "ok")
    assert service.receiver.in_flight == 0
    told("O10", f"limit {size - LIMIT:+}" if size < 2 * LIMIT else "limit x 50", where, outcome)


async def test_success_is_said_only_after_the_store_has_returned(service: Service, send: Send, where: str, told: Told) -> None:
    service.store.open.clear()
    waiting = asyncio.create_task(send(named("a")))
    await service.store.entered.wait()
    # An answer sent too early would be here by the time another request has made the whole way there and back.
    assert (await send(ExportTraceServiceRequest())).outcome == "ok"
    assert not waiting.done()
    service.store.open.set()
    assert (await waiting).outcome == "ok"
    assert [span.name for span in service.store.spans] == ["a"]
    told("O24", "success only after the store has returned", where, "ok")


async def test_many_requests_at_once_and_again_are_all_stored(service: Service, send: Send, where: str, told: Told) -> None:
    answers = await asyncio.gather(*[send(named(f"{index % 10}")) for index in range(20)])
    assert {answer.outcome for answer in answers} == {"ok"}
    assert sorted(int(span.name) for span in service.store.spans) == sorted([*range(10)] * 2)
    told("O19", "20 at once, each of 10 sent twice", where, "20 ok")


async def test_one_connection_serves_request_after_request(service: Service, told: Told) -> None:
    url = f"http://127.0.0.1:{service.http_port}/v1/traces"
    connector = aiohttp.TCPConnector(limit=1)
    refused = {"Content-Type": "application/json", "Content-Encoding": "br"}
    async with aiohttp.ClientSession(connector=connector) as client:
        for headers, status in [
            ({"Content-Type": "application/json"}, 200),
            (refused, 400),
            ({"Content-Type": "application/json"}, 200),
        ]:
            async with client.post(url, data=b"{}", headers=headers) as response:
                assert (response.status, response.headers.get("Connection")) == (status, None)
    told("O19", "a connection is kept, also after a refusal", "http", "200, 400, 200")


@pytest.mark.parametrize("key", [None, "", "wrong", "KEY-A"])
async def test_without_a_right_key_nothing_is_stored(key: str | None, where: str, told: Told) -> None:
    async with serving(KEYS) as locked:
        send = TRANSPORTS[where](locked)
        answer = await send(named("a", attributes=[text("project", "project-a")]), key)
        assert (answer.outcome, answer.retry_after, locked.store.spans) == ("unauthenticated", None, [])
        for right, project in KEYS.items():
            assert (await send(named("a"), right)).outcome == "ok"
            assert locked.store.spans.pop().project == project
    told("O20", f"key {key!r}", where, answer.outcome)


async def test_another_method_of_grpc_is_unimplemented(service: Service, told: Told) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{service.grpc_port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await channel.unary_unary(f"/{TRACES.service}/Import", None, None)(b"")
    assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED
    told("O1", "another method of the service", "grpc", "UNIMPLEMENTED")


async def test_both_transports_and_all_encodings_store_the_same_spans(service: Service) -> None:
    message = named("a", "b", attributes=[text("k", "v")], parent_span_id=b"\x09" * 8)
    for connect in TRANSPORTS.values():
        assert (await connect(service)(message)).outcome == "ok"
    stored = service.store.spans
    assert len(stored) == 2 * len(TRANSPORTS)
    assert stored[:2] * len(TRANSPORTS) == stored
