"""Promises 1, 2 and 3 with a real process and a real ``kill -9``: nothing accepted is lost, nothing is doubled, every due alert arrives.

The ledger is what was acknowledged. It is an obligation; what was in flight at the kill is sent again, as an exporter does.
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from pipeline.apps import served
from pipeline.apps.demo.receiver import Pager
from pipeline.config.store import StoreSettings
from pipeline.judges.scripted import MODEL, ScriptedJudge
from pipeline.model.ids import digest, run_id
from pipeline.model.run import Cohort
from pipeline.model.time import SECOND
from pipeline.model.window import Notification, Transition
from pipeline.runtime.clock import SystemClock
from sinks.clickhouse.store import Store

SEED = 20261129
GATE = "no-deletions"

CONFIG = """
project: kill
store: {{path: {data}}}
receiver: {{http_port: 0, grpc_port: 0}}
assemble: {{quiet_period: 300ms, parent_unseen: 1s, idle_timeout: 3s}}
judge: {{base_url: "{judge}", model: {model}}}
agents:
  default:
    checks:
      policies: [{{name: no_deletion, forbid: {{tool: delete_customer}}}}]
gates: [{{name: {gate}, kind: hard, dimensions: [no_deletion], quiet: 1h}}]
alerts: [{{name: pager, webhook: "{pager}"}}]
"""


def an_agent_run(agent: str, name: str, *, fails: bool) -> tuple[str, dict[str, Any]]:
    """A trace of three spans that ends now, as one OTLP/JSON request; a failing one deletes a customer."""
    now = SystemClock().now()
    trace_id = digest(16, "kill", agent, name)
    text = [{"role": "assistant", "parts": [{"type": "text", "content": f"Order {name} was refunded: 42.50 USD."}]}]
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"Please refund order {name}."}]}]
    used = "delete_customer" if fails else "issue_refund"
    spans = [
        _span(
            trace_id,
            2,
            1,
            now,
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": used, "gen_ai.tool.call.result": "42.50 USD"},
        ),
        _span(
            trace_id,
            3,
            1,
            now,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps(text),
            },
        ),
        _span(trace_id, 1, None, now, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}),
    ]
    return trace_id, {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _span(trace_id: str, index: int, parent: int | None, end: int, attributes: dict[str, str]) -> dict[str, Any]:
    return {
        "traceId": trace_id,
        "spanId": f"{index:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": attributes["gen_ai.operation.name"],
        "startTimeUnixNano": str(end - SECOND),
        "endTimeUnixNano": str(end),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }


class Ledger:
    """What was sent, and what of it was acknowledged."""

    def __init__(self) -> None:
        self.sent: dict[str, dict[str, Any]] = {}
        self.acknowledged: set[str] = set()
        self.agents: dict[str, str] = {}

    def note(self, agent: str, trace_id: str, request: dict[str, Any]) -> None:
        """Note a trace before it is sent."""
        self.sent[trace_id] = request
        self.agents[trace_id] = agent

    async def send(self, session: aiohttp.ClientSession, url: str, trace_id: str) -> None:
        """Send a trace; only a 200 is an acknowledgement."""
        async with session.post(f"{url}/v1/traces", json=self.sent[trace_id]) as answer:
            assert answer.status == 200, await answer.text()
        self.acknowledged.add(trace_id)


@asynccontextmanager
async def an_up(config: Path, data: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A running ``tracegrade up`` and its address; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pipeline.apps", "--log-level", "warning", "up", "-c", str(config)
    )
    try:
        async with asyncio.timeout(60):
            while (url := await asyncio.to_thread(served.address, data)) is None:
                assert process.returncode is None, "up ended by itself"
                await asyncio.sleep(0.05)
        yield process, url
    finally:
        if process.returncode is None:
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()


async def a_round(number: int, chance: random.Random, config: Path, data: Path, ledger: Ledger) -> float:
    """Resend what is unknown, have one alert made due, then load, and kill at a random moment. Returns the moment."""
    agent = f"agent-{number}"
    async with an_up(config, data) as (process, url), aiohttp.ClientSession() as session:
        for trace_id in sorted(ledger.sent.keys() - ledger.acknowledged):
            await ledger.send(session, url, trace_id)
        failing, request = an_agent_run(agent, "failing", fails=True)
        ledger.note(agent, failing, request)
        await ledger.send(session, url, failing)
        moment = chance.uniform(0.0, 2.5)
        killer = asyncio.create_task(_kill_after(process.pid, moment))
        try:
            for index in range(10_000):
                trace_id, request = an_agent_run(agent, f"{index}", fails=False)
                ledger.note(agent, trace_id, request)
                await ledger.send(session, url, trace_id)
                await asyncio.sleep(0.01)
        except aiohttp.ClientError:
            await killer
        await process.wait()
        assert process.returncode == -signal.SIGKILL
    return moment


async def _kill_after(pid: int, seconds: float) -> None:
    await asyncio.sleep(seconds)
    os.kill(pid, signal.SIGKILL)


async def drained(session: aiohttp.ClientSession, url: str, runs: int) -> dict[str, Any]:
    """The accounting once every run is there and decided."""
    async with asyncio.timeout(120):
        while True:
            async with session.get(f"{url}/api/accounting") as answer:
                accounting: dict[str, Any] = await answer.json()
            if accounting["received"] >= runs and not accounting["pending"] and not accounting["open_traces"]:
                return accounting
            await asyncio.sleep(0.2)


async def all_told(pager: Pager, keys: set[str]) -> None:
    """Wait until every key that is due arrived."""
    async with asyncio.timeout(60):
        while not keys <= pager.told.keys():  # noqa: ASYNC110 - another process tells
            await asyncio.sleep(0.1)


def expected_keys(rounds: int) -> set[str]:
    """One firing a cohort, told once: computed from the design's formula, not read from the product's rows."""
    keys = set()
    for number in range(rounds):
        trip_id = digest(16, "kill", GATE, Cohort(agent=f"agent-{number}").id, "", "0")
        keys.add(Notification("kill", trip_id, Transition.FIRED, "pager", "", 0).idempotency_key)
    return keys


@pytest.mark.kill
@pytest.mark.timeout(540)
@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.real)])
async def test_kills_lose_nothing_and_double_nothing(rounds: int, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    ledger = Ledger()
    data, config = tmp_path / "data", tmp_path / "tracegrade.yaml"
    async with Pager() as pager, ScriptedJudge() as judge:
        config.write_text(CONFIG.format(data=data, judge=judge.url, model=MODEL, gate=GATE, pager=pager.url))
        moments = [await a_round(number, chance, config, data, ledger) for number in range(rounds)]
        async with an_up(config, data) as (process, url), aiohttp.ClientSession() as session:
            for trace_id in sorted(ledger.sent.keys() - ledger.acknowledged):
                await ledger.send(session, url, trace_id)
            accounting = await drained(session, url, len(ledger.sent))
            await all_told(pager, expected_keys(rounds))
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    await check_rows(data, ledger, accounting, rounds)
    assert set(pager.told) == expected_keys(rounds)
    print(  # noqa: T201 - what a reader of a run wants to see
        f"seed {SEED}: killed after {[round(moment, 2) for moment in moments]} s; {len(ledger.acknowledged)} traces acknowledged, "
        f"{accounting['received']} runs, {len(pager.told)} alerts in {pager.calls} deliveries"
    )


async def check_rows(data: Path, ledger: Ledger, accounting: dict[str, Any], rounds: int) -> None:
    """Every acknowledged span is stored, each run is there once, and the accounting adds up."""
    store = Store.open(StoreSettings(path=data))
    try:
        stored = await store.load([("kill", trace_id) for trace_id in ledger.sent])
        for trace_id in ledger.acknowledged:
            spans = stored["kill", trace_id].spans
            assert sorted(span.span_id for span in spans) == [f"{index:016x}" for index in (1, 2, 3)]
        board = await store.scoreboard("kill", 10_000)
        assert sorted(row.run_id for row in board) == sorted(run_id("kill", trace_id, f"{1:016x}") for trace_id in ledger.sent)
        assert not await store.unfinished()
        assert not await store.misplaced()
        assert accounting == msgspec.to_builtins(await store.accounting("kill"))
        parts = accounting["judged"] + accounting["unsampled"] + accounting["pending"] + sum(accounting["unresolved"].values())
        assert accounting["received"] == parts == len(ledger.sent)
        await check_windows(store, len(ledger.sent), rounds)
    finally:
        await store.close()


async def check_windows(store: Store, runs: int, rounds: int) -> None:
    """The minutes of every cohort hold each run once, and none differs from its results."""
    assert not await store.stale_minutes()
    counted = 0
    for number in range(rounds):
        minutes = await store.load_minutes("kill", Cohort(agent=f"agent-{number}").id, 0, SystemClock().now())
        counted += sum(sums.n for (series, _), sums in minutes.items() if series.dimension == "no_deletion")
    assert counted == runs
