"""Consumer: one node's membership of its consumer group.

Faust hands over records and says when partitions come and go; what is done with them is a :class:`~pipeline.runtime.holding.Holding`'s.
The rules it keeps, and what each of them prevents, are in docs/adr/0005.
"""

import asyncio
import tempfile
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import faust
import structlog
from faust.types import TP

from collectors.kafka.records import Incoming
from pipeline.config.kafka import KafkaSettings
from pipeline.model.time import SECOND
from pipeline.model.topology import Node
from pipeline.runtime.backlog import Backlog
from pipeline.runtime.clock import Clock, Times
from pipeline.runtime.faust.application import application
from pipeline.runtime.faust.assignment import Assignment, Partition, Position, first_positions
from pipeline.runtime.faust.transport import incoming
from pipeline.runtime.fence import Fence, LostOwnershipError
from pipeline.runtime.holding import Hold, Holding

TAKE: Final = 32
"""Records that are handed over at once at most."""
WITHIN: Final = 0.02
"""Seconds between looks at what was buffered."""
BEAT: Final = 0.25
"""Seconds between ticks: silence must close traces and clear gates too."""
FIRST_DELAY: Final = 0.5
GREATEST_DELAY: Final = 30.0
UNHEARD_NS: Final = 90 * SECOND
"""How long a member may have partitions and not be told to begin; rebalances take seconds."""
GRACE: Final = 5.0
"""Seconds that what is under way is given at a stop, and then the brokers to hear of it."""

log = structlog.get_logger(__name__)


