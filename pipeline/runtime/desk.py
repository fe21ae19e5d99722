"""Desk: takes requests to judge, asks the judge, and gives the judgments back to the owner of the trace."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from pipeline.errors import TemporaryError
from pipeline.judges.backoff import backoff
from pipeline.judges.model import HeldBackError
from pipeline.model.result import JudgeRequest, Judgment
from pipeline.model.time import SECOND
from pipeline.model.topology import TRACES, Publish
from pipeline.runtime.clock import Clock
from pipeline.runtime.fence import LostOwnershipError
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.telemetry import Telemetry

log = structlog.get_logger(__name__)

Ask = Callable[[JudgeRequest, str, str], Awaitable[Judgment]]
"""(request, dimension, contract) → the judgment; raises TemporaryError where asking again may help."""


AskOf = Callable[[int, int], Ask]
"""(partitions of the judge's topic that are owned, of how many) → how the judge is asked about the runs in them."""

Question = tuple[str, str, str, str]
"""(run id, transcript hash, dimension, contract)."""


class JudgeDesk:
    """Judges a run's dimensions concurrently, each at most once at a time, until the latest deadline that it was asked with.

    What could not be had by then is left out: the owner expires it (promise 6: a judge that is down costs only its own dimensions).
    """

    def __init__(
        self,
        ask: Ask,
        publish: Publish,
        clock: Clock,
        telemetry: Telemetry,
        concurrency: int,
    ) -> None:
        self._ask = ask
        self._publish = publish
        self._clock = clock
        self._telemetry = telemetry
        self._slots = asyncio.Semaphore(concurrency)
        self._open: dict[Question, int] = {}
        """Until when each of them is worth asking, in ns."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether anything is being judged."""
        return bool(self._tasks)

    def take(self, request: JudgeRequest) -> asyncio.Task[None] | None:
        """Start judging what the request asks and nobody is judging yet. Returns what ends with it; None where nothing is new.

        What is being judged is waited for until the later of both deadlines: its run was given more time where it is asked for anew.
        """
        keys = [(request.run_id, request.transcript_hash, *one) for one in request.dimensions]
        new = [key for key in keys if key not in self._open]
        self._open |= {key: max(self._open.get(key, 0), request.deadline_ns) for key in keys}
        if not new:
            return None
        task = asyncio.create_task(self._judge(request, new))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, LostOwnershipError):
            log.error("judgments could not be kept", error=repr(error))

    async def close(self) -> None:
        """Stop; what is in flight is asked again after the next start, for its run is still pending."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _judge(self, request: JudgeRequest, keys: list[Question]) -> None:
        """Ask in rounds: what a round answered is given back before the rest is asked again."""
        left, rounds = keys, 0
        # All but those that were given up: they may be asked anew before this ends.
        held = set(keys)
        try:
            while left:
                answers = await asyncio.gather(*(self._one(request, key) for key in left), return_exceptions=True)
                await self._keep([answer for answer in answers if isinstance(answer, Judgment)])
                again = [key for key, answer in zip(left, answers, strict=True) if _is_worth_asking_again(request, key, answer)]
                rounds += 1
                wait = max((_wait(request, rounds, one) for one in answers if isinstance(one, TemporaryError)), default=0.0)
                until = self._clock.now() + int(wait * SECOND)
                left = [key for key in again if until < self._open[key]]
                self._let_go(held, {*again} - {*left})
                if left:
                    await asyncio.sleep(wait)
        finally:
            self._let_go(held, {*held})

    def _let_go(self, held: set[Question], keys: set[Question]) -> None:
        held -= keys
        for key in keys:
            del self._open[key]

    async def _keep(self, judgments: list[Judgment]) -> None:
        if not judgments:
            return
        await until_it_works("give judgments back", lambda: self._publish(TRACES, judgments))
        for judgment in judgments:
            self._telemetry.judged(judgment)

    async def _one(self, request: JudgeRequest, key: Question) -> Judgment | None:
        async with self._slots:
            # The wait for a slot can be longer than anybody waits for the answer.
            return await self._ask(request, *key[2:]) if self._clock.now() < self._open[key] else None


def _is_worth_asking_again(request: JudgeRequest, key: Question, answer: Judgment | BaseException | None) -> bool:
    """Anything that an answer raises costs this one dimension; only temporary trouble, and what was not asked at all, is worth another try."""
    if not isinstance(answer, BaseException):
        return answer is None
    temporary = isinstance(answer, TemporaryError)
    # That the endpoint holds all of them back was told once, by the endpoint.
    told = log.debug if isinstance(answer, HeldBackError) else log.warning if temporary else log.error
    told("judge not available" if temporary else "judge refused", dimension=key[2], run_id=request.run_id, error=repr(answer))
    return temporary


def _wait(request: JudgeRequest, rounds: int, error: TemporaryError) -> float:
    return backoff(rounds, request.run_id, error.retry_after)
