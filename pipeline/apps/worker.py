"""Worker: stages over Kafka on a ClickHouse server, as many processes as there is work for."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import structlog

from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import KafkaPublisher
from collectors.kafka.topics import partitions
from pipeline.apps.health import Check, Health
from pipeline.apps.holdings import Holdings
from pipeline.apps.logs import mask_too
from pipeline.apps.parts import Parts
from pipeline.apps.process import asked_to_stop, collect_less_often, unless_told, until_told
from pipeline.apps.serve import listen
from pipeline.apps.telemetry import LAST_METRICS, meter_provider
from pipeline.config.grading import contracts, rubrics_in_force
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.model.topology import TOPOLOGY, Node
from pipeline.runtime.clock import SystemClock
from pipeline.runtime.faust.consumer import Consumer
from pipeline.runtime.telemetry import Metric, Telemetry
from sinks.clickhouse.store import Store

log = structlog.get_logger(__name__)


def nodes_of(stages: str) -> list[Node]:
    """Return the nodes that are named, with commas between them.

    Raises:
        ConfigurationError: one of them is none.
    """
    by_name = {node.name: node for node in TOPOLOGY}
    named = [name.strip() for name in stages.split(",") if name.strip()]
    unknown = [name for name in named if name not in by_name]
    if unknown or not named:
        raise ConfigurationError(f"--stages is {stages!r}; write some of {','.join(by_name)}")
    return [node for node in TOPOLOGY if node.name in named]


async def run(settings: TracegradeSettings, stages: str, environment: Mapping[str, str] = os.environ) -> int:
    """Work until told to stop; 0 after a stop that was asked for, 1 when a stage failed."""
    mask_too(settings.redaction.rules)
    stop = asked_to_stop()
    nodes = nodes_of(stages)
    kafka = settings.kafka_or_refuse()
    if settings.store.url is None:
        raise ConfigurationError("workers share a store: write a ClickHouse server as store.url")
    counts = await asyncio.to_thread(partitions, kafka, environment)
    async with AsyncExitStack() as stack:
        store = await asyncio.to_thread(Store.open, settings.store, environment)
        stack.push_async_callback(store.close)
        metrics = meter_provider()
        stack.push_async_callback(asyncio.to_thread, metrics.shutdown, LAST_METRICS)
        telemetry, clock = Telemetry(metrics.get_meter("tracegrade")), SystemClock()
        producer = await stack.enter_async_context(KafkaProducer(kafka, environment))
        parts = Parts(settings, telemetry, clock, stack, environment)
        ask_of = await parts.ask_of(store)
        await store.insert_contracts(contracts(settings))
        await store.rubrics.insert(rubrics_in_force(settings))
        await store.retain(settings.retention)
        holdings = Holdings(
            parts, store, KafkaPublisher(producer, counts), counts, ask_of, clock, telemetry, await parts.sources()
        )
        consumers = [Consumer(node, kafka, holdings.of(node), clock, environment) for node in nodes]
        telemetry.gauge(Metric.BACKLOG_AGE, lambda: max(consumer.backlog.age_s for consumer in consumers))
        if settings.worker.http_port is not None:
            health = Health(_checks(consumers, store, producer), lambda: _failed(consumers))
            await stack.enter_async_context(health)
            url = await listen(health.routes(), settings.worker.host, settings.worker.http_port, "worker.http_port", stack)
            log.info("health", url=url)
        stack.push_async_callback(_stop, consumers)
        code = 0
        if await unless_told(stop, asyncio.gather(*(consumer.start() for consumer in consumers))):
            log.info(
                "working", brokers=",".join(kafka.brokers), store=settings.store.url, stages=",".join(node.name for node in nodes)
            )
            collect_less_often()
            code = await until_told(stop, lambda: _failed(consumers))
    log.info("stopped")
    return code


async def _stop(consumers: Sequence[Consumer]) -> None:
    """At the same time: each may have to wait for a store or a broker that is away, and a process that is told to end has seconds."""
    for error in await asyncio.gather(*(consumer.stop() for consumer in consumers), return_exceptions=True):
        if error is not None:
            raise error


def _failed(consumers: Sequence[Consumer]) -> BaseException | None:
    return next((error for consumer in consumers if (error := consumer.failed) is not None), None)


def _checks(consumers: Sequence[Consumer], store: Store, producer: KafkaProducer) -> dict[str, Check]:
    return {"store": store.ping, "brokers": producer.ping, **{one.node.name: _working(one) for one in consumers}}


def _working(consumer: Consumer) -> Check:
    async def check() -> str:
        if not consumer.ready:
            raise TemporaryError("waits for partitions")
        told = f"{len(consumer.owned)} partitions, {consumer.behind} records behind"
        return f"{told}; {consumer.backlog.alarm}" if consumer.backlog.alarm else told

    return check
