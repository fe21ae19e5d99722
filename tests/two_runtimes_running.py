"""Both runtimes, running: the product in one process on a folder, and collectors and workers over a broker and a ClickHouse server."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from clickhouse_front import Front
from clickhouse_front_databases import a_database
from cluster import Cluster, Process
from kafka_broker import Broker
from serving import tracegrade
from two_runtimes import Request, Rows, deliver, rows

from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import KafkaPublisher
from pipeline.apps.compose import Product
from pipeline.apps.demo.receiver import Pager
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.result import Feedback
from pipeline.model.topology import TRACES
from pipeline.runtime.facts import store_facts
from sinks.clickhouse.store import Store

PATIENCE_S: Final = 90.0
NAMES: Final = ("embedded", "Kafka")
STAGES: Final = ("assemble", "judge", "gate")
Configuration = dict[str, Any]
"""As it is written in YAML; what is configured alike in both."""


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


@asynccontextmanager
async def embedded(project: str, configured: Callable[[str], Configuration], folder: Path) -> AsyncIterator[Runtime]:
    """The product in one process, on a folder. It is ``configured`` for the address of a pager."""
    async with AsyncExitStack() as stack:
        pager = await stack.enter_async_context(Pager())
        settings = TracegradeSettings.model_validate(
            {
                **configured(pager.url),
                "project": project,
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
    project: str, configured: Callable[[str], Configuration], folder: Path, broker: Broker, front: Front
) -> AsyncIterator[Workers]:
    """Two collectors and two workers on a broker and a ClickHouse server."""
    async with AsyncExitStack() as stack:
        pager = await stack.enter_async_context(Pager())
        database = stack.enter_context(a_database(front.url)).database
        more = "\n".join(f"{key}: {json.dumps(value)}" for key, value in configured(pager.url).items())
        cluster = await asyncio.to_thread(lambda: Cluster(broker, front, folder, more=more, project=project, database=database))
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


async def until(what: str, project: str, runtime: Runtime, holds: Callable[[Runtime], Awaitable[object]]) -> None:
    """Wait until something holds, and say what there is instead where it never does."""
    end = time.monotonic() + PATIENCE_S
    while not await holds(runtime):
        if time.monotonic() > end:
            raise AssertionError(
                f"never {what}: {await runtime.store.accounting(project)}, idle: {await runtime.idle()}\n{runtime.log()}"
            )
        await asyncio.sleep(0.2)
