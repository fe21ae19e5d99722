"""Embedded: all stages in one process on one store. The topology's topics are calls and queues here."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import structlog

from pipeline.model.result import JudgeRequest
from pipeline.model.time import MINUTE
from pipeline.model.topology import ASSEMBLE, GATE, JUDGING, Record
from pipeline.model.window import Touched
from pipeline.runtime.clock import Clock, Times
from pipeline.runtime.desk import Ask, JudgeDesk
from pipeline.runtime.facts import FactStore, insert_facts, store_facts
from pipeline.runtime.gate_owner import GateOwner, OwnedStore
from pipeline.runtime.gates import Gates
from pipeline.runtime.handover import Handover, publisher
from pipeline.runtime.intake import Accepted, Intake
from pipeline.runtime.messenger import Messenger, NotificationStore
from pipeline.runtime.owner import TraceOwner
from pipeline.runtime.record_desk import OpenSource, RecordDesk, as_it_is
from pipeline.runtime.telemetry import Metric, Telemetry
from pipeline.runtime.trace_store import TraceStore
from pipeline.runtime.windows import Evaluating
from pipeline.stages.turn import Assembly

BEAT: Final = 0.1
"""Seconds between looks at the clock while nothing arrives."""
SWEEP_EVERY: Final = 5 * MINUTE

log = structlog.get_logger(__name__)


class EmbeddedStore(FactStore, TraceStore, OwnedStore, NotificationStore, Protocol):
    """All that the embedded runtime needs of its store."""


class Embedded:
    """The pipeline in one process. ``intake`` takes what senders hand in; ``feed`` takes other records, already stored."""

    def __init__(
        self,
        store: EmbeddedStore,
        assembly: Assembly,
        ask: Ask,
        gates: Gates,
        messenger: Messenger,
        lengths: Sequence[int],
        clock: Clock,
        telemetry: Telemetry,
        concurrency: int,
        sources: Mapping[str, OpenSource] | None = None,
        redact: Callable[[Any], Any] = as_it_is,
    ) -> None:
        self._store = store
        self._clock = clock
        self._queue: asyncio.Queue[tuple[Sequence[Record], int]] = asyncio.Queue()
        """Stored records, and how many of them came through the intake."""
        self._handed = 0
        """Batches that were fed and are not folded yet."""
        self._folding = False
        self._swept_ns = 0
        self._tasks: list[asyncio.Task[None]] = []
        handover = Handover({ASSEMBLE.name: self._store_and_feed, JUDGING.name: self._judge, GATE.name: self._touch})
        self.intake = Intake(self._insert, self._take, clock)
        self.desk = JudgeDesk(ask, publisher(JUDGING, handover), clock, telemetry, concurrency)
        evaluating = Evaluating(assembly.quality_of, assembly.revision)
        self.gates = GateOwner(
            store, gates, messenger, lengths, assembly.gating_of, publisher(GATE, handover), evaluating=evaluating
        )
        self.records = RecordDesk(sources or {}, publisher(ASSEMBLE, handover), clock, telemetry, redact)
        self.owner = TraceOwner(store, assembly, publisher(ASSEMBLE, handover), telemetry, read=self.records.take)
        telemetry.gauge(Metric.TRACES_OPEN, lambda: self.owner.open_traces)
        telemetry.gauge(Metric.RUNS_PENDING, lambda: self.owner.pending_runs)

    async def _insert(self, records: Sequence[Accepted]) -> None:
        await insert_facts(self._store, records)

    async def _take(self, records: Sequence[Accepted]) -> None:
        await self._hand_over(records, len(records))

    async def _store_and_feed(self, records: Sequence[Record]) -> None:
        await store_facts(self._store, records)
        await self.feed(records)

    async def _judge(self, requests: Sequence[JudgeRequest]) -> None:
        for request in requests:
            self.desk.take(request)

    async def _touch(self, touched: Sequence[Touched]) -> None:
        self.gates.touch(touched)

    def _times(self) -> Times:
        return Times.single(self.intake.now(), self._clock.now())

    async def feed(self, records: Sequence[Record]) -> None:
        """Hand stored records to their owner."""
        await self._hand_over(records, 0)

    async def _hand_over(self, records: Sequence[Record], accepted: int) -> None:
        self._handed += 1
        await self._queue.put((records, accepted))

    async def start(self) -> None:
        """Read back what was open, then run until :meth:`stop`."""
        recovered = await self.owner.recover(self._clock.now())
        await self.gates.recover(self._clock.now())
        if recovered:
            log.info("recovered", traces=recovered)
        loops: tuple[Callable[[], Awaitable[None]], ...] = (self.intake.run, self._own, self._gate)
        self._tasks = [asyncio.ensure_future(loop()) for loop in loops]

    async def stop(self) -> None:
        """Stop after what is being written; what is left is taken up at the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.desk.close()
        await self.records.close()
        await self.gates.finish(self._gates_now())

    @property
    def failed(self) -> BaseException | None:
        """What ended one of the loops, which must never end; None while all is well."""
        ended = (task.exception() for task in self._tasks if task.done() and not task.cancelled())
        return next((error for error in ended if error is not None), None)

    async def settle(self) -> None:
        """Wait until nothing is left to do at the clock's present time. For clocks that are moved by hand.

        Raises:
            BaseException: whatever ended one of the loops.
        """
        while True:
            if self.failed is not None:
                raise self.failed
            if self._is_settled():
                return
            await asyncio.sleep(BEAT / 4)

    def _is_settled(self) -> bool:
        now = self._clock.now()
        wake = self.owner.next_wake
        waiting = self._folding or self.intake.busy or self._handed or self.desk.busy or self.records.busy
        return not waiting and (wake is None or wake > now) and self.gates.is_idle(self._gates_now(), now)

    def _gates_now(self) -> int:
        """The gates' clock: what the owner has not come to yet may belong to any window, so no window is final before."""
        return min(self.owner.done_until(self._times()).values())

    async def _own(self) -> None:
        while True:
            records: Sequence[Record] = ()
            accepted = 0
            # Not wait_for: before Python 3.12 it swallows a cancellation that meets a batch, and a stop would wait for ever.
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT):
                    records, accepted = await self._queue.get()
            self._folding = True
            if records:
                await self.owner.fold(records, self._times())
                self.intake.folded(accepted)
                self._handed -= 1
            await self.owner.tick(self._times())
            await self.owner.tell_clocks(self._times())
            await self._sweep()
            self._folding = False

    async def _sweep(self) -> None:
        now = self._clock.now()
        if now - self._swept_ns >= SWEEP_EVERY:
            self._swept_ns = now
            await self.owner.sweep(self._times())

    async def _gate(self) -> None:
        while True:
            now, wall = self._gates_now(), self._clock.now()
            await self.gates.step(now, wall)
            await asyncio.sleep(BEAT if not self.gates.is_idle(now, wall) else 2 * BEAT)
