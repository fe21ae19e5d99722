"""Owner: holds the open traces of its partitions, and is the only one that writes their runs and results.

Records are stored before they come here. :meth:`TraceOwner.fold` takes them into the states, :meth:`TraceOwner.tick` does what is due.
"""

import heapq
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from pipeline.model.result import Feedback, JudgeRequest, Judgment
from pipeline.model.run import RunClass
from pipeline.model.span import Span
from pipeline.model.version import StoredRun, StoredTrace, TraceKey, TraceVersion
from pipeline.runtime.guard import or_dead_letter, until_it_works
from pipeline.runtime.telemetry import Telemetry
from pipeline.runtime.topology import Record, Touched
from pipeline.stages.assemble import TraceState
from pipeline.stages.turn import Assembly, Turn, keys, settle, turn

BATCH: Final = 500
"""Traces that one write takes."""


class TraceStore(Protocol):
    """What an owner needs of the store."""

    async def written(self, trace_keys: Sequence[TraceKey]) -> set[TraceKey]:
        """Return those of the traces of which anything but spans is stored: folds, judgments, feedback that came first."""
        ...

    async def load(self, trace_keys: Sequence[TraceKey]) -> dict[TraceKey, StoredTrace]:
        """Return all that is stored of these traces."""
        ...

    async def unfinished(self) -> list[TraceKey]:
        """Return the traces that have facts no traces row accounts for, pending runs, or rows at a place they left."""
        ...

    async def misplaced(self) -> list[TraceKey]:
        """Return the traces that have weighted rows at a place their runs left."""
        ...

    async def write(self, versions: Sequence[TraceVersion]) -> None:
        """Write places, results, runs and traces, in this order."""
        ...

    async def bury(self, project: str, origin: str, reason: str, body: bytes) -> None:
        """Keep what could not be processed."""
        ...


