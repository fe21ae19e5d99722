"""Assembling: the assemble node on its partitions of the traces topic."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from collectors.dialects.annotations import carried
from collectors.kafka.records import Incoming
from pipeline.errors import PermanentError
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.topology import TRACES, Publish, Record
from pipeline.runtime.clock import Clock, Times
from pipeline.runtime.facts import FactStore, store_facts
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.holding import Acknowledge, DeadLetters
from pipeline.runtime.owner import TraceOwner
from pipeline.runtime.record_desk import RecordDesk

SWEEP_EVERY: Final = 5 * MINUTE

log = structlog.get_logger(__name__)


class Assembling:
    """Stores facts, folds them, and acknowledges: an offset is committed only after what it carried is stored (design section 5)."""

    def __init__(
        self,
        store: FactStore,
        owner: TraceOwner,
        publish: Publish,
        dead_letters: DeadLetters,
        acknowledge: Acknowledge,
        clock: Clock,
        records: RecordDesk | None = None,
    ) -> None:
        """Take who reads record sources for the owner, if anybody."""
        self._records = records
        self._store = store
        self._owner = owner
        self._publish = publish
        self._dead_letters = dead_letters
        self._acknowledge = acknowledge
        self._clock = clock
        self._folding = asyncio.Lock()
        """The owner is used by one at a time; records are stored beside it."""
        self._swept_ns = 0

    async def recover(self) -> None:
        """Read the open traces and the pending runs back."""
        began = self._clock.now()
        traces = await self._owner.recover(began)
        log.info("read back", traces=traces, seconds=round((self._clock.now() - began) / SECOND, 3))

    async def take(self, incoming: Sequence[Incoming]) -> None:
        """Store what the records carry, fold it, and acknowledge them."""
        taken = [(one, await self._read(one)) for one in incoming]
        await self._store_all(taken)
        newest = {one.partition: one.timestamp_ns for one in incoming}
        async with self._folding:
            await self._owner.fold([record for _, some in taken for record in some], Times(newest, self._clock.now()))
        for one in incoming:
            self._acknowledge(one.partition, one.offset)

    async def _read(self, one: Incoming) -> list[Record]:
        """Return the records of owned traces, and what carriers among them say of others.

        What is of other traces is sent on to their owners: it is about them, or came under another number of partitions.
        """
        found: Sequence[Record] = (await self._dead_letters.read(one)).records
        if about := carried(found):
            found = [*found, *about]
        strays = [record for record in found if not self._owner.owns((record.project, record.trace_id))]
        if not strays:
            return list(found)
        await until_it_works("send records on", lambda: self._publish(TRACES, strays))
        return [record for record in found if self._owner.owns((record.project, record.trace_id))]

    async def _store_all(self, taken: list[tuple[Incoming, list[Record]]]) -> None:
        """One insert for all; if the store refuses it for good, each on its own, so that one poison record costs no other."""
        try:
            await store_facts(self._store, [record for _, some in taken for record in some])
        except PermanentError as error:
            if len(taken) > 1:
                for one in taken:
                    await self._store_all([one])
                return
            incoming, records = taken[0]
            await self._dead_letters.add(incoming, str(error))
            records.clear()

    async def tick(self, times: Times) -> None:
        """Close what is due and write it, tell the clocks, sweep."""
        async with self._folding:
            await self._owner.tick(times)
            await self._owner.tell_clocks(times)
            if times.wall - self._swept_ns >= SWEEP_EVERY:
                self._swept_ns = times.wall
                await self._owner.sweep(times)

    async def close(self) -> None:
        """Let go; all that is held is in the store too, and what was being read is asked again by whoever has the traces."""
        if self._records is not None:
            await self._records.close()
