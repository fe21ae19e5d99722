"""One scenario, two runtimes: recorded spans through the embedded product, and through two collectors, Kafka, two workers and a
ClickHouse server over HTTP. The spans are the same and the order is not; what is stored is equal, and is what a person expected.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import two_runtimes_running as running
from clickhouse_front import Front
from cluster import ended_well
from kafka_broker import Broker
from two_runtimes import MAY_DIFFER, Deliveries, Rows, Scenario, Schedule, comparable, differences, scenario
from two_runtimes_expected import is_as_expected
from two_runtimes_records import Services, reached
from two_runtimes_running import NAMES, STAGES, Runtime, Workers, embedded, over_kafka

from pipeline.judges.scripted import MODEL, ScriptedJudge

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CALIBRATION: Final = Path(__file__).parents[2] / "pipeline" / "apps" / "demo" / "calibration.yaml"
PROJECT: Final = scenario().project


def configuration(played: Scenario, schedule: Schedule, judge: str, services: str, pager: str) -> dict[str, Any]:
    """What both runtimes are configured with, apart from where their store is."""
    written = played.configuration
    return {
        **written,
        "records": reached(written["records"], services),
        "assemble": {**written["assemble"], "idle_timeout": schedule.settings["idle_timeout"]},
        "judge": {"base_url": judge, "model": MODEL, "calibration": str(CALIBRATION), "deadline": schedule.settings["deadline"]},
        "alerts": [{"name": "pager", "webhook": pager}],
    }


async def until(what: str, runtime: Runtime, holds: Callable[[Runtime], Awaitable[object]]) -> None:
    """Wait until something holds for the scenario's project."""
    await running.until(what, PROJECT, runtime, holds)


def stored(spans: int, feedback: int) -> Callable[[Runtime], Awaitable[bool]]:
    """Everything that was sent is stored and folded, and whatever was asked of the judge is answered."""

    async def holds(runtime: Runtime) -> bool:
        (counted,) = await runtime.query(
            "SELECT (SELECT count() FROM spans FINAL) AS spans, (SELECT count() FROM feedback FINAL) AS feedback"
        )
        if counted != {"spans": spans, "feedback": feedback} or not await runtime.idle():
            return False
        accounting = await runtime.store.accounting(PROJECT)
        return not accounting.open_traces and not accounting.pending

    return holds


def tripped(trips: int) -> Callable[[Runtime], Awaitable[bool]]:
    async def holds(runtime: Runtime) -> bool:
        return len(await runtime.store.trips()) >= trips

    return holds


async def settled(runtime: Runtime) -> bool:
    """Minutes are written when all that follows from them is."""
    unconfirmed = await runtime.store.unconfirmed_notifications()
    return not await runtime.store.stale_minutes(0) and not unconfirmed and await runtime.idle()


async def play(played: Scenario, schedule: Schedule, one: Runtime, other: Runtime) -> None:
    """Send everything to both, each in its own order, and wait until no gate has anything more to say."""
    both = one, other
    minute = schedule.minute(time.time_ns())
    deliveries = Deliveries.of(played, minute)
    feedback = deliveries.feedback(played, time.time_ns())
    spans, said = sum(recorded.spans for recorded in played.recordings), len(feedback)
    await one.say(feedback)
    sent = await asyncio.gather(one.deliver(list(deliveries.as_recorded())), other.deliver(list(deliveries.backwards())))
    assert min(sent) > 0
    await asyncio.gather(until("graded", one, stored(spans - 2, said)), until("graded", other, stored(spans - 2, 0)))
    await other.say(feedback)
    await until("heard", other, stored(spans - 2, said))
    late = list(deliveries.late["graded"])
    await asyncio.gather(one.deliver(late * 2), other.deliver(late * 3))
    await asyncio.gather(*(until("graded anew", each, stored(spans - 1, said)) for each in both))
    assert time.time_ns() < schedule.final_at(minute), "the machine is too slow: windows were final before all was graded"

    trips = played.expected["counts"]["trips"]
    await asyncio.gather(*(until("tripped", each, tripped(trips)) for each in both))
    late = list(deliveries.late["final"])
    await asyncio.gather(one.deliver(late * 3), other.deliver(late * 2))
    await asyncio.gather(*(until("amended", each, stored(spans, said)) for each in both))
    await asyncio.gather(*(until("settled", each, settled) for each in both))


