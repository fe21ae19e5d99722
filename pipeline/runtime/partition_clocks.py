"""Partition clocks: up to when everything that was due is written, as it is stored. Gates and a later start go by them."""

from collections.abc import Collection, Mapping
from typing import Final

from pipeline.model.time import MINUTE, SECOND
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.trace_store import TraceStore

CLOCKS_EVERY: Final = SECOND
MARGIN: Final = 15 * MINUTE
"""How far the clocks of receivers, owners and store may be from each other without anything being overlooked at a start or a sweep."""


class PartitionClocks:
    """The clocks of all partitions as they were stored last, as far as their owner knows."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._stored: dict[int, int] = {}
        self._told_ns = 0

    async def read(self, owned: Collection[int], wall: int) -> Mapping[int, int]:
        """Return the clocks. A partition that is new begins at the least of the others, where its traces were before their number grew.

        That is written before any record is taken, so that what is older than it has the clock put back.
        """
        self._stored = dict(await until_it_works("read clocks", self._store.clocks))
        if new := dict.fromkeys(set(owned) - self._stored.keys(), min(self._stored.values(), default=0)):
            await self._write(new, wall)
        return self._stored

    async def tell(self, clocks: Mapping[int, int], wall: int) -> None:
        """Write the clocks, once a second."""
        if clocks and wall - self._told_ns >= CLOCKS_EVERY:
            self._told_ns = wall
            await self._write(clocks, wall)

    async def put_back(self, clocks: Mapping[int, int], wall: int) -> None:
        """Write those that are so far behind what is stored that a start would overlook something."""
        if behind := {partition: now for partition, now in clocks.items() if now < self._stored.get(partition, 0) - MARGIN}:
            await self._write(behind, wall)

    async def _write(self, clocks: Mapping[int, int], wall: int) -> None:
        await until_it_works("write clocks", lambda: self._store.write_clocks(clocks, wall))
        self._stored |= clocks
