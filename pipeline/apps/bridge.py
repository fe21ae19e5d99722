"""Bridge: carries what OpenTelemetry Collectors wrote to Kafka onto tracegrade's own topic, as one of any number of bridges."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

import structlog

from collectors.kafka.bridge_consumer import BridgeConsumer
from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import KafkaPublisher, SpanBatcher
from collectors.kafka.topics import partitions, retention_of
from collectors.redaction.configured import redactor
from pipeline.apps.health import Check, Health
from pipeline.apps.logs import mask_too
from pipeline.apps.process import asked_to_stop, collect_less_often
from pipeline.apps.serve import listen
from pipeline.apps.telemetry import LAST_METRICS, meter_provider
from pipeline.config.bridge import BridgeSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import TemporaryError
from pipeline.model.time import SECOND
from pipeline.model.topology import TRACES
from pipeline.runtime.backlog import Backlog
from pipeline.runtime.bridging import Bridge
from pipeline.runtime.clock import Clock, SystemClock
from pipeline.runtime.dead_letters import published
from pipeline.runtime.telemetry import Metric, Telemetry

STALLED_S: Final = 60
"""Seconds without a record done, while some are there, after which a bridge is not ready."""

log = structlog.get_logger(__name__)


async def run(settings: TracegradeSettings, environment: Mapping[str, str] = os.environ) -> int:
    """Carry until told to stop; what was acknowledged by then is with the brokers, and its offsets are committed.

    Raises:
        ConfigurationError: a person can fix it; also where most of what is read cannot be.
    """
    mask_too(settings.redaction.rules)
    stop = asked_to_stop()
    kafka, topics = settings.kafka_or_refuse(), settings.bridged
    counts = await asyncio.to_thread(partitions, kafka, environment)
    backlog = Backlog("bridge", await asyncio.to_thread(retention_of, kafka, environment, list(topics)))
    async with AsyncExitStack() as stack:
        metrics = meter_provider()
        stack.push_async_callback(asyncio.to_thread, metrics.shutdown, LAST_METRICS)
        telemetry, clock = Telemetry(metrics.get_meter("tracegrade")), SystemClock()
        producer = await stack.enter_async_context(KafkaProducer(kafka, environment))
        consumer = BridgeConsumer(
            kafka, settings.bridge, topics, environment, on_deleted=lambda count: telemetry.add(Metric.BRIDGE_DELETED, count)
        )
        stack.push_async_callback(consumer.close)
        bridge = Bridge(
            consumer,
            topics,
            SpanBatcher(producer, counts[TRACES.name], limit=2 * settings.bridge.in_flight),
            published(KafkaPublisher(producer, counts)),
            clock,
            telemetry,
            encoding=settings.bridge.encoding,
            in_flight=settings.bridge.in_flight,
            redactor=redactor(settings.redaction),
            watch=lambda: backlog.look(consumer.oldest_unread, clock.now()),
        )
        telemetry.gauge(Metric.BRIDGE_LAG, lambda: sum(consumer.lag.values()))
        telemetry.gauge(Metric.BACKLOG_AGE, lambda: backlog.age_s)
        await _tell(settings.bridge, {"brokers": producer.ping, "bridge": _working(bridge, consumer, backlog, clock)}, stack)
        await consumer.start()
        log.info("bridging", brokers=",".join(kafka.brokers), topics=topics)
        collect_less_often()
        await bridge.run(stop)
    log.info("stopped")
    return 0


async def _tell(settings: BridgeSettings, checks: Mapping[str, Check], stack: AsyncExitStack) -> None:
    """Answer for the process, where a port is written."""
    if settings.http_port is None:
        return
    health = await stack.enter_async_context(Health(checks))
    log.info("health", url=await listen(health.routes(), settings.host, settings.http_port, "bridge.http_port", stack))


def _working(bridge: Bridge, consumer: BridgeConsumer, backlog: Backlog, clock: Clock) -> Check:
    """Progress, and not life, is what is asked for: a member that gets nothing done is the commonest failure (reliability R71)."""

    async def check() -> str:
        if not consumer.joined:
            raise TemporaryError("waits for the group")
        behind = sum(consumer.lag.values())
        idle_s = (clock.now() - bridge.progressed_ns) // SECOND
        if behind and idle_s > STALLED_S:
            raise TemporaryError(f"{behind} records behind, and none was done for {idle_s} s")
        return ", ".join(filter(None, (f"{consumer.owned} partitions", f"{behind} records behind", backlog.alarm)))

    return check
