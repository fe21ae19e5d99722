"""Judges: one for each entry of agents that has a rubric, all asking the same endpoints, built from settings."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

import structlog

from collectors.redaction.configured import redactor
from pipeline.config.judge_price import priced
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import TemporaryError
from pipeline.judges.ability import Ability
from pipeline.judges.circuit import Circuit
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.judge import Judge, as_it_is
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.purse import Purse
from pipeline.judges.settings import JudgeSettings
from pipeline.model.result import JudgeRequest, Judgment
from pipeline.model.rubric import Rubric
from pipeline.model.time import DAY
from pipeline.runtime.clock import Clock
from pipeline.runtime.desk import Ask
from pipeline.runtime.telemetry import Metric, Telemetry
from sinks.clickhouse.judge_table import JudgeTable

BELIEVED: Final = 7 * DAY
"""How long what an endpoint was found to take is believed: it may have learned something since."""

log = structlog.get_logger(__name__)


def redacting(settings: TracegradeSettings) -> Callable[[str], str]:
    """Return what a transcript goes through before a prompt is made of it."""
    hides = redactor(settings.redaction)
    return as_it_is if hides is None else lambda text: hides.text(text, Counter())


class Judges:
    """Asks for judgments; what was found out about an endpoint is remembered in the store, for each model at it."""

    def __init__(
        self,
        settings: TracegradeSettings,
        rubrics: Mapping[str, Rubric],
        table: JudgeTable,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        """Take the rubrics by the entry of agents."""
        self._settings = settings
        self._judge = priced(settings)
        self._rubrics = rubrics
        self._table = table
        self._clock = clock
        self._endpoints: dict[str, Endpoint] = {}
        telemetry.gauge(Metric.JUDGE_HELD_BACK, lambda: int(any(one.circuit.is_open for one in self._endpoints.values())))

    @asynccontextmanager
    async def opened(self, environment: Mapping[str, str]) -> AsyncIterator[None]:
        """Hold the connections to the endpoints while the block lasts.

        Raises:
            ConfigurationError: a person can fix it, such as a key file that cannot be read.
        """
        async with AsyncExitStack() as stack:
            for name in self._judge.ids:
                judge = self._judge.of(name)
                learned = partial(self._learned, judge)
                model = await stack.enter_async_context(OpenAIModel(judge, environment, await self._known(judge), learned))
                self._endpoints[name] = Endpoint(model, judge, self._clock.now, partial(_tell, name))
            yield

    async def _known(self, judge: JudgeSettings) -> Ability | None:
        try:
            known = await self._table.endpoint(judge.base_url or "", judge.model)
        except TemporaryError:
            return None
        return known.ability if known is not None and self._clock.now() - known.learned_ns < BELIEVED else None

    async def _learned(self, judge: JudgeSettings, ability: Ability) -> None:
        takes = {"form": ability.form, "limit": ability.limit, "seed": ability.seed, "usage": ability.usage}
        log.info("judge_endpoint", model=judge.model, **takes)
        await self._table.keep_endpoint(judge.base_url or "", judge.model, ability, self._clock.now())

    def ask_of(self, owned: int, partitions: int) -> Ask:
        """Return how to ask about the runs of so many of the partitions: with their part of the day's budget and of a minute's calls."""
        judge, now = self._judge, self._clock.now
        for endpoint in self._endpoints.values():
            endpoint.has_share(owned / partitions)
        purse = Purse(judge.budget, self._table, now, partitions)
        redact = redacting(self._settings)
        judges = {
            name: Judge(rubric, judge, self._endpoints, purse, self._table, now, redact=redact)
            for name, rubric in self._rubrics.items()
        }

        def ask(request: JudgeRequest, dimension: str, contract: str) -> Awaitable[Judgment]:
            return judges[self._settings.entry_of(request.agent)].judge(request, dimension, contract)

        return ask


def _tell(model: str, before: Circuit, after: Circuit) -> None:
    if after.paused and after.paused != before.paused:
        log.error("judge_paused", model=model, why=after.paused)
    elif after.is_open and not before.is_open:
        log.warning("judge_held_back", model=model, failures=after.failures)
    elif before.is_open and not after.is_open:
        log.info("judge_resumed", model=model)
