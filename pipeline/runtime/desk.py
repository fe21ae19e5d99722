"""Desk: takes requests to judge, asks the judge, and gives the judgments back to the owner of the trace."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.model.result import JudgeRequest, Judgment
from pipeline.runtime.clock import Clock
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.telemetry import Telemetry

log = structlog.get_logger(__name__)

Ask = Callable[[JudgeRequest, str, str], Awaitable[Judgment]]
"""(request, dimension, contract) → the judgment; raises TemporaryError where asking again may help."""


class JudgmentStore(Protocol):
    """What the desk needs of the store."""

    async def insert_judgments(self, judgments: Sequence[Judgment]) -> None:
        """Store judgments durably."""
        ...


class JudgeDesk:
    """Judges a run's dimensions concurrently, each at most once at a time, until the run's deadline.

    What could not be had by then is left out: the owner expires it (promise 6: a judge that is down costs only its own dimensions).
    """

    def __init__(
        self,
        ask: Ask,
        store: JudgmentStore,
        give_back: Callable[[Sequence[Judgment]], Awaitable[None]],
        clock: Clock,
        telemetry: Telemetry,
        concurrency: int,
    ) -> None:
        self._ask = ask
        self._store = store
        self._give_back = give_back
        self._clock = clock
        self._telemetry = telemetry
        self._slots = asyncio.Semaphore(concurrency)
        self._open: set[tuple[str, str, str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether anything is being judged."""
        return bool(self._tasks)

    async def take(self, request: JudgeRequest) -> None:
        """Start judging what the request asks and nobody is judging yet."""
        new = [key for one in request.dimensions if (key := (request.run_id, request.transcript_hash, *one)) not in self._open]
        if not new:
            return
        self._open.update(new)
        task = asyncio.create_task(self._judge(request, new))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop; what is in flight is asked again after the next start, for its run is still pending."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _judge(self, request: JudgeRequest, keys: list[tuple[str, str, str, str]]) -> None:
        try:
            answers = await asyncio.gather(*(self._one(request, dimension, contract) for _, _, dimension, contract in keys))
            judgments = [answer for answer in answers if answer is not None]
            if judgments:
                await self._keep(judgments)
        finally:
            self._open.difference_update(keys)

    async def _keep(self, judgments: list[Judgment]) -> None:
        await until_it_works("store judgments", lambda: self._store.insert_judgments(judgments))
        for judgment in judgments:
            self._telemetry.judged(judgment)
        await self._give_back(judgments)

    async def _one(self, request: JudgeRequest, dimension: str, contract: str) -> Judgment | None:
        delay = 0.2
        while self._clock.now() < request.deadline_ns:
            try:
                async with self._slots:
                    return await self._ask(request, dimension, contract)
            except TemporaryError as error:
                wait = error.retry_after if error.retry_after is not None else delay
                log.warning("judge not available", dimension=dimension, run_id=request.run_id, error=str(error), wait=wait)
                await asyncio.sleep(wait)
                delay = min(delay * 2, 30.0)
            except (ConfigurationError, PermanentError) as error:
                log.error("judge refused", dimension=dimension, run_id=request.run_id, error=str(error))
                return None
        return None
