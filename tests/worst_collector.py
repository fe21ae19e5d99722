"""The receiver of `tracegrade collector` as a process, with a broker that acknowledges whatever it is sent."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from time import time_ns

from unit.otlp.transports import on_both

from collectors.kafka.facts import FactPublisher
from collectors.kafka.publisher import KafkaPublisher, SpanBatcher
from collectors.kafka.records import Outgoing
from collectors.otlp.keys import Keys
from collectors.otlp.logs import LOGS
from collectors.otlp.passing import PASSED_ON
from collectors.otlp.receiver import Receiver
from collectors.redaction.configured import redactor
from pipeline.config.redaction import RedactionSettings
from pipeline.model.topology import TOPICS

PARTITIONS = 12


class _Broker:
    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Acknowledge."""


async def _run() -> None:
    broker = _Broker()
    facts = FactPublisher(KafkaPublisher(broker, {topic.name: PARTITIONS for topic in TOPICS}))
    receiver = Receiver(
        {PASSED_ON: SpanBatcher(broker, PARTITIONS), LOGS: facts},
        time_ns,
        Keys({}, "worst"),
        redactor=redactor(RedactionSettings()),
    )
    async with AsyncExitStack() as stack:
        port, server = await stack.enter_async_context(on_both(receiver))
        print(f"http://127.0.0.1:{port} 127.0.0.1:{server.port}", flush=True)  # noqa: T201 - to whoever started it
        await asyncio.Event().wait()


def main() -> None:
    """Serve until killed; the first line says where."""
    asyncio.run(_run())
