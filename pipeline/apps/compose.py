"""Compose: settings and a store into the pipeline in one process, with its servers."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from collectors.feedback import http as feedback
from collectors.feedback.desk import FeedbackDesk
from collectors.otlp.keys import keys_from
from collectors.otlp.logs import LOGS
from collectors.otlp.receiver import Receiver
from collectors.otlp.traces import TRACES
from collectors.redaction.configured import redactor
from pipeline.apps.addresses import addressed
from pipeline.apps.api import api_routes
from pipeline.apps.health import Check, Health, backlog, disk
from pipeline.apps.openapi import openapi_route
from pipeline.apps.parts import Parts
from pipeline.apps.published import Published
from pipeline.apps.quality_routes import quality_routes
from pipeline.apps.serve import Served, serve
from pipeline.apps.telemetry import LAST_METRICS, meter_provider
from pipeline.apps.verify_commands import verifier_of
from pipeline.config.grading import by_choice, contracts, quality_policies, rubrics_in_force
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges import calibration
from pipeline.model.topology import Topic
from pipeline.runtime.clock import Clock, SystemClock
from pipeline.runtime.dead_letters import LetterBox
from pipeline.runtime.embedded import Embedded
from pipeline.runtime.intake import BACKLOG
from pipeline.runtime.replaying import Replayer
from pipeline.runtime.telemetry import Telemetry
from pipeline.scorers.prices import PriceTable
from sinks.clickhouse.run_finder import RunFinder
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
            await self.store.rubrics.insert(rubrics_in_force(self.settings))
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
            (await parts.ask_of(self.store))(1, 1),
            parts.gates(self.store),
            parts.messenger(self.store),
            parts.windows(),
            self.clock,
            self.telemetry,
            self.settings.judge.concurrency,
            await parts.sources(),
            parts.redacted(),
        )

    @property
    def replayer(self) -> Replayer:
        """What sends dead letters back into this pipeline."""

        async def into_the_intake(topic: Topic, records: Sequence[Any]) -> None:  # noqa: ARG001 - all of it goes there
            await self.pipeline.intake.store(records)

        return Replayer(into_the_intake, self.store.letters, self.clock, redactor(self.settings.redaction))

    async def _serve(self, stack: AsyncExitStack) -> Served:
        keys = keys_from(self.settings.receiver, self._environment)
        health = await stack.enter_async_context(Health(self._checks(), lambda: self.pipeline.failed))
        hides = redactor(self.settings.redaction)
        letters = await stack.enter_async_context(LetterBox("receiver", self.store.bury, self.clock, self.telemetry, hides))
        receiver = Receiver(
            {TRACES: self.pipeline.intake, LOGS: self.pipeline.intake},
            self.clock.now,
            keys,
            self.settings.receiver,
            trouble=lambda: health.trouble,
            on_received=self.telemetry.exported,
            on_refused=letters.refused,
            redactor=hides,
            on_redacted=self.telemetry.redacted,
        )
        runs = RunFinder(self.settings.store, self._environment)
        stack.push_async_callback(runs.close)
        desk = FeedbackDesk(self.pipeline.intake.store, runs, self.clock.now, hides, self.telemetry.feedback)
        verifier = verifier_of(self.settings, self.store)
        more = [
            *api_routes(self.store, keys, self.telemetry, verifier, PriceTable(self.settings.prices), by_choice(self.settings)),
            *quality_routes(
                self.store,
                keys,
                quality_policies(self.settings),
                calibration.load(self.settings.judge.calibration),
                Published.by(self.settings),
            ),
            openapi_route(),
            *feedback.routes(receiver, desk),
        ]
        return await serve(receiver, health, more, stack, (addressed,))

    def _checks(self) -> dict[str, Check]:
        intake = self.pipeline.intake
        checks = {"store": self.store.ping, "backlog": backlog(lambda: intake.waiting, BACKLOG, "records")}
        store = self.settings.store
        return checks if store.url is not None else {**checks, "disk": disk(store.path, store.min_free)}
