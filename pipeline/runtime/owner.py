"""Owner: holds the open traces of its partitions, and is the only one that writes their runs and results.

Records are stored before they come here. :meth:`TraceOwner.fold` takes them into the states, :meth:`TraceOwner.tick` does what is due.
"""

import heapq
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from pipeline.errors import PermanentError
from pipeline.model.result import Feedback, JudgeRequest, Judgment
from pipeline.model.run import RunClass
from pipeline.model.span import Span
from pipeline.model.version import StoredRun, StoredTrace, TraceKey, TraceVersion
from pipeline.model.window import Touched
from pipeline.runtime.guard import or_dead_letter, until_it_works
from pipeline.runtime.telemetry import Telemetry
from pipeline.model.topology import Record
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
        self._in_hand: int | None = None
        self._buried: list[tuple[TraceKey, str]] = []
        self._poisoned: set[TraceKey] = set()

    @property
    def open_traces(self) -> int:
        """How many traces wait for spans."""
        return sum(state.is_open for state in self._states.values())

    @property
    def pending_runs(self) -> int:
        """How many runs wait for a judgment."""
        return sum(map(_pending, self._states.values()))

    @property
    def next_wake(self) -> int | None:
        """When there is something to do even if nothing comes; None if nothing is awaited."""
        while self._agenda and self._wakes.get(self._agenda[0][1]) != self._agenda[0][0]:
            heapq.heappop(self._agenda)
        return max(self._agenda[0][0], self._not_before) if self._agenda else None

    def done_until(self, now: int) -> int:
        """Return up to when everything that was due is written: the owner's clock, as the gates may believe it (design section 5)."""
        held = [self._in_hand] if self._in_hand is not None else []
        if self.next_wake is not None:
            held.append(self._agenda[0][0])
        return min([now, *held])

    async def recover(self, now: int) -> int:
        """Read the open traces and the pending runs back (design section 5). Returns how many.

        Nothing closes before one quiet period has passed: what was on its way when the owner stopped must be able to arrive.
        """
        unfinished = await self._store.unfinished()
        for start in range(0, len(unfinished), BATCH):
            for key, stored in (await self._store.load(unfinished[start : start + BATCH])).items():
                state = TraceState.stored(stored)
                state.runs = {run_id: _asked_anew(run, now) for run_id, run in state.runs.items()}
                if not state.is_open and not _pending(state):
                    state.graded_facts = 0  # it was read back for rows at a place they left: writing it again retires them
                self._states[key] = state
                self._wake(key, self._overdue(state, now))
        if unfinished:
            self._not_before = now + self._assembly.settings.quiet_period
        return len(unfinished)

    def _overdue(self, state: TraceState, now: int) -> int:
        """When an open trace would have been looked at, had the owner not stopped: gates may not believe that it was."""
        quiet = state.last_received_ns + self._assembly.settings.quiet_period
        return min(quiet, now) if state.is_open and state.last_received_ns else now

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
        written = sorted(
            await until_it_works("look up traces", lambda: self._store.written(unknown)) | self._poisoned.intersection(unknown)
        )
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
            for key, made in await self._write(turns):
                await self._after(key, made)
                written += made.version is not None
            await self._bury()
            self._in_hand = None
        return written

    async def _write(self, turns: list[tuple[TraceKey, Turn]]) -> list[tuple[TraceKey, Turn]]:
        """Write what turns made, and return those that were: a trace that the store will never take costs no other trace its own."""
        versions = [made.version for _, made in turns if made.version is not None]
        if not versions:
            return turns
        try:
            await until_it_works("write runs and results", lambda: self._store.write(versions))
        except PermanentError as error:
            if len(turns) > 1:
                half = len(turns) // 2
                return [*await self._write(turns[:half]), *await self._write(turns[half:])]
            self._poison(turns[0][0], str(error))
            return []
        return turns

    def _due(self, now: int) -> list[TraceKey]:
        due: list[TraceKey] = []
        while self._agenda and self._agenda[0][0] <= now and len(due) < BATCH:
            at, key = heapq.heappop(self._agenda)
            if self._wakes.get(key) == at:
                del self._wakes[key]
                due.append(key)
                self._in_hand = at if self._in_hand is None else min(at, self._in_hand)
        return due

    def _turn(self, key: TraceKey, now: int) -> Turn | None:
        state = self._states[key]
        return or_dead_letter(lambda: turn(state, now, self._assembly), lambda reason: self._poison(key, reason))

    def _poison(self, key: TraceKey, reason: str) -> None:
        """What comes later of such a trace is looked at with all that came before, as if nothing had broken."""
        self._buried.append((key, reason))
        self._poisoned.add(key)
        self._let_go(key)

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
        while self._buried:
            await self._bury_one(*self._buried.pop())

    async def _bury_one(self, key: TraceKey, reason: str) -> None:
        project, trace_id = key
        await until_it_works("bury", lambda: self._store.bury(project, "assemble", reason, trace_id.encode()))
        self._telemetry.dead_letter("assemble")

    def _wake(self, key: TraceKey, at: int, *, sooner_only: bool = False) -> None:
        if sooner_only and self._wakes.get(key, at + 1) <= at:
            return
        self._wakes[key] = at
        heapq.heappush(self._agenda, (at, key))

    def _let_go(self, key: TraceKey) -> None:
        self._states.pop(key, None)
        self._wakes.pop(key, None)


def _pending(state: TraceState) -> int:
    return sum(run.live and run.run_class == RunClass.PENDING for run in state.runs.values())


def _asked_anew(run: StoredRun, now: int) -> StoredRun:
    """A request that was outstanding when the owner stopped is made again, with all the time it was given then."""
    if run.run_class != RunClass.PENDING:
        return run
    return msgspec.structs.replace(run, requested_ns=now, deadline_ns=now + run.deadline_ns - run.requested_ns)


def _touched(version: TraceVersion) -> set[Touched]:
    written = {key.place for run in version.runs for key in keys(run)} | {one.key.place for one in version.retired}
    return {Touched(version.project, place.cohort, place.minute_ns) for place in written}
