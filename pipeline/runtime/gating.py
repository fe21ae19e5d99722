"""Gating: the gate node on its partitions of the touched topic."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from collectors.kafka.records import Incoming
from pipeline.model.time import SECOND
from pipeline.runtime.clock import Clock, Times
from pipeline.runtime.gate_owner import GateOwner
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.holding import Acknowledge, DeadLetters

CLOCKS_EVERY: Final = SECOND


class Gating:
    """Brings what the touched minutes add up to up to date, and acknowledges them after that."""

    def __init__(
        self,
        owner: GateOwner,
        clocks: Callable[[], Awaitable[Mapping[int, int]]],
        partitions: int,
        dead_letters: DeadLetters,
        acknowledge: Acknowledge,
        clock: Clock,
    ) -> None:
        """Take how many partitions the traces topic has: the gates' clock is the least of all of them (design section 5)."""
        self._owner = owner
        self._clocks = clocks
        self._partitions = partitions
        self._dead_letters = dead_letters
        self._acknowledge = acknowledge
        self._clock = clock
        self._now = 0
        self._read_ns = 0
        self._taken: dict[int, int] = {}

    async def recover(self) -> None:
        """Read gate states, trips and notifications back."""
        await self._owner.recover(self._clock.now())

    async def take(self, incoming: Sequence[Incoming]) -> None:
        """Note what was touched."""
        for one in incoming:
            self._owner.touch((await self._dead_letters.read(one)).records)
            self._taken[one.partition] = one.offset

    async def tick(self, times: Times) -> None:
        """Do what is due, and acknowledge what was taken before."""
        await self._look_at_the_clocks(times.wall)
        taken = dict(self._taken)
        if self._owner.is_idle(self._now, times.wall) or await self._owner.step(self._now, times.wall):
            for partition, offset in taken.items():
                self._acknowledge(partition, offset)
                if self._taken[partition] == offset:
                    del self._taken[partition]

    async def _look_at_the_clocks(self, wall: int) -> None:
        """A partition that nobody owns yet holds all gates: anything may be in it. The gates' clock never goes back."""
        if wall - self._read_ns < CLOCKS_EVERY:
            return
        self._read_ns = wall
        clocks = await until_it_works("read clocks", self._clocks)
        self._now = max(self._now, min(clocks.get(partition, 0) for partition in range(self._partitions)))

    async def close(self) -> None:
        """Let go; what is not written yet is derived from the rows by whoever has the agents."""