@pytest.mark.timeout(600)
async def test_a_scenario_gives_equal_rows_in_both_runtimes(
    empty_broker: Broker, front: Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played = scenario()
    schedule = Schedule.from_now(time.time_ns())
    services = Services(played.answers)
    async with ScriptedJudge() as judge, services.served() as url, AsyncExitStack() as stack:
        configured = partial(configuration, played, schedule, judge.url, url)
        kafka = await stack.enter_async_context(over_kafka(PROJECT, configured, tmp_path, empty_broker, front))
        alone = await stack.enter_async_context(embedded(PROJECT, configured, tmp_path))
        owners = await asyncio.to_thread(kafka.partitions, "owner")
        await play(played, schedule, alone, kafka.runtime)
        assert await asyncio.to_thread(kafka.partitions, "owner") == owners, (
            "partitions changed hands: the test is about two workers side by side"
        )
        handled = acknowledged(kafka, owners, await asyncio.to_thread(kafka.partitions, "committed"))
        both = alone, kafka.runtime
        tables = [await each.rows() for each in both]
        accounts = [await each.store.accounting(played.project) for each in both]
        told = [each.pager.told for each in both]
        ended_well([*kafka.workers, *kafka.collectors])
    with capsys.disabled():
        print_counts(tables, handled)
    for found, accounting, heard in zip(tables, accounts, told, strict=True):
        is_as_expected(played, found, accounting)
        assert len(heard) == played.expected["counts"]["notifications"]
        assert sorted(heard) == sorted(row["idempotency_key"] for row in found["notifications"])
    assert set(services.asked) == set(played.answers)
    different = {
        table: differences(comparable(table, tables[0][table]), comparable(table, tables[1][table]), NAMES)
        for table in MAY_DIFFER
    }
    assert not any(different.values()), json.dumps({table: rows for table, rows in different.items() if rows}, indent=1)


def acknowledged(
    kafka: Workers, owners: Mapping[str, Mapping[int, str]], committed: Mapping[str, Mapping[int, int | None]]
) -> dict[str, dict[str, dict[int, int]]]:
    """Return by stage and worker the records that it acknowledged of each of its partitions. The topics were empty when it got them."""
    found: dict[str, dict[str, dict[int, int]]] = {}
    for stage in STAGES:
        for partition, owner in owners[stage].items():
            found.setdefault(stage, {}).setdefault(owner, {})[partition] = committed[stage][partition] or 0
    for stage, by_owner in found.items():
        pids = sorted(int(owner.partition(" on ")[0].rpartition(":")[2]) for owner in by_owner)
        assert pids == sorted(worker.pid for worker in kafka.workers), (stage, by_owner)
        assert all(sum(partitions.values()) > 0 for partitions in by_owner.values()), (stage, by_owner)
    # Each of the four partitions has four traces or more.
    assert all(count > 0 for partitions in found["assemble"].values() for count in partitions.values()), found["assemble"]
    return found


def print_counts(tables: list[Rows], handled: Mapping[str, Mapping[str, Mapping[int, int]]]) -> None:
    print(f"\n{'rows':16}{NAMES[0]:>10}{NAMES[1]:>10}")  # noqa: T201
    for table in MAY_DIFFER:
        print(f"{table:16}{len(tables[0][table]):>10}{len(tables[1][table]):>10}")  # noqa: T201
    for stage, by_owner in handled.items():
        for owner, partitions in sorted(by_owner.items()):
            print(f"{stage}: {owner} acknowledged {dict(partitions)}")  # noqa: T201
