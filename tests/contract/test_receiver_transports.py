"""OTLP as every transport and encoding must speak it: one table, real servers, real clients (reliability section 1.7)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from unit.otlp.transports import KEYS, LIMIT, NOW, TRANSPORTS, Send, Service, mixed, named, serving
from unit.otlp.wire_forms import text

from pipeline.errors import PermanentError, TemporaryError


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async for one in serving({}):
        yield one


@pytest.fixture
async def locked_service() -> AsyncIterator[Service]:
    async for one in serving(KEYS):
        yield one


@pytest.fixture(params=TRANSPORTS)
def connect(request: pytest.FixtureRequest) -> Callable[[Service], Send]:
    return TRANSPORTS[request.param]


@dataclass(frozen=True)
class Case:
    """A row of the table: what is sent, what is answered, which spans are stored."""

    rule: str
    body: Message | bytes
    outcome: str = "ok"
    stored: tuple[str, ...] = ()
    rejected: int = 0
    message: str = ""


TABLE = [
    Case("O4 spans are stored and partial_success is unset", named("a", "b"), stored=("a", "b")),
    Case("O5 an empty request succeeds", ExportTraceServiceRequest()),
    Case(
        "O5 empty envelopes succeed",
        ExportTraceServiceRequest(resource_spans=[ResourceSpans(), ResourceSpans(scope_spans=[ScopeSpans()])]),
    ),
    Case("O6 a trace id of the wrong length", mixed(trace_id=b"x" * 24), "ok", ("a", "b"), 1, "traceId must be 16 bytes"),
    Case("O12 a trace id of zeros", mixed(trace_id=bytes(16)), "ok", ("a", "b"), 1, "traceId is all zeros"),
    Case("O12 no span id", mixed(span_id=b""), "ok", ("a", "b"), 1, "spanId must be 8 bytes"),
    Case("O12 a parent id of the wrong length", mixed(parent_span_id=b"x"), "ok", ("a", "b"), 1, "parentSpanId must be 8 bytes"),
    Case("R26 a parent of zeros is a root", named("a", parent_span_id=bytes(8)), stored=("a",)),
    Case("O6 nothing but bad spans", named("a", "b", trace_id=b"x"), "ok", (), 2, "2 of 2 spans were rejected"),
    Case("O7 bytes that are no request", b"\xff\xff\xff", "invalid", (), 0, "not an OTLP trace request"),
    Case("O13 an unknown kind survives", named("a", kind=99), stored=("a",)),
    Case("O17 a key twice is accepted", named("a", attributes=[text("k", "1"), text("k", "2")]), stored=("a",)),
    Case("O18 flags and an end before the start are accepted", named("a", flags=0xFFFFFFFF, end_time_unix_nano=5), stored=("a",)),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.rule)
async def test_a_request_is_answered_by_the_rules(case: Case, service: Service, connect: Callable[[Service], Send]) -> None:
    answer = await connect(service)(case.body)
    assert answer.outcome == case.outcome
    assert tuple(span.name for span in service.store.spans) == case.stored
    assert all((span.project, span.received_ns) == ("open", NOW) for span in service.store.spans)
    assert service.counted == ([(len(case.stored), case.rejected)] if case.outcome == "ok" else [])
    if answer.response is None:
        assert case.message in answer.message
        assert isinstance(answer.details[0], BadRequest)
        return
    assert answer.response.HasField("partial_success") == (case.rejected > 0)
    assert answer.response.partial_success.rejected_spans == case.rejected
    assert case.message in answer.response.partial_success.error_message


async def test_success_is_said_only_after_the_store_has_returned(service: Service, connect: Callable[[Service], Send]) -> None:
    send = connect(service)
    service.store.open.clear()
    waiting = asyncio.create_task(send(named("a")))
    await service.store.entered.wait()
    # An answer sent too early would be here by the time another request has made the whole way there and back.
    assert (await send(ExportTraceServiceRequest())).outcome == "ok"
    assert not waiting.done()
    service.store.open.set()
    assert (await waiting).outcome == "ok"
    assert [span.name for span in service.store.spans] == ["a"]


@pytest.mark.parametrize(("said", "told"), [(None, 1), (0.2, 1), (7, 7), (7.1, 8)])
async def test_temporary_trouble_is_told_to_send_again(
    said: float | None, told: int, service: Service, connect: Callable[[Service], Send]
) -> None:
    send = connect(service)
    service.store.failures.append(TemporaryError("the database is starting", said))
    answer = await send(mixed(trace_id=b"x"))
    assert (answer.outcome, answer.retry_after, answer.message) == ("retry", told, "the database is starting")
    assert (service.store.spans, service.counted) == ([], [])
    assert (await send(mixed(trace_id=b"x"))).outcome == "ok"
    assert service.counted == [(2, 1)]


async def test_what_the_store_will_never_take_is_told_not_to_send_again(
    service: Service, connect: Callable[[Service], Send]
) -> None:
    service.store.failures.append(PermanentError("no such project"))
    answer = await connect(service)(named("a"))
    assert (answer.outcome, answer.retry_after, answer.message) == ("invalid", None, "no such project")


@pytest.mark.filterwarnings("default")
async def test_a_defect_of_the_store_acknowledges_nothing(service: Service, connect: Callable[[Service], Send]) -> None:
    service.store.failures.append(RuntimeError("a defect"))
    assert (await connect(service)(named("a"))).outcome == "failed"
    assert service.counted == []


async def test_the_key_decides_the_project(locked_service: Service, connect: Callable[[Service], Send]) -> None:
    send = connect(locked_service)
    for key in KEYS:
        assert (await send(named("a"), key)).outcome == "ok"
    assert [span.project for span in locked_service.store.spans] == list(KEYS.values())


@pytest.mark.parametrize("key", [None, "", "wrong", "KEY-A"])
async def test_without_a_right_key_nothing_is_read(
    key: str | None, locked_service: Service, connect: Callable[[Service], Send]
) -> None:
    answer = await connect(locked_service)(named("a"), key)
    assert (answer.outcome, answer.retry_after) == ("unauthenticated", None)
    assert "key" in answer.message
    assert locked_service.store.spans == []


def _of_size(size: int, write: Callable[[Message], bytes]) -> Message:
    """A request that is exactly so many bytes long as it is written."""
    padding = size
    while len(write(message := named("x" * padding))) > size:
        padding -= len(write(message)) - size
    assert len(write(message)) == size
    return message


@pytest.mark.parametrize(("size", "outcome"), [(LIMIT, "ok"), (LIMIT + 1, "too large"), (50 * LIMIT, "too large")])
async def test_the_size_limit_is_exact_and_holds_after_decompression(
    size: int, outcome: str, service: Service, connect: Callable[[Service], Send]
) -> None:
    send = connect(service)
    answer = await send(_of_size(size, send.write))
    assert (answer.outcome, answer.retry_after) == (outcome, None)
    assert len(service.store.spans) == (outcome == "ok")


async def test_many_requests_at_once_are_all_stored(service: Service, connect: Callable[[Service], Send]) -> None:
    send = connect(service)
    answers = await asyncio.gather(*[send(named(f"{index}")) for index in range(20)])
    assert {answer.outcome for answer in answers} == {"ok"}
    assert sorted(int(span.name) for span in service.store.spans) == list(range(20))


async def test_both_transports_and_encodings_store_the_same_spans(service: Service) -> None:
    message = named("a", "b", attributes=[text("k", "v")], parent_span_id=b"\x09" * 8)
    for connect_one in TRANSPORTS.values():
        assert (await connect_one(service)(message)).outcome == "ok"
    stored = service.store.spans
    assert len(stored) == 2 * len(TRANSPORTS)
    assert stored[:2] * len(TRANSPORTS) == stored
