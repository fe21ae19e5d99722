"""One scenario, two runtimes: recorded spans through the embedded product, and through two collectors, Kafka, two workers and a
ClickHouse server over HTTP. The spans are the same and the order is not; what is stored is equal, and is what a person expected.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from clickhouse_front import Front
from clickhouse_front_databases import a_database
from cluster import Cluster, Process, ended_well
from kafka_broker import Broker
from serving import tracegrade
from two_runtimes import (
    MAY_DIFFER,
    Deliveries,
    Request,
    Rows,
    Scenario,
    Schedule,
    comparable,
    deliver,
    differences,
    rows,
    scenario,
)
from two_runtimes_expected import is_as_expected

from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import KafkaPublisher
from pipeline.apps.compose import Product
from pipeline.apps.demo.receiver import Pager
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.scripted import MODEL, ScriptedJudge
from pipeline.model.result import Feedback
from pipeline.model.topology import TRACES
from pipeline.runtime.facts import store_facts
from sinks.clickhouse.store import Store

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CALIBRATION: Final = Path(__file__).parents[2] / "pipeline" / "apps" / "demo" / "calibration.yaml"
PATIENCE_S: Final = 90.0
PROJECT: Final = scenario().project
NAMES: Final = ("embedded", "Kafka")
STAGES: Final = ("assemble", "judge", "gate")


class Runtime(NamedTuple):
    """A running installation, and how this scenario reaches it."""

    store: Store
    pager: Pager
    endpoints: tuple[str, ...]
    say: Callable[[list[Feedback]], Awaitable[None]]
    """Hand over what people said."""
    idle: Callable[[], Awaitable[bool]]
    """Whether nothing is on its way between its parts."""
    log: Callable[[], str] = str
    """What its processes said last."""

    async def deliver(self, requests: list[Request]) -> int:
        return await asyncio.to_thread(deliver, requests, self.endpoints)

    async def query(self, sql: str) -> list[dict[str, Any]]:
        return await self.store._read(lambda database: database.query(sql))

    async def rows(self) -> Rows:
        return await self.store._read(rows)


def configuration(played: Scenario, schedule: Schedule, judge: str, pager: str) -> dict[str, Any]:
    """What both runtimes are configured with, apart from where their store is."""
    written = played.configuration
    return {
        **written,
        "assemble": {**written["assemble"], "idle_timeout": schedule.settings["idle_timeout"]},
        "judge": {"base_url": judge, "model": MODEL, "calibration": str(CALIBRATION), "deadline": schedule.settings["deadline"]},
        "alerts": [{"name": "pager", "webhook": pager}],
    }


@asynccontextmanager
async def embedded(played: Scenario, schedule: Schedule, judge: str, folder: Path) -> AsyncIterator[Runtime]:
    """The product in one process, on a folder."""
    async with AsyncExitStack() as stack:
        pager = await stack.enter_async_context(Pager())
        settings = TracegradeSettings.model_validate(
            {
                **configuration(played, schedule, judge, pager.url),
                "project": played.project,
                "store": StoreSettings(path=folder / "data"),
                "receiver": {"http_port": 0, "grpc_port": 0},
            }
        )
        store = await asyncio.to_thread(Store.open, settings.store)
        stack.push_async_callback(store.close)
        product = await stack.enter_async_context(Product(settings, store))

        async def say(feedback: list[Feedback]) -> None:
            await store_facts(store, feedback)
            await product.pipeline.feed(feedback)

        async def idle() -> bool:
            assert product.pipeline.failed is None
            return not product.pipeline.desk.busy and not product.pipeline.intake.busy

        yield Runtime(store, pager, (product.served.http_url,), say, idle)


class Workers(NamedTuple):
    """The installation over Kafka."""

    runtime: Runtime
    cluster: Cluster
    workers: tuple[Process, ...]
    collectors: tuple[Process, ...]

    def partitions(self, column: str) -> dict[str, dict[int, Any]]:
        """What ``tracegrade lag`` says of each partition of each stage."""
        said = tracegrade("lag", "--json", "-c", self.cluster.config)
        assert said.code == 0, said.err
        return {group["node"]: {one["partition"]: one[column] for one in group["partitions"]} for group in said.json}


@asynccontextmanager
async def over_kafka(
    played: Scenario, schedule: Schedule, judge: str, folder: Path, broker: Broker, front: Front
) -> AsyncIterator[Workers]:
    """Two collectors and two workers on a broker and a ClickHouse server."""
    async with AsyncExitStack() as stack:
        pager = await stack.enter_async_context(Pager())
        database = stack.enter_context(a_database(front.url)).database
        written = configuration(played, schedule, judge, pager.url)
        more = "\n".join(f"{key}: {json.dumps(value)}" for key, value in written.items())
        cluster = await asyncio.to_thread(
            lambda: Cluster(broker, front, folder, more=more, project=played.project, database=database)
        )
        workers = tuple(stack.enter_context(cluster.worker()) for _ in range(2))
        entered = [stack.enter_context(cluster.collector()) for _ in range(2)]
        for stage in STAGES:
            await asyncio.to_thread(cluster.shared_by, 2, stage)
        store = await stack.enter_async_context(cluster.store())
        producer = await stack.enter_async_context(KafkaProducer(cluster.kafka, os.environ))
        partitions = {TRACES.name: cluster.kafka.partitions}

        async def say(feedback: list[Feedback]) -> None:
            await KafkaPublisher(producer, partitions)(TRACES, feedback)

        async def idle() -> bool:
            return not any((await asyncio.to_thread(cluster.backlog)).values())

        # The first collector is spoken to over HTTP, the second one over gRPC.
        collectors = tuple(process for process, _, _ in entered)

        def log() -> str:
            return "\n".join(process.tail() for process in (*workers, *collectors))

        runtime = Runtime(store, pager, (entered[0][1], f"grpc://{entered[1][2]}"), say, idle, log)
        yield Workers(runtime, cluster, workers, collectors)


async def until(what: str, runtime: Runtime, holds: Callable[[Runtime], Awaitable[object]]) -> None:
    """Wait until something holds, and say what there is instead where it never does."""
    end = time.monotonic() + PATIENCE_S
    while not await holds(runtime):
        if time.monotonic() > end:
            raise AssertionError(
                f"never {what}: {await runtime.store.accounting(PROJECT)}, idle: {await runtime.idle()}\n{runtime.log()}"
            )
        await asyncio.sleep(0.2)


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


@pytest.mark.timeout(400)
async def test_a_scenario_gives_equal_rows_in_both_runtimes(
    empty_broker: Broker, front: Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played = scenario()
    schedule = Schedule.from_now(time.time_ns())
    async with ScriptedJudge() as judge, AsyncExitStack() as stack:
        kafka = await stack.enter_async_context(over_kafka(played, schedule, judge.url, tmp_path, empty_broker, front))
        alone = await stack.enter_async_context(embedded(played, schedule, judge.url, tmp_path))
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
