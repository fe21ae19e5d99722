"""Compose: settings and a store into the pipeline in one process, with its servers."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Self

from collectors.otlp.keys import keys_from
from collectors.otlp.receiver import Receiver
from pipeline.apps.api import api_routes
from pipeline.apps.parts import Parts
from pipeline.apps.serve import Served, serve
from pipeline.apps.telemetry import LAST_METRICS, meter_provider
from pipeline.config.grading import contracts
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.runtime.clock import Clock, SystemClock
from pipeline.runtime.embedded import Embedded
from pipeline.runtime.telemetry import Telemetry
from sinks.clickhouse.store import Store


class Product:
    """The embedded pipeline with its servers, as an async context manager: started on entry, drained and stopped on exit."""

    def __init__(
        self, settings: TracegradeSettings, store: Store, clock: Clock | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.settings = settings
        self.store = store
        self.clock = clock or SystemClock()
        self._metrics = meter_provider()
        self.telemetry = Telemetry(self._metrics.get_meter("tracegrade"))
        self._environment = environment
        self._stack = AsyncExitStack()
        self.pipeline: Embedded
        self.served: Served

    async def __aenter__(self) -> Self:
        """Start: what was open is read back before the first new span is accepted.

        Raises:
            ConfigurationError: a person can fix it.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, self._metrics.shutdown, LAST_METRICS)
            self.pipeline = await self._pipeline(Parts(self.settings, self.telemetry, self.clock, stack, self._environment))
            await self.store.insert_contracts(contracts(self.settings))
            await self.pipeline.start()
            stack.push_async_callback(self.pipeline.stop)
            self.served = await self._serve(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting, finish what was accepted, stop."""
        await self._stack.aclose()

    async def _pipeline(self, parts: Parts) -> Embedded:
        return Embedded(
            self.store,
            parts.assembly(),
            await parts.ask(self.store),
            parts.gates(self.store),
            parts.messenger(self.store),
            parts.windows(),
            self.clock,
            self.telemetry,
            self.settings.judge.concurrency,
        )

    async def _serve(self, stack: AsyncExitStack) -> Served:
        keys = keys_from(self.settings.receiver, self._environment)
        receiver = Receiver(
            self.pipeline.intake,
            self.clock.now,
            keys,
            max_body=self.settings.receiver.max_body,
            on_received=self.telemetry.received,
        )
        return await serve(receiver, self.settings.receiver, api_routes(self.store, keys, self.telemetry), stack)
