"""Compose: settings and a store into the pipeline in one process, with its servers. The one place where all parts meet."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final, Self

import aiohttp
import msgspec
from aiohttp import web

from collectors.dialects import read
from collectors.otlp import grpc
from collectors.otlp.http import routes, runner
from collectors.otlp.keys import keys_from
from collectors.otlp.receiver import Receiver
from pipeline.apps.api import api_routes
from pipeline.apps.telemetry import meter_provider
from pipeline.config.grading import Graders, contracts, graders_of, grading_of, idle_contracts
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges.judge import Judge
from pipeline.judges.openai import OpenAIModel
from pipeline.model.result import JudgeRequest, Judgment, Kind
from pipeline.model.time import MINUTE
from pipeline.runtime.clock import Clock, SystemClock
from pipeline.runtime.desk import Ask
from pipeline.runtime.embedded import Embedded, judged_by_nobody
from pipeline.runtime.gates import Gates
from pipeline.runtime.messenger import Messenger
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.alert import destinations
from pipeline.stages.gate import FloorGate
from pipeline.stages.turn import Assembly
from sinks.alerts.webhook import Webhook
from sinks.clickhouse.store import Store

WINDOW: Final = 5 * MINUTE
"""The window that every dimension has, whether a gate reads it or not."""
GRACE: Final = 5.0
"""Seconds that requests in flight are given when the servers stop."""
LAST_METRICS: Final = 2000.0
"""Milliseconds that the last export of metrics is given."""


class Served(msgspec.Struct, frozen=True):
    """Where the servers listen."""

    http_url: str
    grpc_address: str


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
            self.pipeline = await self._pipeline(stack)
            await self.store.insert_contracts(contracts(self.settings))
            await self.pipeline.start()
            stack.push_async_callback(self.pipeline.stop)
            self.served = await self._serve(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting, finish what was accepted, stop."""
        await self._stack.aclose()

    async def _pipeline(self, stack: AsyncExitStack) -> Embedded:
        settings = self.settings
        graders = graders_of(settings)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        kinds = {check.name: Kind.CODE.value for one in graders.values() for check in one.grading.checks}
        return Embedded(
            self.store,
            Assembly(read=read, settings=settings.assemble, grading_of=grading_of(settings)),
            await self._ask(graders, stack),
            Gates(
                self.store,
                settings.gates,
                settings.assemble.idle_timeout,
                settings.judge.deadline,
                kinds,
                idle_contracts(settings),
            ),
            Messenger(
                self.store,
                {alert.name: Webhook(alert, session) for alert in settings.alerts},
                {gate.name: destinations(gate, settings.alerts) for gate in settings.gates},
                self.telemetry,
            ),
            sorted({WINDOW, *(gate.window for gate in settings.gates if isinstance(gate, FloorGate))}),
            self.clock,
            self.telemetry,
            settings.judge.concurrency,
        )

    async def _ask(self, graders: Mapping[str, Graders], stack: AsyncExitStack) -> Ask:
        if self.settings.judge.base_url is None:
            return judged_by_nobody
        judges: dict[str, Judge] = {}
        for name, one in graders.items():
            rubric = one.grading.rubric
            if rubric is not None:
                model = await stack.enter_async_context(OpenAIModel(self.settings.judge, rubric, self._environment))
                judges[name] = Judge(rubric, self.settings.judge, model, self.store, self.clock.now)
        return _asking(judges, self.settings.entry_of)

    async def _serve(self, stack: AsyncExitStack) -> Served:
        receiver_settings = self.settings.receiver
        keys = keys_from(receiver_settings, self._environment)
        receiver = Receiver(
            self.pipeline.intake,
            self.clock.now,
            keys,
            max_body=receiver_settings.max_body,
            on_received=self.telemetry.received,
        )
        application = web.Application()
        application.add_routes([*routes(receiver), *api_routes(self.store, keys, self.telemetry)])
        site_runner = runner(application, GRACE)
        await site_runner.setup()
        stack.push_async_callback(site_runner.cleanup)
        site = web.TCPSite(site_runner, receiver_settings.host, receiver_settings.http_port)
        try:
            await site.start()
        except OSError as error:
            where = f"{receiver_settings.host}:{receiver_settings.http_port}"
            raise ConfigurationError(
                f"receiver.http_port: cannot listen on {where}: {os.strerror(error.errno or 0)}; write another port"
            ) from None
        listening = await grpc.serve(receiver, receiver_settings.host, receiver_settings.grpc_port)
        stack.push_async_callback(listening.server.stop, GRACE)
        host, port = site_runner.addresses[0][:2]
        shown = f"[{host}]" if ":" in host else host
        return Served(http_url=f"http://{shown}:{port}", grpc_address=f"{shown}:{listening.port}")


def _asking(judges: Mapping[str, Judge], entry_of: Callable[[str], str]) -> Ask:
    def ask(request: JudgeRequest, dimension: str, contract: str) -> Awaitable[Judgment]:
        return judges[entry_of(request.agent)].judge(request, dimension, contract)

    return ask
