"""Kill -9 while the judge is being asked: what was answered is not bought again; what was in flight is, at most once more, and counted."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from faults.ledger import PROJECT, Ledger
from faults.load import WHOLE, Sender
from ruamel.yaml import YAML
from serving import an_up, get

from pipeline.config.store import StoreSettings
from pipeline.judges.scripted import MODEL, Asked, Canned, ScriptedJudge
from sinks.clickhouse.store import Store

CONCURRENCY = 4
RUNS = 4
CALLS = 9
"""Of one run under the rubric support: five dimensions, of which two have three votes."""
PRICE = {"input_per_million": 0.75, "output_per_million": 2.55}


def question(asked: Asked) -> tuple[str, str, int | None]:
    """Return what makes a call the same call: which order a run is about, which dimension, which seed."""
    assert asked.seen is not None
    return asked.seen.request, asked.seen.dimension, asked.body.get("seed")


async def until(judge: ScriptedJudge, calls: int) -> None:
    async with asyncio.timeout(120):
        while len(judge.asked) < calls:  # noqa: ASYNC110 - another process asks
            await asyncio.sleep(0.01)


async def judged(url: str) -> None:
    async with asyncio.timeout(240):
        while True:
            accounting = (await asyncio.to_thread(get, f"{url}/api/accounting")).json
            if accounting["received"] == RUNS and not accounting["pending"] and not accounting["open_traces"]:
                return
            await asyncio.sleep(0.1)


@pytest.mark.kill
@pytest.mark.slow
async def test_what_was_in_flight_at_a_kill_is_all_that_is_bought_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, ledger = tmp_path / "tracegrade.yaml", Ledger()
    async with ScriptedJudge(lambda _: Canned(delay_s=0.3)) as judge:
        written = {
            "project": PROJECT,
            "store": {"path": str(tmp_path / "data")},
            "receiver": {"http_port": 0, "grpc_port": 0},
            "assemble": {"quiet_period": "300ms", "parent_unseen": "1s", "idle_timeout": "3s"},
            "judge": {
                "base_url": judge.url,
                "model": MODEL,
                "concurrency": CONCURRENCY,
                "price": PRICE,
                "budget": {"per_day": 1},
            },
        }
        with config.open("w") as file:
            YAML().dump(written, file)
        with an_up(config, tmp_path / "data") as up:
            sender = Sender(up.http, ledger)
            for _ in range(RUNS):
                await asyncio.to_thread(sender.send, ledger.trace("agent"), *WHOLE)
            await until(judge, 2 * CONCURRENCY + 1)
            up.process.kill()
            await asyncio.to_thread(up.process.wait)
        with an_up(config, tmp_path / "data") as up:
            await judged(up.http)
            up.process.terminate()
            await asyncio.to_thread(up.process.wait)
        asked = Counter(map(question, judge.asked))
    twice = sum(count - 1 for count in asked.values())
    store = await asyncio.to_thread(Store.open, StoreSettings(path=tmp_path / "data"))
    try:
        costs = await store.judge.costs(PROJECT, 100)
    finally:
        await store.close()
    lost, unsure = sum(day.lost for day in costs), sum(day.unsure_usd for day in costs)
    with capsys.disabled():
        print(f"\n{len(judge.asked)} calls of {len(asked)} questions; {twice} bought twice, {lost} counted as lost")  # noqa: T201
    assert len(asked) == RUNS * CALLS
    assert 0 < twice <= CONCURRENCY, "only what was in flight"
    assert max(asked.values()) <= 2
    assert lost == twice
    assert sum(day.calls for day in costs) == RUNS * CALLS
    assert unsure > 0, "what was lost is charged to the budget with the most that it can have cost"
