"""Judging: the judge node on its partitions of the judge topic."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final

from collectors.kafka.records import Incoming
from pipeline.runtime.clock import Times
from pipeline.runtime.desk import JudgeDesk
from pipeline.runtime.fence import Fence
from pipeline.runtime.holding import Acknowledge, DeadLetters

IN_FLIGHT: Final = 256
"""Requests that are judged at once at most; what is behind them waits in the topic."""


class Judging:
    """Works on many requests at once and acknowledges them in order, each after its judgments are with the owner of the trace."""

    def __init__(self, desk: JudgeDesk, dead_letters: DeadLetters, acknowledge: Acknowledge, fence: Fence) -> None:
        self._desk = desk
        self._dead_letters = dead_letters
        self._acknowledge = acknowledge
        self._fence = fence
        self._begun: defaultdict[int, deque[tuple[int, set[asyncio.Task[None]]]]] = defaultdict(deque)
        self._tasks: set[asyncio.Task[None]] = set()

    async def recover(self) -> None:
        """Nothing to read back: what was asked and not acknowledged comes again, and its paid replies are in the store."""

    async def take(self, incoming: Sequence[Incoming]) -> None:
        """Begin to judge; wait only while too much has been begun."""
        for one in incoming:
            self._fence.check()
            requests = (await self._dead_letters.read(one)).records
            tasks = {task for request in requests if (task := self._desk.take(request)) is not None}
            self._begun[one.partition].append((one.offset, tasks))
            self._tasks |= tasks
            for task in tasks:
                task.add_done_callback(self._done)
            self._acknowledge_done()
            while len(self._tasks) >= IN_FLIGHT and self._fence.stands:
                await asyncio.wait(self._tasks, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._acknowledge_done()

    def _acknowledge_done(self) -> None:
        if not self._fence.stands:
            return
        for partition, begun in self._begun.items():
            while begun and all(task.done() for task in begun[0][1]):
                self._acknowledge(partition, begun.popleft()[0])

    async def tick(self, times: Times) -> None:
        """Nothing is due by itself: the owner of a run knows its deadline."""

    async def close(self) -> None:
        """Stop asking; what is in flight is asked again by whoever has its partition."""
        self._fence.fall()
        await self._desk.close()
