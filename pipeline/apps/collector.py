"""Collector: accepts spans and puts them on Kafka; a sender hears success after the brokers' acknowledgement (promise 1)."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

import structlog

from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import SpanBatcher
from collectors.kafka.topics import partitions
from collectors.otlp.keys import keys_from
from collectors.otlp.receiver import Receiver
from pipeline.apps.process import asked_to_stop
from pipeline.apps.serve import serve
from pipeline.apps.telemetry import LAST_METRICS, meter_provider
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.topology import TRACES
from pipeline.runtime.clock import SystemClock
from pipeline.runtime.telemetry import Telemetry

DELIVERY_S: Final = 8.0
"""Seconds that the brokers have to acknowledge a record: exporters give up after ten, and are to hear before that it is not there."""

log = structlog.get_logger(__name__)


async def run(settings: TracegradeSettings, environment: Mapping[str, str] = os.environ) -> int:
    """Serve until told to stop; what was accepted by then is with the brokers."""
    stop = asked_to_stop()
    kafka = settings.kafka_or_refuse()
    counts = await asyncio.to_thread(partitions, kafka, environment)
    async with AsyncExitStack() as stack:
        metrics = meter_provider()
        stack.push_async_callback(asyncio.to_thread, metrics.shutdown, LAST_METRICS)
        producer = await stack.enter_async_context(KafkaProducer(kafka, environment, delivery_s=DELIVERY_S))
        batcher = SpanBatcher(producer, counts[TRACES.name])
        receiver = Receiver(
            batcher,
            SystemClock().now,
            keys_from(settings.receiver, environment),
            max_body=settings.receiver.max_body,
            on_received=Telemetry(metrics.get_meter("tracegrade")).received,
        )
        served = await serve(receiver, settings.receiver, (), stack)
        log.info("collecting", brokers=",".join(kafka.brokers), http=served.http_url, grpc=served.grpc_address)
        await stop.wait()
    log.info("stopped")
    return 0
