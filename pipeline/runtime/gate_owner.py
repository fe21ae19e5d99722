"""Gate owner: the only one that writes minutes, windows, gate states, trips, notifications and golden candidates of its agents.

It is told which minutes were touched, and derives the same from the rows at its start and every 30 s, so a lost message costs 30 s.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Protocol

import structlog

from pipeline.errors import TemporaryError
from pipeline.model.run import Place
from pipeline.model.time import DAY, MINUTE, SECOND
from pipeline.model.topology import TRIPS, Publish
from pipeline.model.window import Touched
from pipeline.runtime.gates import Gates, GateStore, Owns, everything, with_gating
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.messenger import Messenger
from pipeline.runtime.promoter import GoldenStore, promote
from pipeline.runtime.windows import Evaluating, Minutes, WindowStore, recompute
from pipeline.stages.gate_hard import Failure

DERIVE_EVERY: Final = 30 * SECOND
MARGIN: Final = 5 * MINUTE
"""How much older than the last derivation a row may be and still be looked at: clocks differ, and inserts take their time."""
LATE: Final = 2 * DAY
"""How long after its minute a run may still begin to fail and be found: traces are open for a day at most."""

log = structlog.get_logger(__name__)


class OwnedStore(WindowStore, GateStore, GoldenStore, Protocol):
    """What a gate owner needs of the store, besides what its parts need."""

    async def derived(self) -> dict[int, int]:
        """Return up to when the rows were derived from, by partition of the agents."""
        ...

    async def write_derived(self, partitions: Collection[int], at_ns: int) -> None:
        """Write up to when the rows were derived from; what was written later stays."""
        ...

    async def stale_minutes(self, since_ns: int) -> list[tuple[str, Place]]:
        """Return (project, place) of the minutes, with a row stored since then, whose stored fingerprint differs from their results."""
        ...

    async def failures(self, touched: Sequence[Touched]) -> list[Failure]:
        """Return the failing code results of these minutes."""
        ...

    async def untripped_failures(self, since_ns: int) -> list[Failure]:
        """Return the failing code results, in minutes since then, whose run no trip names."""
        ...


class GateOwner:
    """Brings everything that runs add up to up to date, one step at a time in one task."""

    def __init__(
        self,
        store: OwnedStore,
        gates: Gates,
        messenger: Messenger,
        lengths: Sequence[int],
        gating_of: Callable[[str, str], frozenset[str]],
        publish: Publish,
        owns: Owns = everything,
        partitions: Collection[int] = (0,),
        evaluating: Evaluating = Evaluating(),  # noqa: B008 - a constant
    ) -> None:
        """Take which checks gate by (project, agent), which agents are owned, in which partitions these are, and how windows are evaluated."""
        self._store = store
        self._gates = gates
        self._messenger = messenger
        self._lengths = lengths
        self._gating_of = gating_of
        self._evaluating = evaluating
        self._publish = publish
        self._owns = owns
        self._touched: set[Touched] = set()
        self._partitions = partitions
        self._derived_ns = 0
        """Up to when all that follows from the rows is done."""
        self._derive_at_ns = 0
        self._stepping = False

    def touch(self, touched: Iterable[Touched]) -> None:
        """Note that minutes have new results; those of agents that another process owns now are derived there."""
        self._touched.update(one for one in touched if self._owns(one.project, one.cohort.agent))

    async def recover(self, now: int) -> None:
        """Read gate states, trips and notifications back, and from when on the rows have to be derived from."""
        derived = await until_it_works("read clocks", self._store.derived)
        known = min((derived.get(partition, 0) for partition in self._partitions), default=0)
        self._derived_ns = known if known <= now else 0  # a clock that was ahead says nothing
        await until_it_works("read gates back", lambda: self._gates.recover(self._owns))
        await until_it_works("read notifications back", lambda: self._messenger.recover(now, self._owns))

    def is_idle(self, now: int, wall: int) -> bool:
        """Whether nothing is to be done at these times; see :meth:`step`."""
        if self._stepping or self._touched or self._gates.unannounced or self._is_deriving(wall):
            return False
        return _is_ahead(self._gates.next_wake, now) and _is_ahead(self._messenger.next_wake, wall)

    def _is_deriving(self, wall: int) -> bool:
        return wall >= self._derive_at_ns

    async def step(self, now: int, wall: int) -> bool:
        """Do what is due. ``now`` is the gates' clock, the least of all partitions; ``wall`` paces derivation and sending.

        Returns whether everything that was touched is up to date. Where the store has temporary trouble, nothing is forgotten: the next step does it again.
        """
        touched, self._touched = self._touched, set()
        self._stepping, deriving = True, self._is_deriving(wall)
        try:
            await self._bring_up_to_date(*await self._derived(touched, deriving=deriving), now)
            if deriving:
                await self._store.write_derived(self._partitions, wall)
                self._derived_ns, self._derive_at_ns = wall, wall + DERIVE_EVERY
            await self._messenger.send_due(wall)
        except TemporaryError as error:
            log.warning("gates wait for the store", error=str(error))
            self._touched |= touched
            return False
        else:
            return True
        finally:
            self._stepping = False

    async def finish(self, now: int) -> None:
        """Bring everything up to date before a stop, and send nothing: what is due is taken up at the next start."""
        try:
            await self._bring_up_to_date(*await self._derived(self._touched, deriving=True), now)
        except TemporaryError as error:
            log.warning("minutes are left to the next start", error=str(error))

    async def _derived(self, touched: set[Touched], *, deriving: bool) -> tuple[list[Touched], list[Failure]]:
        """Add to what was told what the rows themselves say, at the start and then every 30 s."""
        if not deriving:
            return sorted(touched), []
        stale = await self._store.stale_minutes(max(self._derived_ns - MARGIN, 0))
        failures = await self._store.untripped_failures(max(self._derived_ns - LATE, 0))
        derived = {Touched(project, place.cohort, place.minute_ns) for project, place in stale}
        owned = {one for one in derived if self._owns(one.project, one.cohort.agent)}
        return sorted(touched | owned), [one for one in failures if self._owns(one.project, one.cohort.agent)]

    async def _bring_up_to_date(self, touched: Sequence[Touched], failures: Sequence[Failure], now: int) -> None:
        """Do all that follows from the touched minutes, and write these last: what a crash leaves undone is derived from them again."""
        minutes: Minutes = {}
        if touched:
            minutes = await recompute(
                self._store, touched, self._lengths, lambda window: self._gates.is_final(window, now), self._evaluating
            )
            failures = [*failures, *await self._store.failures(touched)]
        await self._gates.step(touched, with_gating(failures, self._gating_of), now)
        if self._gates.unannounced:
            await self._publish(TRIPS, self._gates.unannounced)
        await self._messenger.announce(self._gates.unannounced)
        self._gates.unannounced.clear()
        if touched:
            await promote(self._store, touched, self._owns)
        if minutes:
            await self._store.write_minutes(minutes)


def _is_ahead(wake: int | None, now: int) -> bool:
    return wake is None or wake > now