class TraceOwner:
    """Folds the records of its traces, one at a time in one task: no locks, no races."""

    def __init__(
        self,
        store: TraceStore,
        assembly: Assembly,
        request: Callable[[JudgeRequest], Awaitable[None]],
        touch: Callable[[Iterable[Touched]], Awaitable[None]],
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._assembly = assembly
        self._request = request
        self._touch = touch
        self._telemetry = telemetry
        self._states: dict[TraceKey, TraceState] = {}
        self._wakes: dict[TraceKey, int] = {}
        self._agenda: list[tuple[int, TraceKey]] = []
        self._not_before = 0
        self._buried: list[tuple[TraceKey, str]] = []

    @property
    def open_traces(self) -> int:
        """How many traces wait for spans."""
        return sum(state.is_open for state in self._states.values())

    @property
    def pending_runs(self) -> int:
        """How many runs wait for a judgment."""
        return sum(
            run.live and run.run_class == RunClass.PENDING for state in self._states.values() for run in state.runs.values()
        )

    @property
    def next_wake(self) -> int | None:
        """When there is something to do even if nothing comes; None if nothing is awaited."""
        while self._agenda and self._wakes.get(self._agenda[0][1]) != self._agenda[0][0]:
            heapq.heappop(self._agenda)
        return max(self._agenda[0][0], self._not_before) if self._agenda else None

    async def recover(self, now: int) -> int:
        """Read the open traces and the pending runs back (design section 5). Returns how many.

        Nothing closes before one quiet period has passed: what was on its way when the owner stopped must be able to arrive.
        """
        unfinished = await self._store.unfinished()
        for start in range(0, len(unfinished), BATCH):
            for key, stored in (await self._store.load(unfinished[start : start + BATCH])).items():
                state = TraceState.stored(stored)
                state.runs = {run_id: _asked_anew(run, now) for run_id, run in state.runs.items()}
                self._states[key] = state
                self._wake(key, now)
        if unfinished:
            self._not_before = now + self._assembly.settings.quiet_period
        return len(unfinished)

    async def sweep(self, now: int) -> None:
        """Repeat the retirement of rows at former places (design section 3)."""
        strays = [key for key in await self._store.misplaced() if key not in self._states]
        for key, stored in (await self._store.load(strays)).items() if strays else ():
            state = TraceState.stored(stored)
            state.graded_facts = 0
            self._states[key] = state
            self._wake(key, now)

    async def fold(self, records: Sequence[Record], now: int) -> None:
        """Take stored records into the states of their traces."""
        by_trace: dict[TraceKey, list[Record]] = {}
        for record in records:
            by_trace.setdefault((record.project, record.trace_id), []).append(record)
        await self._look_up([key for key in by_trace if key not in self._states])
        for key, some in by_trace.items():
            state = self._states.setdefault(key, TraceState(*key))
            self._schedule(key, state, some, now)

    async def _look_up(self, unknown: Sequence[TraceKey]) -> None:
        """A trace that is not in memory is new, was closed, or had feedback before any span; one look-up for the whole batch tells."""
        if not unknown:
            return
        written = sorted(await until_it_works("look up traces", lambda: self._store.written(unknown)))
        if written:
            for key, stored in (await until_it_works("load traces", lambda: self._store.load(written))).items():
                self._states[key] = TraceState.stored(stored)

    def _schedule(self, key: TraceKey, state: TraceState, records: Sequence[Record], now: int) -> None:
        spans = [record for record in records if isinstance(record, Span)]
        state.add_spans(spans)
        told = False
        for record in records:
            if isinstance(record, Judgment):
                told |= state.add_judgment(record)
            elif isinstance(record, Feedback):
                told |= state.add_feedback(record)
        if told:
            self._wake(key, now)
        elif state.is_open:
            self._wake(key, state.last_received_ns + self._assembly.settings.quiet_period, sooner_only=key in self._wakes)
        elif key not in self._wakes:
            self._let_go(key)

    async def tick(self, now: int) -> int:
        """Do what is due by ``now``. Returns how many traces had something to write."""
        written = 0
        while now >= self._not_before and (due := self._due(now)):
            turns = [(key, made) for key in due if (made := self._turn(key, now)) is not None]
            versions = [made.version for _, made in turns if made.version is not None]
            if versions:
                await until_it_works("write runs and results", lambda versions=versions: self._store.write(versions))  # type: ignore[misc]
            for key, made in turns:
                await self._after(key, made)
            await self._bury()
            written += len(versions)
        return written

    def _due(self, now: int) -> list[TraceKey]:
        due: list[TraceKey] = []
        while self._agenda and self._agenda[0][0] <= now and len(due) < BATCH:
            at, key = heapq.heappop(self._agenda)
            if self._wakes.get(key) == at:
                del self._wakes[key]
                due.append(key)
        return due

    def _turn(self, key: TraceKey, now: int) -> Turn | None:
        state = self._states[key]
        made = or_dead_letter(lambda: turn(state, now, self._assembly), lambda reason: self._buried.append((key, reason)))
        if made is None:
            self._let_go(key)
        return made

    async def _after(self, key: TraceKey, made: Turn) -> None:
        state = self._states[key]
        if made.version is not None:
            settle(state, made.version)
            self._telemetry.graded(made.version)
            await self._touch(_touched(made.version))
        for request in made.requests:
            await self._request(request)
        if made.wake_at is None:
            self._let_go(key)
        else:
            self._wake(key, made.wake_at)

    async def _bury(self) -> None:
        for (project, trace_id), reason in self._buried:
            self._telemetry.dead_letter("assemble")
            await self._store.bury(project, "assemble", reason, trace_id.encode())
        self._buried.clear()

    def _wake(self, key: TraceKey, at: int, *, sooner_only: bool = False) -> None:
        if sooner_only and self._wakes.get(key, at + 1) <= at:
            return
        self._wakes[key] = at
        heapq.heappush(self._agenda, (at, key))

    def _let_go(self, key: TraceKey) -> None:
        self._states.pop(key, None)
        self._wakes.pop(key, None)


def _asked_anew(run: StoredRun, now: int) -> StoredRun:
    """A request that was outstanding when the owner stopped is made again, with all the time it was given then."""
    if run.run_class != RunClass.PENDING:
        return run
    return msgspec.structs.replace(run, requested_ns=now, deadline_ns=now + run.deadline_ns - run.requested_ns)


def _touched(version: TraceVersion) -> set[Touched]:
    written = {key.place for run in version.runs for key in keys(run)} | {one.key.place for one in version.retired}
    return {Touched(version.project, place.cohort, place.minute_ns) for place in written}
