"""RecordDesk: asks record sources beside the pipeline, and gives what they answer back to the owner of the trace as evidence (docs/adr/0008)."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from collectors.records.ask import LARGEST, Ask
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.evidence import Evidence, Found, Question, answered
from pipeline.model.topology import TRACES, Publish
from pipeline.runtime.clock import Clock
from pipeline.runtime.fence import LostOwnershipError
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.telemetry import Metric, Telemetry

IN_FLIGHT: Final = 10_000
"""Questions that are being answered at once; what is more is asked again by its trace, which waits."""
FIRST_DELAY: Final = 0.2
REMEMBERED: Final = 3600.0
"""Seconds for which an answer that was given back is on its way to its owner, however far that one is behind; then it is asked for anew."""

log = structlog.get_logger(__name__)


class OpenSource(msgspec.Struct, frozen=True):
    """A source that can be asked. Times are in seconds."""

    ask: Ask
    timeout: float
    """Of one attempt."""
    deadline: float
    """From the first attempt."""
    concurrency: int


def as_it_is(value: Any) -> Any:
    """Return what was read, where nothing is redacted."""
    return value


class RecordDesk:
    """Answers every question by its deadline, one way or the other, each at most once at a time."""

    def __init__(
        self,
        sources: Mapping[str, OpenSource],
        publish: Publish,
        clock: Clock,
        telemetry: Telemetry,
        redact: Callable[[Any], Any] = as_it_is,
    ) -> None:
        """Take what is put in place of secrets in what was read, before it goes anywhere."""
        self._sources = sources
        self._publish = publish
        self._clock = clock
        self._telemetry = telemetry
        self._redact = redact
        self._slots = {name: asyncio.Semaphore(source.concurrency) for name, source in sources.items()}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ready: list[Evidence] = []
        self._giving = asyncio.Lock()
        self._given: dict[str, float] = {}
        """When the answers to questions were given back, the longest ago first."""

    @property
    def busy(self) -> bool:
        """Whether anything is being read."""
        return bool(self._tasks)

    def take(self, questions: Sequence[Question]) -> None:
        """Start answering what nobody is answering yet, and whose answer is not on its way."""
        now = asyncio.get_running_loop().time()
        while self._given and now - next(iter(self._given.values())) > REMEMBERED:
            del self._given[next(iter(self._given))]
        for question in questions:
            key = question.id
            if key not in self._tasks and key not in self._given and len(self._tasks) < IN_FLIGHT:
                self._tasks[key] = task = asyncio.create_task(self._answer(question))
                task.add_done_callback(partial(self._done, key))

    def _done(self, key: str, task: asyncio.Task[None]) -> None:
        del self._tasks[key]
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, LostOwnershipError):
            log.error("evidence could not be kept", error=repr(error))

    async def close(self) -> None:
        """Stop; what was not answered is asked again after the next start, for its trace is still open."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, question: Question) -> None:
        evidence = await self._read(question)
        self._telemetry.add(Metric.RECORD_READS, source=question.source, found=evidence.found)
        await self._give_back(evidence)

    async def _give_back(self, evidence: Evidence) -> None:
        """Publish an answer, together with those that became ready while others were published: an insert each would be too many."""
        self._ready.append(evidence)
        async with self._giving:
            batch, self._ready = self._ready, []
            if batch:
                await until_it_works("give evidence back", lambda: self._publish(TRACES, batch))
                self._given |= dict.fromkeys((one.id for one in batch), asyncio.get_running_loop().time())

    async def _read(self, question: Question) -> Evidence:
        source = self._sources.get(question.source)
        if source is None:
            return self._failed(question, "no such source is configured where the trace is graded")
        # Whatever a source raises costs this one read.
        (read,) = await asyncio.gather(self._by_deadline(source, question), return_exceptions=True)
        if isinstance(read, asyncio.CancelledError):
            raise read
        if isinstance(read, BaseException):
            known = isinstance(read, TemporaryError | PermanentError)
            log.warning("a record could not be read", source=question.source, error=str(read) if known else type(read).__name__)
            return self._failed(question, str(read) if known else type(read).__name__)
        if read is None:
            return answered(question, Found.ABSENT, self._clock.now())
        return answered(question, Found.RECORD, self._clock.now(), body=read)

    def _failed(self, question: Question, why: str) -> Evidence:
        return answered(question, Found.FAILED, self._clock.now(), error=why[:300])

    async def _by_deadline(self, source: OpenSource, question: Question) -> str | None:
        key = json.loads(question.key, parse_float=Decimal)
        delay, last = FIRST_DELAY, "every slot of the source was taken"
        try:
            async with asyncio.timeout(source.deadline):
                while True:
                    try:
                        async with self._slots[question.source], asyncio.timeout(source.timeout):
                            return self._written(await source.ask(key))
                    except TemporaryError as error:
                        last, wait = str(error), error.retry_after
                    except TimeoutError:
                        last, wait = f"no answer within {source.timeout:g} s", None
                    await asyncio.sleep(delay if wait is None else wait)
                    delay *= 2
        except TimeoutError:
            raise TemporaryError(f"{last}; given up after {source.deadline:g} s") from None

    def _written(self, value: Any) -> str | None:
        """Return what was read as JSON, without secrets; None where there is nothing."""
        if value is None:
            return None
        try:
            body = _encode(self._redact(value)).decode()
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            raise PermanentError(f"the answer is nothing that JSON can say ({type(error).__name__})") from None
        if len(body) > LARGEST:
            raise PermanentError(f"the answer has more than {LARGEST} bytes")
        return body


_encode: Final = msgspec.json.Encoder(order="sorted", decimal_format="number").encode
