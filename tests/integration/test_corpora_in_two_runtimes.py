"""Every recording of a live framework, spans and log records, through both runtimes, in different orders: equal rows, and the runs that
the stages make of the files by themselves.
"""

import asyncio
import json
import urllib.request
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from clickhouse_front import Front
from cluster import ended_well
from kafka_broker import Broker
from recordings import LOGS, PROJECT, arrived, recordings, runs_of
from two_runtimes import ARRIVAL, MAY_DIFFER, comparable, differences
from two_runtimes_running import NAMES, Runtime, embedded, over_kafka, until

from pipeline.model.log_record import LogRecord
from pipeline.model.run import BACKFILL

pytestmark = [pytest.mark.kafka, pytest.mark.real]

TABLES: Final = ("spans", "traces", "runs", "places", "results")
LOG_RECORDS: Final = {
    "received_at": ARRIVAL,
    "earliness": "is received_at, turned around",
    "position": "in the request, which differs",
}
QUICK: Final = {"assemble": {"quiet_period": "3s", "idle_timeout": "20s"}, "gates": []}
Sent = tuple[str, bytes]
"""A path of the receiver, and a body."""


def bodies() -> list[Sent]:
    """What was sent once, line by line. Runs of history keep their own times in both runtimes."""
    return [*_lines("resourceSpans", "/v1/traces"), *_lines("resourceLogs", "/v1/logs")]


def _lines(part: str, path: str) -> Iterable[Sent]:
    for file in recordings("live"):
        source = file if part == "resourceSpans" else file.with_name(file.stem + LOGS)
        for line in source.read_bytes().splitlines() if source.exists() else ():
            yield path, _as_backfill(line, part)


def _as_backfill(line: bytes, part: str) -> bytes:
    document = json.loads(line)
    for one in document[part]:
        attributes = one.setdefault("resource", {}).setdefault("attributes", [])
        attributes[:] = [each for each in attributes if each["key"] != "deployment.environment.name"]
        attributes.append({"key": "deployment.environment.name", "value": {"stringValue": BACKFILL}})
    return json.dumps(document).encode()


def post(sent: Iterable[Sent], endpoint: str) -> None:
    for path, body in sent:
        request = urllib.request.Request(endpoint + path, body, {"Content-Type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            assert json.loads(answer.read()) == {}, path


def all_is_graded(spans: int, log_records: int) -> Callable[[Runtime], Awaitable[bool]]:
    async def holds(runtime: Runtime) -> bool:
        (counted,) = await runtime.query(
            "SELECT (SELECT count() FROM spans FINAL) AS spans, (SELECT count() FROM log_records FINAL) AS log_records"
        )
        if counted != {"spans": spans, "log_records": log_records} or not await runtime.idle():
            return False
        return not (await runtime.store.accounting(PROJECT)).open_traces

    return holds


def differing(table: str, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[str]:
    if table != "log_records":
        return differences(comparable(table, one), comparable(table, other), NAMES)
    kept = [[{key: value for key, value in row.items() if key not in LOG_RECORDS} for row in rows] for rows in (one, other)]
    return differences(comparable("golden_members", kept[0]), comparable("golden_members", kept[1]), NAMES)


@pytest.mark.timeout(600)
async def test_recordings_of_live_frameworks_give_equal_rows_in_both_runtimes(
    empty_broker: Broker, front: Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = [one for path in recordings("live") for one in arrived(path)]
    kept = {(one.trace_id, one.span_id, one.content_hash) for one in facts if isinstance(one, LogRecord)}
    spans = {(one.trace_id, one.span_id) for one in facts if not isinstance(one, LogRecord)}
    sent = bodies()
    async with AsyncExitStack() as stack:
        kafka = await stack.enter_async_context(over_kafka(PROJECT, lambda _: QUICK, tmp_path, empty_broker, front))
        alone = await stack.enter_async_context(embedded(PROJECT, lambda _: QUICK, tmp_path))
        both = alone, kafka.runtime
        await asyncio.gather(
            asyncio.to_thread(post, sent, alone.endpoints[0]),
            asyncio.to_thread(post, list(reversed(sent)), kafka.runtime.endpoints[0]),
        )
        await asyncio.gather(*(until("graded", PROJECT, each, all_is_graded(len(spans), len(kept))) for each in both))
        tables = [
            {table: await each.query(f"SELECT * FROM {table} FINAL") for table in (*TABLES, "log_records")}  # noqa: S608
            for each in both
        ]
        ended_well([*kafka.workers, *kafka.collectors])
    with capsys.disabled():
        print(f"\n{'rows':16}{NAMES[0]:>10}{NAMES[1]:>10}")  # noqa: T201
        for table in tables[0]:
            print(f"{table:16}{len(tables[0][table]):>10}{len(tables[1][table]):>10}")  # noqa: T201
    assert min(len(rows) for found in tables for rows in found.values()) > 0
    different = {table: differing(table, tables[0][table], tables[1][table]) for table in tables[0]}
    assert not any(different.values()), json.dumps({table: rows[:10] for table, rows in different.items() if rows}, indent=1)
    assert MAY_DIFFER.keys() >= set(TABLES)
    live = {row["run_id"] for row in tables[0]["runs"] if row["state"] == "live"}
    assert live == {run.run_id for run in runs_of(facts)}
