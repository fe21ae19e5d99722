"""The redaction table: every place a secret can stand × every detector, through the real receiver over both transports and encodings.

What was stored and what was published is searched for the secret: each row of each table, the bytes of the data folder, the bytes of the
records. ``-s`` prints the table.
"""

import asyncio
import json
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import grpc
import pytest
from aiohttp import web
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from places_for_secrets import LOGGED, PATTERN, PLACES, RULE, SAID, WITH_NAMES, Cell, cells
from secrets_of_all_kinds import HARMLESS
from unit.otlp.wire_forms import as_json

from collectors.feedback.desk import FeedbackDesk
from collectors.kafka.facts import FactPublisher
from collectors.kafka.publisher import KafkaPublisher, SpanBatcher
from collectors.kafka.records import Incoming, Outgoing, decode
from collectors.otlp.keys import Keys
from collectors.otlp.logs import LOGS
from collectors.otlp.passing import PASSED_ON
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import Encoding
from collectors.otlp.traces import TRACES
from collectors.redaction.configured import redactor
from pipeline.apps.compose import Product
from pipeline.config.redaction import Detector
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model import topology
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback
from pipeline.model.span import Span
from pipeline.model.time import MINUTE
from pipeline.runtime.clock import ManualClock
from sinks.clickhouse.connection import connect
from sinks.clickhouse.store import Store

NOW = 1_790_000_100_000_000_000
WAYS = ("http protobuf", "http json", "grpc")
CELLS = tuple(cells())
A_REQUEST = 100
NOT_KEPT = (
    "link trace state",
    "log schema",
    "log scope attribute",
    "log severity text",
    "schema of a resource's spans",
    "schema of a scope's spans",
    "scope attribute",
    "scope key",
)
"""Places that are read over, so nothing of them is in the store. What goes to a broker is searched for them too."""


def _settings(folder: Path, **redaction: Any) -> TracegradeSettings:
    return TracegradeSettings.model_validate(
        {
            "store": {"path": folder},
            "receiver": {"http_port": 0, "grpc_port": 0},
            "redaction": {"rules": [{"name": RULE, "pattern": PATTERN}], **redaction},
        }
    )


def _way(number: int) -> str:
    return WAYS[number % len(WAYS)]