class Consumer:
    """Reads a node's topic as a member of its group, from :meth:`start` to :meth:`stop`."""

    def __init__(
        self, node: Node, settings: KafkaSettings, hold: Hold, clock: Clock, environment: Mapping[str, str], beat: float = BEAT
    ) -> None:
        self.node = node
        self._hold = hold
        self._clock = clock
        self._beat = beat
        self._folder = tempfile.TemporaryDirectory(prefix="tracegrade-")
        self._app = application(node, settings, environment, self._folder.name)
        self._taking = asyncio.Lock()
        self._fence = Fence()
        self._assignment: Assignment | None = None
        self._former: list[Holding] = []
        """Holdings of assignments that are gone, not closed yet."""
        self._unacknowledged: dict[Partition, deque[faust.EventT[bytes]]] = {}
        self._ticker: asyncio.Task[None] | None = None
        self._unheard_ns = 0
        self._behind = 0
        self.backlog: Final = Backlog(node.name, settings.retention)
        self._deaf: RuntimeError | None = None
        self._app.on_partitions_revoked.connect(self._revoked, weak=False)
        self._app.on_rebalance_complete.connect(self._rebalanced, weak=False)
        topic = self._app.topic(node.reads.name, value_serializer="raw", key_serializer="raw", value_type=bytes)
        self._app.agent(topic, name=node.name, concurrency=1)(self._consume)

    @property
    def ready(self) -> bool:
        """Whether an assignment, of none or some partitions, is read back and worked on."""
        return self._assignment is not None

    @property
    def owned(self) -> frozenset[Partition]:
        """The partitions that are owned and read back."""
        return frozenset(self._assignment.positions) if self._assignment is not None else frozenset()

    @property
    def behind(self) -> int:
        """Records of the owned partitions that were there at the last beat and are not done with."""
        return self._behind if self._assignment is not None else 0

    @property
    def failed(self) -> BaseException | None:
        """What ended the app or the ticker, which must never end; None while all is well."""
        if self._deaf is not None:
            return self._deaf
        if self._app.crashed:
            return self._app.crash_reason or RuntimeError(f"the {self.node.name} stage crashed")
        if self._ticker is not None and self._ticker.done() and not self._ticker.cancelled():
            return self._ticker.exception()
        return None

    async def start(self) -> None:
        """Join the group."""
        self._app.finalize()
        await self._app.start()
        self._ticker = asyncio.create_task(self._tick_for_ever())

    async def stop(self) -> None:
        """Finish what is being done, commit what was acknowledged, and leave the group."""
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        with suppress(TimeoutError):  # what waits for a store that is away is left to whoever has the partitions next
            async with asyncio.timeout(GRACE), self._taking:
                pass
        self._disown()
        async with self._taking:
            await self._let_go()
        with suppress(TimeoutError):  # brokers that are away notice by themselves that the member is gone
            async with asyncio.timeout(GRACE):
                await self._app.stop()
        self._folder.cleanup()

    # What the group says

    async def _revoked(self, *_: Any, **__: Any) -> None:
        """Nothing but this: whoever waits here holds up every member of the group."""
        self._disown()

    async def _rebalanced(self, *_: Any, **__: Any) -> None:
        """Awaited before any record of the new assignment, also where nothing new is in its partitions."""
        await self._take_over()

    async def _take_over(self) -> None:
        """Read back what is open in the assigned partitions, then own them, unless they are gone again by then."""
        self._disown()
        fence = self._fence = Fence()
        await self._let_go()
        delay = FIRST_DELAY
        while fence.stands:
            try:
                await self._read_back(fence)
            except LostOwnershipError:
                return
            except Exception as error:
                await asyncio.sleep(delay)
                if fence.stands:  # else the group is on the move again, and what failed is of no interest
                    log.exception("partitions cannot be taken over yet", stage=self.node.name, error=repr(error))
                delay = min(delay * 2, GREATEST_DELAY)
            else:
                return

    def _disown(self) -> None:
        self._fence.fall()
        if self._assignment is not None:
            self._former.append(self._assignment.holding)
            self._assignment = None

    async def _let_go(self) -> None:
        """End what is still done for assignments that are gone."""
        while self._former:
            await self._former.pop().close()

    async def _read_back(self, fence: Fence) -> None:
        generation = self._app.consumer_generation_id
        owned = [tp for tp in self._app.consumer.assignment() if tp.topic == self.node.reads.name]
        self._unacknowledged = {tp.partition: deque() for tp in owned}
        holding = self._hold([tp.partition for tp in owned], fence, partial(self._acknowledge, fence))
        try:
            await holding.recover()
            positions = await self._positions(owned)
            if generation != self._app.consumer_generation_id:
                fence.fall()
            fence.check()
        except BaseException:
            await holding.close()
            raise
        self._assignment = Assignment(generation, fence, holding, positions)
        log.info("partitions owned", stage=self.node.name, partitions=sorted(positions))

    async def _positions(self, owned: Sequence[TP]) -> dict[Partition, Position]:
        if not owned:
            return {}
        consumer: Any = self._app.consumer  # its protocol does not name the one method that tells what is committed
        sought = await consumer.seek_to_committed()
        committed = {tp.partition: sought.get(tp) for tp in owned}
        earliest = await consumer.earliest_offsets(*owned)
        positions = first_positions(committed, {tp.partition: offset for tp, offset in earliest.items()})
        for partition, position in positions.items():  # Faust drops what is read again unless it is told
            await consumer.seek(TP(self.node.reads.name, partition), position.next_offset)
        return positions

    # Records

    async def _consume(self, stream: faust.StreamT[bytes]) -> None:
        batches: Any = stream  # its protocol does not name noack_take
        async for events in batches.noack_take(TAKE, within=WITHIN):
            async with self._taking:
                assignment = self._assignment
                if assignment is not None:
                    await self._safely(assignment, self._take(assignment, events))

    async def _take(self, assignment: Assignment, events: Sequence[faust.EventT[bytes]]) -> None:
        wanted: list[Incoming] = []
        gaps: set[Partition] = set()
        for event in events:
            message = event.message
            expected = assignment.expects(message.partition, message.offset, message.generation_id)
            if expected is None:
                gaps.add(message.partition)
            elif expected:
                wanted.append(incoming(message))
                assignment.took(message.partition, message.offset, wanted[-1].timestamp_ns)
                self._unacknowledged[message.partition].append(event)
        if wanted:
            assignment.fence.check()
            await assignment.holding.take(wanted)
            for one in wanted:
                assignment.done(one.partition, one.offset, one.timestamp_ns)
        for partition in gaps:
            await self._go_back(assignment, partition)

    async def _go_back(self, assignment: Assignment, partition: Partition) -> None:
        """Records between are missing: they are asked for again, unless the broker itself has them no more."""
        position, tp = assignment.positions[partition], TP(self.node.reads.name, partition)
        earliest = (await self._app.consumer.earliest_offsets(tp))[tp]
        if earliest > position.next_offset:
            log.error("records were deleted unread", topic=tp.topic, partition=partition, count=earliest - position.next_offset)
            assignment.pass_over(partition, earliest)
        log.warning("going back over a gap", topic=tp.topic, partition=partition, offset=position.next_offset)
        await self._app.consumer.seek(tp, position.next_offset)

    def _acknowledge(self, fence: Fence, partition: Partition, offset: int) -> None:
        """In order: every record of the partition up to this one; nothing on behalf of an assignment that is gone."""
        waiting = self._unacknowledged.get(partition, deque()) if fence.stands else deque()
        while waiting and waiting[0].message.offset <= offset:
            waiting.popleft().ack()

    # Time

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._beat)
            assignment = self._assignment
            if assignment is None:
                self._listen_for_the_group()
                continue
            self._unheard_ns = 0
            times = await self._times(assignment)
            if times is not None and assignment is self._assignment:
                await self._safely(assignment, assignment.holding.tick(times))

    def _listen_for_the_group(self) -> None:
        """A member that the group counts on, and that was never told to begin, ends: whoever restarts it does what Faust did not."""
        if self._fence.stands or not self._app.consumer.assignment():
            self._unheard_ns = 0
            return
        now = self._clock.now()
        self._unheard_ns = self._unheard_ns or now
        if now - self._unheard_ns > UNHEARD_NS:
            self._deaf = RuntimeError(f"the {self.node.name} stage was given partitions and never told to begin")

    async def _times(self, assignment: Assignment) -> Times | None:
        """None where the broker does not say where the partitions end: then nobody knows whether they lag."""
        wall = self._clock.now()
        tps = [TP(self.node.reads.name, partition) for partition in assignment.positions]
        try:
            ends = await self._app.consumer.highwaters(*tps) if tps else {}
        except Exception as error:  # noqa: BLE001 - whatever a client raises while its broker is away
            log.warning("the ends of partitions are unknown", stage=self.node.name, error=repr(error))
            return None
        known = {tp.partition: end or 0 for tp, end in ends.items()}
        self._behind = assignment.behind(known)
        self.backlog.look(assignment.oldest_unread(known), wall)
        return Times(assignment.partition_times(wall, known), wall)

    async def _safely(self, assignment: Assignment, work: Awaitable[None]) -> None:
        """No exception leaves a loop: after one that nobody foresaw, everything is read back from the store and taken again.

        Not where the assignment is gone: the next one reads back anyway, and to take over now would own what others may have by then.
        """
        try:
            await work
        except LostOwnershipError:
            return
        except Exception as error:
            log.exception("a stage starts over from what is stored", stage=self.node.name, error=repr(error))
            if assignment.fence.stands:
                await self._take_over()
