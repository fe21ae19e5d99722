"""Parts: what every runtime is made of, built from settings. The runtimes differ only in how records travel between these."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import aiohttp

from collectors.dialects import plug_ins
from collectors.records.sources import opened
from collectors.redaction.configured import redactor
from collectors.redaction.walk import Counts
from pipeline.apps.judges import Judges
from pipeline.apps.revision import revision
from pipeline.config.grading import deciding_contracts, graders_of, grading_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.result import Judgment, Kind
from pipeline.model.time import MINUTE, SECOND
from pipeline.runtime.clock import Clock
from pipeline.runtime.desk import AskOf
from pipeline.runtime.gate_owner import OwnedStore
from pipeline.runtime.gates import Gates
from pipeline.runtime.messenger import Messenger, NotificationStore
from pipeline.runtime.record_desk import OpenSource, as_it_is
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.alert import destinations
from pipeline.stages.gate import lengths_of
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
            read=self._read,
            settings=settings.assemble,
            grading_of=grading_of(settings),
            retention_of=settings.retention.of,
            revision=revision(self._environment),
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
            deciding_contracts(settings),
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

    async def sources(self) -> dict[str, OpenSource]:
        """Return the record sources, opened; those that are services or databases are connected to when they are asked first.

        Raises:
            ConfigurationError: one of them cannot be had as it is written.
        """
        return {
            name: OpenSource(await opened(name, one, self._stack), one.timeout / SECOND, one.deadline / SECOND, one.concurrency)
            for name, one in self.settings.records.items()
        }

    def redacted(self) -> Callable[[Any], Any]:
        """Return what is put in place of secrets in what was read, and what that is counted in."""
        hides, telemetry = redactor(self.settings.redaction), self._telemetry
        if hides is None:
            return as_it_is

        def redact(value: Any) -> Any:
            counts: Counts = Counter()
            clean = hides.value(value, counts)
            telemetry.redacted(counts)
            return clean

        return redact

    def windows(self) -> list[int]:
        """Return the lengths of the windows that are published, in ns."""
        return sorted({WINDOW, *lengths_of(self.settings.gates)})

    async def ask_of(self, store: Store) -> AskOf:
        """Return how the judge is asked. Where none is configured nothing is ever asked."""
        if self.settings.judge.base_url is None:
            return lambda owned, partitions: judged_by_nobody  # noqa: ARG005 - it is the same for all
        rubrics = {name: one.grading.rubric for name, one in self._graders.items() if one.grading.rubric is not None}
        judges = Judges(self.settings, rubrics, store.judge, self._clock, self._telemetry)
        await self._stack.enter_async_context(judges.opened(self._environment))
        return judges.ask_of


def judged_by_nobody(*_: object) -> Awaitable[Judgment]:
    """Stand where no judge is configured; nothing is ever asked then."""
    raise AssertionError("a judgment was asked for, and no judge is configured")
