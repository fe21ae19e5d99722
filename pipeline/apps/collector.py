"""Collector: accepts spans, log records and feedback and puts them on Kafka; a sender hears success after the brokers' acknowledgement (promise 1)."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

import structlog

from collectors.feedback import http as feedback
from collectors.feedback.desk import FeedbackDesk
from collectors.kafka.facts import FactPublisher
from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import IN_FLIGHT, KafkaPublisher, SpanBatcher
from collectors.kafka.topics import partitions
from collectors.otlp.keys import keys_from
from collectors.otlp.logs import LOGS
from collectors.otlp.passing import PASSED_ON
from collectors.otlp.receiver import Receiver
from collectors.redaction.configured import redactor
from pipeline.apps.health import Health, backlog
from pipeline.apps.logs import mask_too
from pipeline.apps.process import asked_to_stop
from pipeline.apps.serve import serve
from pipeline.apps.telemetry import LAST_METRICS, meter_provider
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model import topology
from pipeline.runtime.clock import SystemClock
from pipeline.runtime.dead_letters import LetterBox, published
from pipeline.runtime.telemetry import Telemetry
from sinks.clickhouse.run_finder import RunFinder

DELIVERY_S: Final = 8.0
"""Seconds that the brokers have to acknowledge a record: exporters give up after ten, and are to hear before that it is not there."""

log = structlog.get_logger(__name__)


async def run(settings: TracegradeSettings, environment: Mapping[str, str] = os.environ) -> int:
    """Serve until told to stop; what was accepted by then is with the brokers."""
    mask_too(settings.redaction.rules)
    stop = asked_to_stop()
    kafka = settings.kafka_or_refuse()
    counts = await asyncio.to_thread(partitions, kafka, environment)
    async with AsyncExitStack() as stack:
        metrics = meter_provider()
        stack.push_async_callback(asyncio.to_thread, metrics.shutdown, LAST_METRICS)
        producer = await stack.enter_async_context(KafkaProducer(kafka, environment, delivery_s=DELIVERY_S))
        batcher = SpanBatcher(producer, counts[topology.TRACES.name])
        checks = {"brokers": producer.ping, "backlog": backlog(lambda: batcher.waiting, IN_FLIGHT, "bytes")}
        health = await stack.enter_async_context(Health(checks))
        telemetry = Telemetry(metrics.get_meter("tracegrade"))
        clock, hides = SystemClock(), redactor(settings.redaction)
        publish = KafkaPublisher(producer, counts)
        facts, keep = FactPublisher(publish), published(publish)
        letters = await stack.enter_async_context(LetterBox("collector", keep, clock, telemetry, hides))
        receiver = Receiver(
            {PASSED_ON: batcher, LOGS: facts},
            clock.now,
            keys_from(settings.receiver, environment),
            settings.receiver,
            trouble=lambda: health.trouble,
            on_received=telemetry.exported,
            on_refused=letters.refused,
            redactor=hides,
            on_redacted=telemetry.redacted,
        )
        desk = FeedbackDesk(facts.store, _runs(settings, environment, stack), clock.now, hides, telemetry.feedback)
        served = await serve(receiver, health, feedback.routes(receiver, desk), stack)
        log.info("collecting", brokers=",".join(kafka.brokers), http=served.http_url, grpc=served.grpc_address)
        await stop.wait()
    log.info("stopped")
    return 0


def _runs(settings: TracegradeSettings, environment: Mapping[str, str], stack: AsyncExitStack) -> RunFinder | None:
    """Return where feedback by run or conversation is looked up: in the workers' store, where this configuration names it."""
    if settings.store.url is None:
        return None
    finder = RunFinder(settings.store, environment)
    stack.push_async_callback(finder.close)
    return finder