def _requests(some: Sequence[Cell]) -> Iterator[tuple[str, Message]]:
    """Yield what is sent which way: each secret takes every way, in other places."""
    by_way: dict[tuple[str, bool], list[Cell]] = defaultdict(list)
    for number, cell in enumerate(some):
        if cell.place not in SAID:
            by_way[_way(number + number // len(PLACES)), cell.place in LOGGED].append(cell)
    for (way, _), sent in by_way.items():
        for first in range(0, len(sent), A_REQUEST):
            yield way, _together(sent[first : first + A_REQUEST])


def _together(some: Sequence[Cell]) -> Message:
    message: Message = some[0].request(NOW)
    for cell in some[1:]:
        message.MergeFrom(cell.request(NOW))
    return message


def _written(way: str, message: Message) -> tuple[bytes, Encoding]:
    in_json = way == "http json"
    return (as_json(message), Encoding.JSON) if in_json else (message.SerializeToString(), Encoding.PROTOBUF)


def _of_logs(message: Message) -> bool:
    return isinstance(message, ExportLogsServiceRequest)


async def _send(product: Product, way: str, message: Message) -> None:
    if way == "grpc":
        stub = LogsServiceStub if _of_logs(message) else TraceServiceStub
        async with grpc.aio.insecure_channel(product.served.grpc_address) as channel:
            await stub(channel).Export(message)
        return
    body, encoding = _written(way, message)
    path = LOGS.path if _of_logs(message) else TRACES.path
    await _post(f"{product.served.http_url}{path}", body, encoding.value)


async def _post(url: str, body: bytes, content_type: str) -> None:
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers={"Content-Type": content_type}) as answer:
        told = await answer.read()
        assert answer.status == 200, told
        assert b"artial" not in told, told


async def _stored(settings: TracegradeSettings, some: Sequence[Cell]) -> tuple[str, dict[str, str], dict[str, float]]:
    """Send all of it and let the runs be graded; return all tables as text, the facts' rows by trace, and what was counted."""
    clock = ManualClock(NOW)
    store = await asyncio.to_thread(Store.open, settings.store)
    try:
        async with Product(settings, store, clock) as product:
            for way, message in _requests(some):
                await _send(product, way, message)
            said = [cell.feedback() for cell in some if cell.place in SAID]
            if said:
                await _post(f"{product.served.http_url}/api/feedback", json.dumps(said).encode(), "application/json")
            for _ in range(3):
                await product.pipeline.settle()
                clock.advance_to(clock.now() + MINUTE)
            await product.pipeline.settle()
            counted = product.telemetry.snapshot()
    finally:
        await store.close()
    return *await asyncio.to_thread(_tables, settings), counted


def _tables(settings: TracegradeSettings) -> tuple[str, dict[str, str]]:
    tables, rows = [], {}
    database = connect(settings.store, {})
    try:
        for table in database.query("SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name"):
            for row in database.query(f"SELECT * FROM `{table['name']}`"):  # noqa: S608 - the store's own names
                text = json.dumps(row, default=repr, ensure_ascii=False)
                tables.append(text)
                if table["name"] in ("spans", "log_records", "feedback"):
                    rows[row["trace_id"]] = text
    finally:
        database.close()
    return "\n".join(tables), rows


def _files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def _forms(secret: str) -> set[str]:
    """How a secret is written where it is stored: as it is, in JSON at two depths, in base64 at each alignment."""
    once = json.dumps(secret)[1:-1]
    forms = {secret, once, json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(once)[1:-1]}
    for shift in range(3):
        whole = b64encode(b"x" * shift + secret.encode()).decode()
        forms.add(whole[4 if shift else 0 : -4])
    return {form for form in forms if len(form) >= 7}


def _has(text: str, secret: str) -> bool:
    return any(form in text for form in _forms(secret))


def _print(leaks: set[Cell], title: str) -> None:
    kinds = list(dict.fromkeys(cell.kind for cell in CELLS))
    there = {(cell.place, cell.kind) for cell in CELLS}
    bad = {(cell.place, cell.kind) for cell in leaks}
    lines = [f"{title}: {len(CELLS)} secrets of {len(kinds)} kinds in {len(PLACES)} places, {len(leaks)} found afterwards"]
    lines += [f"  {number:2} {kind}" for number, kind in enumerate(kinds, start=1)]
    lines.append(f"{'':28}" + " ".join(f"{number:2}" for number in range(1, len(kinds) + 1)))
    for place in PLACES:
        marks = ["LEAK" if (place, kind) in bad else "ok" if (place, kind) in there else " ·" for kind in kinds]
        lines.append(f"{place:28}" + " ".join(marks))
    print("\n" + "\n".join(lines))  # noqa: T201 - that is what it is for


def test_the_table_is_whole() -> None:
    assert {cell.kind for cell in CELLS} == {*(one.value for one in Detector), f"rule {RULE}"}
    assert {cell.place for cell in CELLS} == set(PLACES)
    assert {cell.place for cell in CELLS if cell.kind == "secret-name"} == set(WITH_NAMES)


async def test_no_secret_reaches_the_store(tmp_path: Path) -> None:
    tables, rows, counted = await _stored(_settings(tmp_path), CELLS)
    assert len(rows) == len(CELLS), "no span is lost"
    leaks = {cell for cell in CELLS if _has(rows[cell.trace_id], cell.secret)}
    _print(leaks, "Stored")
    assert leaks == set()
    # Every column of every table, and the files: transcripts, runs and results are made of what is stored (reliability S6).
    files = _files(tmp_path)
    secrets = {cell.secret for cell in CELLS}
    assert [secret for secret in secrets if _has(tables, secret)] == []
    assert [secret for secret in secrets if secret.encode() in files] == []
    kept = [cell for cell in CELLS if cell.place not in NOT_KEPT]
    assert [cell for cell in kept if "[redacted:" not in rows[cell.trace_id]] == []
    flagged = {cell for cell in CELLS if "tracegrade.redacted" in rows[cell.trace_id]}
    assert flagged == {cell for cell in kept if cell.place not in SAID}
    by_kind = Counter({name.rpartition(" ")[2]: int(count) for name, count in counted.items() if "redactions" in name})
    assert set(by_kind) == {*(one.value for one in Detector), RULE}


async def test_without_redaction_the_same_search_finds_them(tmp_path: Path) -> None:
    """The search can see: in each place that is stored, and in the files."""
    tables, rows, counted = await _stored(_settings(tmp_path, off=True), CELLS)
    found = {cell.place for cell in CELLS if _has(rows[cell.trace_id], cell.secret)}
    assert set(PLACES) - found == {*NOT_KEPT, "escaped JSON"}  # escapes hide it from a search, not from a reader
    files = _files(tmp_path)
    assert sum(cell.secret.encode() in files for cell in CELLS) > len(CELLS) // 4
    assert "[redacted:" not in tables
    assert not any("redactions" in name for name in counted)


@pytest.mark.parametrize("off", [False, True])
async def test_a_judge_is_asked_about_redacted_text(off: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model at somebody else's reads what was stored (reliability S6)."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.text())
        return web.Response(status=400)

    application = web.Application()
    application.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    settings = _settings(tmp_path, off=off)
    judge = settings.judge.model_copy(update={"base_url": f"http://127.0.0.1:{runner.addresses[0][1]}/v1", "model": "m"})
    some = [cell for cell in CELLS if cell.place == "chat message"][::10]
    try:
        await _stored(settings.model_copy(update={"judge": judge}), some)
    finally:
        await runner.cleanup()
    prompts = "\n".join(asked)
    assert len(asked) >= len(some)
    assert [cell for cell in some if _has(prompts, cell.secret) != off] == []
    assert ("[redacted:" in prompts) != off


class Sent:
    """Brokers that keep what they are sent."""

    def __init__(self) -> None:
        self.records: list[Outgoing] = []

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        self.records += outgoing


async def _published(some: Sequence[Cell], **redaction: Any) -> list[Outgoing]:
    sent = Sent()
    hides = redactor(_settings(Path(), **redaction).redaction)
    facts = FactPublisher(KafkaPublisher(sent, {topology.TRACES.name: 4}))
    receiver = Receiver({PASSED_ON: SpanBatcher(sent, 4), LOGS: facts}, lambda: NOW, Keys({}, "default"), redactor=hides)
    for way, message in _requests(some):
        reply = await receiver.export(LOGS if _of_logs(message) else PASSED_ON, *_written(way, message), "default")
        assert reply.rejected == 0
    said = [cell.feedback() for cell in some if cell.place in SAID]
    if said:
        await FeedbackDesk(facts.store, None, lambda: NOW, hides).take(json.dumps(said).encode(), "default")
    return sent.records


Fact: TypeAlias = Span | LogRecord | Feedback


def _read(records: Iterable[Outgoing]) -> dict[str, Fact]:
    found: list[Fact] = [
        span for one in records for span in decode(Incoming(one.topic, one.partition, 0, NOW, one.value, one.headers)).records
    ]
    return {span.trace_id: span for span in found}


async def test_no_secret_reaches_a_broker() -> None:
    records = await _published(CELLS)
    spans = _read(records)
    assert len(spans) == len(CELLS)
    value = b"".join(record.value for record in records)
    leaks = {cell for cell in CELLS if any(form.encode() in value for form in _forms(cell.secret))}
    _print(leaks, "Published")
    assert leaks == set()


async def test_without_redaction_the_records_have_them() -> None:
    value = b"".join(record.value for record in await _published(CELLS, off=True))
    found = {cell.place for cell in CELLS if any(form.encode() in value for form in _forms(cell.secret))}
    assert found == set(PLACES)  # one secret is in many places


async def test_both_runtimes_and_both_encodings_store_the_same_spans() -> None:
    """What is read back from a record is the span that was published, with its hash; it is not redacted again."""
    some = [
        cell
        for cell in CELLS
        if cell.place in ("attribute value", "bytes", "resource key", "event name", "JSON in JSON", "map key")
    ]
    stores: list[dict[str, Fact]] = []
    for encoding in Encoding:
        kept: list[Span] = []

        class Kept:
            async def store(self, spans: Sequence[Span], kept: list[Span] = kept) -> None:
                kept += spans

        receiver = Receiver({TRACES: Kept()}, lambda: NOW, Keys({}, "default"), redactor=redactor(_settings(Path()).redaction))
        message = _together(some)
        await receiver.export(
            TRACES, as_json(message) if encoding is Encoding.JSON else message.SerializeToString(), encoding, "default"
        )
        stores.append({span.trace_id: span for span in kept})
    published = _read(await _published(some))
    assert stores[0] == stores[1] == published
    assert all(isinstance(span, Span) and span.content_hash for span in published.values())


async def test_what_is_no_secret_is_stored_as_it_was_sent() -> None:
    some = [
        Cell(place, "none", "note", text, text)
        for text in HARMLESS
        for place in ("attribute value", "JSON", "bytes", "status message")
    ]
    assert _read(await _published(some)) == _read(await _published(some, off=True))


@pytest.mark.parametrize("detector", Detector)
async def test_each_detector_can_be_switched_off_alone(detector: Detector) -> None:
    some = [cell for cell in CELLS if cell.place == "attribute value"]
    spans = _read(await _published(some, detectors={detector.value: False}))
    off = [cell for cell in some if cell.kind == detector]
    others = [cell for cell in some if cell.kind != detector]
    assert not any(cell.secret in repr(spans[cell.trace_id]) for cell in others)
    assert not any(f"[redacted:{detector}]" in repr(span) for span in spans.values())
    assert off
