"""Parts: what every runtime is made of, built from settings. The runtimes differ only in how records travel between these."""

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

import aiohttp

from collectors.dialects import plug_ins
from pipeline.config.grading import graders_of, grading_of, idle_contracts
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.judge import Judge
from pipeline.judges.openai import OpenAIModel
from pipeline.model.result import JudgeRequest, Judgment, Kind
from pipeline.model.time import MINUTE
from pipeline.runtime.clock import Clock
from pipeline.runtime.desk import Ask
from pipeline.runtime.gate_owner import OwnedStore
from pipeline.runtime.gates import Gates
from pipeline.runtime.messenger import Messenger, NotificationStore
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.alert import destinations
from pipeline.stages.gate import FloorGate
from pipeline.stages.turn import Assembly
from sinks.alerts.webhook import Webhook
from sinks.clickhouse.store import Store

WINDOW: Final = 5 * MINUTE
"""The window that every dimension has, whether a gate reads it or not."""


class Parts:
    """Builds parts; what holds a connection is closed with the stack."""

    def __init__(
        self,
        settings: TracegradeSettings,
        telemetry: Telemetry,
        clock: Clock,
        stack: AsyncExitStack,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.settings = settings
        self._telemetry = telemetry
        self._clock = clock
        self._stack = stack
        self._environment = environment
        self._graders = graders_of(settings)
        self._read = plug_ins.installed().read
        self._session: aiohttp.ClientSession | None = None

    def assembly(self) -> Assembly:
        """Return how traces become graded runs."""
        settings = self.settings
        return Assembly(
            read=self._read, settings=settings.assemble, grading_of=grading_of(settings), retention_of=settings.retention.of
        )

    def gates(self, store: OwnedStore) -> Gates:
        """Return the gates, of which nothing is read back yet."""
        settings = self.settings
        kinds = {check.name: Kind.CODE.value for one in self._graders.values() for check in one.grading.checks}
        return Gates(
            store,
            settings.gates,
            settings.assemble.idle_timeout,
            settings.judge.deadline,
            kinds,
            idle_contracts(settings),
            settings.retention.of,
        )

    def messenger(self, store: NotificationStore) -> Messenger:
        """Return what tells people, of which nothing is read back yet."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
            self._stack.push_async_callback(self._session.close)
        session, settings = self._session, self.settings
        return Messenger(
            store,
            {alert.name: Webhook(alert, session) for alert in settings.alerts},
            {gate.name: destinations(gate, settings.alerts) for gate in settings.gates},
            self._telemetry,
        )

    def windows(self) -> list[int]:
        """Return the lengths of the windows that are published, in ns."""
        return sorted({WINDOW, *(gate.window for gate in self.settings.gates if isinstance(gate, FloorGate))})

    async def ask(self, store: Store) -> Ask:
        """Return how the judge is asked. Where none is configured nothing is ever asked."""
        if self.settings.judge.base_url is None:
            return judged_by_nobody
        judges: dict[str, Judge] = {}
        for name, one in self._graders.items():
            rubric = one.grading.rubric
            if rubric is not None:
                model = await self._stack.enter_async_context(OpenAIModel(self.settings.judge, rubric, self._environment))
                judges[name] = Judge(rubric, self.settings.judge, model, store, self._clock.now)
        return _asking(judges, self.settings.entry_of)


def _asking(judges: Mapping[str, Judge], entry_of: Callable[[str], str]) -> Ask:
    def ask(request: JudgeRequest, dimension: str, contract: str) -> Awaitable[Judgment]:
        return judges[entry_of(request.agent)].judge(request, dimension, contract)

    return ask


def judged_by_nobody(*_: object) -> Awaitable[Judgment]:
    """Stand where no judge is configured; nothing is ever asked then."""
    raise AssertionError("a judgment was asked for, and no judge is configured")
