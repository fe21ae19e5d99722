"""Owner: holds the open traces of its partitions, and is the only one that writes their runs and results.

Records are stored before they come here. :meth:`TraceOwner.fold` takes them into the states, :meth:`TraceOwner.tick` does what is due.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from pipeline.errors import PermanentError
from pipeline.model import ids
from pipeline.model.evidence import Question
from pipeline.model.result import JudgeRequest
from pipeline.model.run import RunClass
from pipeline.model.topology import DEAD_LETTERS, JUDGE, TOUCHED, Publish, Record
from pipeline.model.version import StoredRun, StoredTrace, TraceKey
from pipeline.model.window import Touched
from pipeline.runtime.agenda import Agenda
from pipeline.runtime.clock import Times
from pipeline.runtime.dead_letters import a_letter
from pipeline.runtime.guard import or_dead_letter, until_it_works
from pipeline.runtime.partition_clocks import MARGIN, PartitionClocks
from pipeline.runtime.telemetry import Metric, Telemetry
from pipeline.runtime.trace_store import TraceStore
from pipeline.stages.assemble import TraceState
from pipeline.stages.retention import is_over
from pipeline.stages.turn import Assembly, Turn, settle, touched_by, turn

BATCH: Final = 500
"""Traces that one write takes."""


Read = Callable[[Sequence[Question]], None]
"""Takes questions for record sources; each is answered in its own time by evidence on the topic of its trace."""


class TraceOwner:
    """Folds the records of its traces, one batch at a time in one task: no locks, no races."""

    def __init__(
        self,
        store: TraceStore,
        assembly: Assembly,
        publish: Publish,
        telemetry: Telemetry,
        partitions: int = 1,
        owned: Collection[int] = (0,),
        read: Read | None = None,
    ) -> None:
        """Take how many partitions there are, which of them are owned, and who reads record sources: nobody where none is configured."""
        self._store = store
        self._assembly = assembly
        self._publish = publish
        self._telemetry = telemetry
        self._read = read
        self._partitions = partitions
        self._buckets = [bucket for bucket in range(ids.BUCKETS) if bucket % partitions in owned]
        self._states: dict[TraceKey, TraceState] = {}
        self._agendas = {partition: Agenda() for partition in owned}
        self._buried: list[tuple[TraceKey, str]] = []
        self._poisoned: set[TraceKey] = set()
        self._clocks = PartitionClocks(store)
        self._swept_ns = 0

    def _partition_of(self, key: TraceKey) -> int:
        return ids.bucket(*key) % self._partitions

    def _agenda_of(self, key: TraceKey) -> Agenda:
        return self._agendas[self._partition_of(key)]

    def owns(self, key: TraceKey) -> bool:
        """Whether the trace is in one of the owned partitions."""
        return self._partition_of(key) in self._agendas

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
        return min((at for agenda in self._agendas.values() if (at := agenda.next_wake) is not None), default=None)

    def done_until(self, times: Times) -> dict[int, int]:
        """Return by partition up to when everything that was due is written: the clocks, as gates may believe them."""
        known = ((partition, now) for partition, now in times.partitions.items() if partition in self._agendas)
        return {partition: self._agendas[partition].done_until(now) for partition, now in known}

    async def tell_clocks(self, times: Times) -> None:
        """Write the clocks, once a second: gates and a later start go by them."""
        await self._clocks.tell(self.done_until(times), times.wall)

    async def recover(self, wall: int) -> int:
        """Read the open traces and the pending runs back (design section 5). Returns how many.

        Nothing closes before one quiet period has passed: what was on its way when the owner stopped must be able to arrive.
        """
        clocks = await self._clocks.read(self._agendas, wall)
        unfinished = await self._unfinished(clocks)
        self._swept_ns = wall
        for start in range(0, len(unfinished), BATCH):
            for key, stored in (await self._load(unfinished[start : start + BATCH])).items():
                if not self._is_over(stored, wall):
                    self._take_up(key, TraceState.stored(stored), clocks, wall)
        for agenda in self._agendas.values():
            if len(agenda):
                agenda.rest(self._assembly.settings.quiet_period)
        return len(unfinished)

    async def _unfinished(self, clocks: Mapping[int, int]) -> list[TraceKey]:
        """A trace whose facts are all older than the idle timeout had been closed by the time that the least clock shows."""
        if not self._agendas:  # a worker more than there are partitions
            return []
        oldest = min(clocks.values()) - self._assembly.settings.idle_timeout - MARGIN
        return await until_it_works("read back", lambda: self._store.unfinished(self._buckets, max(oldest, 0)))

    def _take_up(self, key: TraceKey, state: TraceState, clocks: Mapping[int, int], wall: int) -> None:
        state.runs = {run_id: _asked_anew(run, wall) for run_id, run in state.runs.items()}
        if not state.is_open and not _pending(state):
            state.graded_facts = 0  # it was read back for rows at a place they left: writing it again retires them
        self._states[key] = state
        # When it would have been looked at, had the owner not stopped: gates may not believe that it was.
        now = clocks[self._partition_of(key)] or wall
        quiet = state.last_received_ns + self._assembly.settings.quiet_period
        self._agenda_of(key).wake(key, min(quiet, now) if state.is_open and state.last_received_ns else now)

    async def sweep(self, times: Times) -> None:
        """Repeat the retirement of rows at former places (design section 3)."""
        if not self._agendas:
            return
        since, self._swept_ns = max(self._swept_ns - MARGIN, 0), times.wall
        misplaced = await until_it_works("sweep", lambda: self._store.misplaced(self._buckets, since))
        for key, stored in (await self._load([key for key in misplaced if key not in self._states])).items():
            if self._is_over(stored, times.wall):
                continue
            state = TraceState.stored(stored)
            state.graded_facts = 0
            self._states[key] = state
            self._agenda_of(key).wake(key, times.partitions.get(self._partition_of(key), times.wall))

    async def fold(self, records: Sequence[Record], times: Times) -> None:
        """Take stored records of owned traces into their states."""
        by_trace: dict[TraceKey, list[Record]] = {}
        for record in records:
            by_trace.setdefault((record.project, record.trace_id), []).append(record)
        await self._look_up([key for key in by_trace if key not in self._states])
        late: list[TraceKey] = []
        for key, some in by_trace.items():
            state = self._states.setdefault(key, TraceState(*key))
            if self._is_over(state, times.wall):
                late.append(key)
                self._telemetry.add(Metric.LATE_AFTER_RETENTION, len(some))
            else:
                self._schedule(key, state, some, times)
        await self._leave(late)
        # What was on its way for long (a bridge's backlog, a dead letter) may be older than all that a start reads back by these clocks.
        await self._clocks.put_back(self.done_until(times), times.wall)

    async def _look_up(self, unknown: Sequence[TraceKey]) -> None:
        """A trace that is not in memory is new, was closed, or had feedback or log records before any span; one look-up for the whole batch tells."""
        if not unknown:
            return
        written = sorted(
            await until_it_works("look up traces", lambda: self._store.written(unknown)) | self._poisoned.intersection(unknown)
        )
        for key, stored in (await self._load(written)).items():
            self._states[key] = TraceState.stored(stored)

    async def _leave(self, late: Sequence[TraceKey]) -> None:
        """What came late is kept for a while, and must not be taken for a new trace when the old one would be forgotten."""
        if late:
            await until_it_works("remember traces", lambda: self._store.remember(late))
        for key in late:
            if key not in self._agenda_of(key):
                self._let_go(key)

    def _is_over(self, trace: StoredTrace | TraceState, wall: int) -> bool:
        return is_over(trace, wall, self._assembly.retention_of(trace.project))

    async def _load(self, trace_keys: Sequence[TraceKey]) -> dict[TraceKey, StoredTrace]:
        return await until_it_works("load traces", lambda: self._store.load(trace_keys)) if trace_keys else {}

    def _schedule(self, key: TraceKey, state: TraceState, records: Sequence[Record], times: Times) -> None:
        agenda = self._agenda_of(key)
        if (came := state.add(records)) is not None:
            agenda.wake(key, min(came, times.partitions.get(self._partition_of(key), times.wall)))
        elif state.is_open:
            agenda.wake(key, state.look_at(self._assembly.settings), sooner_only=key in agenda)
        elif key not in agenda:
            self._let_go(key)

    async def tick(self, times: Times) -> int:
        """Do what is due. Returns how many traces had something to write."""
        written = 0
        while due := self._due(times):
            turns = [(key, made) for key in due if (made := self._turn(key, times)) is not None]
            stored = await self._write(turns)
            await self._after(stored)
            written += sum(made.version is not None for _, made in stored)
            await self._bury(times.wall)
            for agenda in self._agendas.values():
                agenda.done()
        return written

    def _due(self, times: Times) -> list[TraceKey]:
        due: list[TraceKey] = []
        for partition, now in times.partitions.items():
            if partition in self._agendas:
                due += islice(self._agendas[partition].due(now), BATCH - len(due))
        return due

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

    def _turn(self, key: TraceKey, times: Times) -> Turn | None:
        state, now = self._states[key], times.partitions[self._partition_of(key)]
        return or_dead_letter(lambda: turn(state, now, times.wall, self._assembly), lambda reason: self._poison(key, reason))

    def _poison(self, key: TraceKey, reason: str) -> None:
        """What comes later of such a trace is looked at with all that came before, as if nothing had broken."""
        self._buried.append((key, reason))
        self._poisoned.add(key)
        self._let_go(key)

    async def _after(self, stored: Sequence[tuple[TraceKey, Turn]]) -> None:
        """Tell of what is stored: first which minutes have new results, then what is to be judged."""
        touched: set[Touched] = set()
        requests: list[JudgeRequest] = []
        for key, made in stored:
            if made.version is not None:
                settle(self._states[key], made.version)
                self._telemetry.graded(made.version)
                touched |= touched_by(made.version)
            requests += made.requests
            if made.questions and self._read is not None:
                # It goes on by itself, and its answers come back as facts: no trace waits for another's.
                self._read(made.questions)
            if made.wake_at is None:
                self._let_go(key)
            else:
                self._agenda_of(key).wake(key, made.wake_at)
        if touched:
            await until_it_works("tell of touched minutes", lambda: self._publish(TOUCHED, sorted(touched)))
        if requests:
            await until_it_works("ask for judgments", lambda: self._publish(JUDGE, requests))

    async def _bury(self, wall: int) -> None:
        while self._buried:
            await self._bury_one(*self._buried.pop(), wall)

    async def _bury_one(self, key: TraceKey, reason: str, wall: int) -> None:
        project, trace_id = key
        letter = a_letter(project, "assemble", reason, trace_id.encode(), wall)
        await until_it_works("bury", lambda: self._store.bury([letter]))
        await until_it_works("publish a dead letter", lambda: self._publish(DEAD_LETTERS, [letter]))
        self._telemetry.dead_letter("assemble")

    def _let_go(self, key: TraceKey) -> None:
        self._states.pop(key, None)
        self._agenda_of(key).forget(key)


def _pending(state: TraceState) -> int:
    return sum(run.live and run.run_class == RunClass.PENDING for run in state.runs.values())


def _asked_anew(run: StoredRun, now: int) -> StoredRun:
    """A request that was outstanding when the owner stopped is made again, with all the time it was given then."""
    if run.run_class != RunClass.PENDING:
        return run
    return msgspec.structs.replace(run, requested_ns=now, deadline_ns=now + run.deadline_ns - run.requested_ns)
