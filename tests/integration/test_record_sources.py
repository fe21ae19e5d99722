"""The agent says "refunded", the payments service says otherwise: over real HTTP and SQL, on the embedded engine, through the whole pipeline."""

import asyncio
import re
import sqlite3
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port
from serving import an_up, eventually, get, scored, tracegrade

from pipeline.apps.compose import Product
from pipeline.apps.verify_commands import verifier_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.stages.verify import Cause
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.store import Store

PAGE = (Path(__file__).parents[2] / "docs" / "records.md").read_text("utf-8")
FILES = dict(re.findall(r"^`([\w.]+)`\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
TOKEN = "hunter2-in-the-environment"
CHECK = {
    "source": "payments",
    "each": "issue_refund",
    "key": {"order": "arguments.order_id"},
    "identity": {"order_id": "arguments.order_id"},
    "amount": {"field": "amount", "equals": "arguments.amount"},
    "state": {"state": {"in": ["committed"]}},
}
EXPECTED = {
    "there": ("pass", ""),
    "removed": ("fail", "payments has no records of order_id removed, and 1 call of issue_refund succeeded"),
    "gone": ("fail", "payments has no records of order_id gone, and 1 call of issue_refund succeeded"),
    "moved": ("fail", "payments has no records of order_id moved, and 1 call of issue_refund succeeded"),
    "doubled": ("fail", "payments has 2 records of order_id doubled, and 1 call of issue_refund succeeded"),
    "other-amount": ("fail", "payments says amount 12.49, the call 12.5"),
    "pending": ("fail", "payments says state pending"),
    "down": ("insufficient_evidence", "record_not_read: payments order=down: status 503; given up after 4 s"),
    "slow": ("insufficient_evidence", "record_not_read: payments order=slow: no answer within 2 s; given up after 4 s"),
    "malformed": ("insufficient_evidence", "record_not_read: payments order=malformed: the answer is not JSON"),
    "refused": ("insufficient_evidence", "record_not_read: payments order=refused: status 403"),
    "flaky": ("pass", ""),
}
"""What is said of each order's refund."""


def row(order: str, amount: str = "12.50", state: str = "committed") -> dict[str, str]:
    return {"order_id": order, "amount": amount, "state": state}


SAID: dict[str, Any] = {
    "there": [row("there")],
    "flaky": [row("flaky")],
    "removed": [],
    "moved": [row("B-7")],
    "doubled": [row("doubled"), row("doubled")],
    "other-amount": [row("other-amount", "12.49")],
    "pending": [row("pending", state="pending")],
}
STATUS = {"gone": 404, "down": 503, "refused": 403}


class Payments:
    """A payments service that does its worst, by order."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer about one order."""
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        order = request.match_info["order"]
        self.asked[order] += 1
        if order == "slow":
            await asyncio.sleep(30)
        if order == "malformed":
            return web.Response(text="<html>The refund is committed.</html>")
        if order in STATUS or (order == "flaky" and self.asked[order] == 1):
            return web.Response(status=STATUS.get(order, 503))
        return web.json_response(SAID[order])

    @asynccontextmanager
    async def served(self) -> AsyncIterator[int]:
        """Listen, and say where."""
        application = web.Application()
        application.router.add_get("/refunds/{order}", self.answer)
        async with TestServer(application) as server:
            assert server.port is not None
            yield server.port


def settings(folder: Path, port: int, sql: dict[str, Any] | None = None) -> TracegradeSettings:
    http = {
        "url": f"http://127.0.0.1:{port}/refunds/{{order}}",
        "headers": {"Authorization": f"Bearer {TOKEN}"},
        "networks": ["127.0.0.0/8"],
    }
    return TracegradeSettings.model_validate(
        {
            "store": {"path": folder / "data"},
            "receiver": {"http_port": 0, "grpc_port": 0},
            "assemble": {"quiet_period": "200ms"},
            "records": {
                "payments": {
                    **({"http": http} if sql is None else {"sql": sql}),
                    "timeout": "2s",
                    "deadline": "4s",
                    "concurrency": 20,
                }
            },
            "agents": {"default": {"rubric": None, "checks": {"records": [{"name": "on_the_account", **CHECK}]}}},
        }
    )


def the_agent(folder: Path) -> ModuleType:
    """The agent of the page."""
    (folder / "agent.py").write_text(FILES["agent.py"])
    spec = spec_from_file_location("agent_of_the_page", folder / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def refunded(product: Product, folder: Path, orders: list[str]) -> dict[str, tuple[Any, Any]]:
    """Have the agent refund orders; return what came of each run when all are graded: (run id, result)."""
    await asyncio.to_thread(the_agent(folder).main, orders, f"{product.served.http_url}/v1/traces")
    async with asyncio.timeout(60):
        while len(lines := await product.store.scoreboard("default", 100)) < len(orders):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    found: dict[str, tuple[Any, Any]] = {}
    for line in lines:
        detail = await product.store.run_detail("default", line.run_id)
        (result,) = [one for one in detail.results if one.dimension == "on_the_account"]
        found[detail.tool_calls[0].arguments["order_id"]] = (line.run_id, result)
        assert detail.answer == f"I refunded 12.5 for order {detail.tool_calls[0].arguments['order_id']}."
    return found


def rows_of(database: Database, table: str) -> list[Row]:
    """All rows of a table."""
    return database.query(f"SELECT * FROM {table}")  # noqa: S608 - one of ours


async def everything(store: Store) -> str:
    """All that is stored."""
    tables = ["spans", "runs", "results", "record_reads", "contracts", "dead_letters", "places", "traces"]
    rows = [await store._read(rows_of, table) for table in tables]
    assert all(rows[:5])
    return repr(rows)


async def test_what_the_service_says_decides_and_what_it_does_not_say_is_not_made_up(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    payments = Payments()
    async with payments.served() as port:
        made = settings(tmp_path, port)
        store = await asyncio.to_thread(Store.open, made.store)
        try:
            async with Product(made, store) as product:
                found = await refunded(product, tmp_path, list(EXPECTED))
                said = {order: (str(result.outcome), result.reason) for order, (_, result) in found.items()}
                assert said == EXPECTED
                there = found["there"][1]
                assert re.fullmatch(
                    r"payments order=there, read 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ: "
                    r'\[\{"amount":"12.50","order_id":"there","state":"committed"\}\]',
                    there.evidence,
                ), there.evidence
                assert "not read: status 403" in found["refused"][1].evidence
                assert TOKEN not in await everything(store)
            asked = payments.asked.copy()
            verifications = await verifier_of(made, store).latest("default", 100)
            assert [one for one in verifications if not one.equal] == []
            assert len(verifications) == len(EXPECTED)
        finally:
            await store.close()
    assert all(count == 1 for order, count in asked.items() if order not in ("down", "slow", "flaky"))
    assert asked["flaky"] == 2
    assert TOKEN not in "".join(capfd.readouterr())


async def test_a_restart_and_verify_go_by_what_is_stored_and_an_altered_answer_is_named(tmp_path: Path) -> None:
    payments = Payments()
    async with payments.served() as port:
        made = settings(tmp_path, port)
        store = await asyncio.to_thread(Store.open, made.store)
        async with Product(made, store) as product:
            found = await refunded(product, tmp_path, ["there", "removed"])
        await store.close()
    asked = payments.asked.copy()
    store = await asyncio.to_thread(Store.open, made.store)  # the service is gone, and what was read is not
    try:
        async with Product(made, store) as product:
            await product.pipeline.settle()
            assert not product.pipeline.records.busy
        verifier = verifier_of(made, store)
        assert all(one.equal for one in await verifier.latest("default", 10))
        run_id, _ = found["there"]

        async def changed(change: str) -> list[tuple[Cause, str]]:
            await store._write(
                lambda database: database.command(
                    f"ALTER TABLE record_reads {change} WHERE run_id = '{run_id}' SETTINGS mutations_sync = 1"
                )
            )
            return [(one.cause, one.what) for one in (await verifier.one("default", run_id)).differences]

        named = "evidence of payments order=there"
        differences = await changed("UPDATE body = replace(body, '12.50', '12.51')")
        assert differences[0] == (Cause.INPUT, named)
        assert (Cause.SCORE, "on_the_account: outcome") in differences
        assert await changed("UPDATE body = replace(body, '12.51', '12.50')") == []
        assert (await changed("UPDATE read_at = read_at + INTERVAL 1 HOUR"))[0] == (Cause.INPUT, named)
        assert (await changed("DELETE"))[0] == (Cause.INPUT, named)
        assert (await verifier.one("default", found["removed"][0])).equal
        other = await verifier_of(settings(tmp_path, port + 1), store).one("default", found["removed"][0])
        assert {one.cause for one in other.differences} == {Cause.CONTRACT}, "another source is another contract"
        assert "on_the_account: check_definition.source.url" in {one.what for one in other.differences}
    finally:
        await store.close()
    assert payments.asked == asked


async def test_a_database_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE refunds (order_id TEXT, amount TEXT, state TEXT)")
        rows = [one for order in ("there", "moved", "doubled", "other-amount", "pending") for one in SAID[order]]
        connection.executemany("INSERT INTO refunds VALUES (:order_id, :amount, :state)", rows)
    connection.close()
    query = "SELECT order_id, amount, state FROM refunds WHERE order_id = :order"
    made = settings(tmp_path, 1, {"url": f"sqlite:///{path}", "query": query})
    orders = ["there", "removed", "moved", "doubled", "other-amount", "pending"]
    store = await asyncio.to_thread(Store.open, made.store)
    try:
        async with Product(made, store) as product:
            found = await refunded(product, tmp_path, orders)
            assert {order: (str(one.outcome), one.reason) for order, (_, one) in found.items()} == {
                order: EXPECTED[order] for order in orders
            }
        assert all(one.equal for one in await verifier_of(made, store).latest("default", 10))
    finally:
        await store.close()


def test_the_example_of_the_page_comes_to_what_the_page_says(tmp_path: Path) -> None:
    assert FILES.keys() == {"payments.py", "tracegrade.yaml", "agent.py", "our_ledger.py"}
    port, ours = unused_port(), f"store: {{path: {tmp_path / 'data'}}}\nreceiver: {{http_port: 0, grpc_port: 0}}\n"
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.replace("8765", str(port)))
    config = tmp_path / "tracegrade.yaml"
    config.write_text(ours + "assemble: {quiet_period: 300ms}\n" + config.read_text())
    table = dict(re.findall(r"^\| (A-\d) \| `(\w+)` \|", PAGE, re.MULTILINE))
    reasons = dict(re.findall(r"^\| (A-\d) \| `\w+` \| (.*?) ?\|$", PAGE, re.MULTILINE))
    with subprocess.Popen([sys.executable, str(tmp_path / "payments.py")], stderr=subprocess.DEVNULL) as service:
        try:
            eventually(lambda: _answers(f"http://127.0.0.1:{port}/refunds?order=A-1"))
            with an_up(config, tmp_path / "data") as up:
                the_agent(tmp_path).main(sorted(table), f"{up.http}/v1/traces")
                board = scored(up, len(table))
                told = {}
                for run in board["runs"]:
                    shown = get(f"{up.http}/api/runs/{run['run_id']}").json
                    (result,) = [one for one in shown["results"] if one["dimension"] == "refund_is_on_the_account"]
                    told[shown["tool_calls"][0]["arguments"]["order_id"]] = (result["outcome"], result["reason"])
                printed = tracegrade("run", board["runs"][0]["run_id"], "-c", config, environment={"COLUMNS": "200"}).out
                assert "read 20" in printed
                assert "payments order=A-" in printed
        finally:
            service.kill()
    assert told == {order: (table[order], reasons[order]) for order in table}


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - the service of the page
            return True
    except OSError:
        return False


def test_the_source_of_the_page_keeps_its_word(tmp_path: Path) -> None:
    (tmp_path / "our_ledger.py").write_text(FILES["our_ledger.py"])
    spec = spec_from_file_location("ledger_of_the_page", tmp_path / "our_ledger.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    given = module.LEDGER.settings.model_validate({"token": "x"})
    assert asyncio.run(module.LEDGER.read({"order": "A-1"}, given)) == [{"order_id": "A-1", "amount": "12.50"}]
    assert asyncio.run(module.LEDGER.read({"order": "B-7"}, given)) is None
    assert msgspec.json.encode(module.LEDGER.parameters) == b'["order"]'
