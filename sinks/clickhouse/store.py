"""Store: the store as the runtimes use it. Each call runs on the thread of its connection: for facts, for other writes, for reads."""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Final, Self

from pipeline.config.retention import RetentionSettings
from pipeline.config.store import StoreSettings
from pipeline.errors import TemporaryError
from pipeline.judges.votes import Vote, VoteKey
from pipeline.model import ids
from pipeline.model.contract import Contract
from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, Judgment
from pipeline.model.run import Place
from pipeline.model.span import Span
from pipeline.model.topology import DeadLetter
from pipeline.model.version import StoredTrace, TraceKey, TraceVersion
from pipeline.model.window import GateState, Notification, Series, Sums, Touched, Trip, Window
from pipeline.stages.gate_hard import Failure
from pipeline.stages.promote import FailingRun
from sinks.clickhouse import (
    board,
    dead_letters,
    facts,
    failures,
    gates,
    golden,
    minutes,
    recovery,
    retention,
    run_detail,
    traces,
    votes,
    writer,
)
from sinks.clickhouse.connection import Database, connect
from sinks.clickhouse.letter_table import LetterTable
from sinks.clickhouse.line import Line
from sinks.clickhouse.migrate import migrate


class Store:
    """Facts, folds and reads, each on a line of its own: what a sender waits for does not wait for results, nor those for reads.

    Every method raises TemporaryError where the same call may work later. What a write stored, every later read sees. Two writes are in
    order where the second is asked for when the first has returned.
    """

    def __init__(
        self, facts_line: Database, folds_line: Database, reads_line: Database, ping: Callable[[], bool] = lambda: True
    ) -> None:
        """Take a connection for each line; ``ping`` says whether the engine answers, from any thread."""
        self._ping = ping
        self._facts = Line(facts_line, "facts")
        self._folds = Line(folds_line, "folds")
        self._reads = Line(reads_line, "reads")
        self._votes = votes.VoteBuffer()
        self._ingest, self._write, self._read = self._facts.call, self._folds.call, self._reads.call
        self.letters: Final = LetterTable(self._reads, self._folds)

    @classmethod
    def open(cls, settings: StoreSettings, environment: Mapping[str, str] = os.environ) -> Self:
        """Open the store and bring its tables up to this version. Blocks for half a second where the engine starts.

        Raises:
            ConfigurationError: a person can fix it, such as a folder that belongs to a running process.
            TemporaryError: the server does not answer now.
        """
        with ExitStack() as opened:
            first, second, third = (opened.enter_context(closing(connect(settings, environment))) for _ in range(3))
            migrate(first)
            opened.pop_all()  # from here on the store closes them
            return cls(first, second, third, third.ping)

    async def ping(self) -> str:
        """Return at once where the engine answers, whatever else is being asked of it.

        Raises:
            TemporaryError: it does not.
        """
        if not await asyncio.to_thread(self._ping):
            raise TemporaryError("the store does not answer")
        return "answers"

    async def retain(self, settings: RetentionSettings) -> None:
        """Have rows expire as the settings say."""
        await self._write(retention.retain, settings)

    async def close(self) -> None:
        """Finish what was begun and let go of the engine; safe to call twice."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for line in (self._facts, self._folds, self._reads):
            line.close()

    # Facts

    async def insert_spans(self, spans: Sequence[Span]) -> None:
        """Store sealed spans durably."""
        await self._ingest(facts.insert_spans, spans)

    async def insert_log_records(self, records: Sequence[LogRecord]) -> None:
        """Store sealed log records durably."""
        await self._ingest(facts.insert_log_records, records)

    async def insert_judgments(self, judgments: Sequence[Judgment]) -> None:
        """Store judgments durably."""
        await self._ingest(facts.insert_judgments, judgments)

    async def insert_feedback(self, feedback: Sequence[Feedback]) -> None:
        """Store feedback durably."""
        await self._ingest(facts.insert_feedback, feedback)

    async def insert_contracts(self, contracts: Sequence[Contract]) -> None:
        """Store what results are made under."""
        await self._write(facts.insert_contracts, contracts)

    async def recall(self, key: VoteKey) -> Vote | None:
        """Return the latest row of a call of the judge, None where it was never begun."""
        return await self._read(votes.recall, key)

    async def intent(self, vote: Vote) -> None:
        """Keep that a call is about to be made; it is stored when this returns."""
        self._votes.add(vote)
        await self._write(self._votes.flush)

    async def reply(self, vote: Vote) -> None:
        """Keep what became of a call."""
        await self.intent(vote)

    async def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Keep what could not be processed."""
        await self._write(dead_letters.bury, letters)

    # Traces

    async def write(self, versions: Sequence[TraceVersion]) -> None:
        """Write versions in the order of effects."""
        await self._write(writer.write, versions)

    async def written(self, trace_keys: Sequence[TraceKey]) -> set[TraceKey]:
        """Return those of the traces of which anything was folded and written before."""
        return await self._read(traces.written, trace_keys)

    async def load(self, trace_keys: Sequence[TraceKey]) -> dict[TraceKey, StoredTrace]:
        """Return all that is stored of these traces."""
        return await self._read(traces.load, trace_keys)

    async def remember(self, trace_keys: Sequence[TraceKey]) -> None:
        """Keep what is known of these traces for as long as if it were stored now."""
        await self._write(traces.remember, trace_keys)

    async def unfinished(self, buckets: Collection[int] = range(ids.BUCKETS), since_ns: int = 0) -> list[TraceKey]:
        """Return the traces that are open, have pending runs, have rows at a place they left, or have a run older than their last version."""
        return await self._read(recovery.unfinished_traces, buckets, since_ns)

    async def misplaced(self, buckets: Collection[int] = range(ids.BUCKETS), since_ns: int = 0) -> list[TraceKey]:
        """Return the traces that have weighted rows at a place their runs left, or a run older than their last version."""
        return await self._read(recovery.misplaced_traces, buckets, since_ns)

    async def write_clocks(self, clocks: Mapping[int, int], at_ns: int) -> None:
        """Write how far the owners of these partitions are, as of ``at_ns``."""
        await self._write(recovery.write_clocks, clocks, at_ns)

    async def clocks(self) -> dict[int, int]:
        """Return how far the owner of each partition is."""
        return await self._read(recovery.clocks)

    # Minutes and windows

    async def minute_sums(self, project: str, cohort_id: str, minutes_ns: Sequence[int]) -> dict[tuple[Series, int], Sums]:
        """Add up the results of these minutes."""
        return await self._read(minutes.minute_sums, project, cohort_id, minutes_ns)

    async def stale_minutes(self, since_ns: int = 0) -> list[tuple[str, Place]]:
        """Return (project, place) of the minutes that differ from their results."""
        return await self._read(minutes.stale_minutes, since_ns)

    async def write_minutes(self, sums: Mapping[tuple[Series, int], Sums]) -> None:
        """Write minutes as whole new versions."""
        await self._write(minutes.write_minutes, sums)

    async def load_minutes(self, project: str, cohort_id: str, start_ns: int, end_ns: int) -> dict[tuple[Series, int], Sums]:
        """Return the stored minutes that start in [start, end)."""
        return await self._read(minutes.load_minutes, project, cohort_id, start_ns, end_ns)

    async def write_windows(self, windows: Sequence[Window], *, amended: bool = False) -> None:
        """Write windows as whole new versions."""
        await self._write(minutes.write_windows, windows, amended=amended)

    async def load_windows(self, project: str, cohort_id: str, length_ns: int, start_ns: int, end_ns: int) -> list[Window]:
        """Return the published windows of this length that start in [start, end)."""
        return await self._read(minutes.load_windows, project, cohort_id, length_ns, start_ns, end_ns)

    # Gates

    async def gate_states(self) -> list[GateState]:
        """Return where every gate stands."""
        return await self._read(gates.gate_states)

    async def write_gate_states(self, states: Sequence[GateState]) -> None:
        """Write gate states as new versions."""
        await self._write(gates.write_gate_states, states)

    async def trips(self) -> list[Trip]:
        """Return all transitions of all gates."""
        return await self._read(gates.trips)

    async def write_trips(self, made: Sequence[Trip]) -> None:
        """Write transitions."""
        await self._write(gates.write_trips, made)

    async def tripped_runs(self, run_ids: Sequence[str]) -> set[tuple[str, str, str, str]]:
        """Return (project, gate, cohort id, run id) of the trips that name these runs."""
        return await self._read(gates.tripped_runs, run_ids)

    async def unread_windows(self, project: str, cohort_id: str, dimension: str, length_ns: int, after_ns: int) -> list[Window]:
        """Return the published windows of one dimension that start after a time."""
        return await self._read(gates.unread_windows, project, cohort_id, dimension, length_ns, after_ns)

    async def failures(self, touched: Sequence[Touched]) -> list[Failure]:
        """Return the failing code results of these minutes."""
        return await self._read(failures.failures, touched)

    async def untripped_failures(self, since_ns: int = 0) -> list[Failure]:
        """Return the failing code results whose run no trip names."""
        return await self._read(failures.untripped_failures, since_ns)

    async def still_failing(self, project: str, run_ids: Sequence[str]) -> set[str]:
        """Return those of the runs that are live and fail a check now."""
        return await self._read(gates.still_failing, project, run_ids)

    async def notifications(self) -> list[Notification]:
        """Return all notifications."""
        return await self._read(gates.notifications)

    async def unconfirmed_notifications(self) -> list[Notification]:
        """Return the notifications that nobody is known to have heard."""
        return await self._read(gates.unconfirmed_notifications)

    async def unnotified_trips(self, since_ns: int = 0) -> list[Trip]:
        """Return firings and clearings that have no notification stored at all."""
        return await self._read(gates.unnotified_trips, since_ns)

    async def write_notifications(self, made: Sequence[Notification]) -> None:
        """Write notifications as new versions."""
        await self._write(gates.write_notifications, made)

    # Golden candidates

    async def runs_touched(self, touched: Sequence[Touched]) -> list[FailingRun]:
        """Return the runs with results in these minutes that fail now or are members of a case."""
        return await self._read(golden.runs_touched, touched)

    async def runs_by_id(self, project: str, run_ids: Sequence[str]) -> dict[str, FailingRun]:
        """Return the latest rows of these runs."""
        return await self._read(golden.runs_by_id, project, run_ids)

    async def cases_of_runs(self, project: str, run_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return, by run id, the cases that have a members row for the run."""
        return await self._read(golden.cases_of_runs, project, run_ids)

    async def golden(self, project: str, case_ids: Sequence[str]) -> dict[str, tuple[GoldenCase | None, list[GoldenMember]]]:
        """Return these cases and their members rows."""
        return await self._read(golden.golden, project, case_ids)

    async def golden_cases(self, project: str) -> list[GoldenCase]:
        """Return all cases of a project."""
        return await self._read(golden.golden_cases, project)

    async def write_members(self, members: Iterable[GoldenMember]) -> None:
        """Write members rows."""
        await self._write(golden.write_members, members)

    async def write_cases(self, cases: Iterable[GoldenCase]) -> None:
        """Write cases as new versions."""
        await self._write(golden.write_cases, cases)

    # People

    async def projects(self) -> list[str]:
        """Return the projects that have runs."""
        return await self._read(board.projects)

    async def scoreboard(self, project: str, limit: int = 100, agent: str = "") -> list[board.BoardRow]:
        """Return the live runs that ended last."""
        return await self._read(board.scoreboard, project, limit, agent)

    async def run_detail(self, project: str, prefix: str) -> run_detail.RunDetail:
        """Return the run whose id starts with ``prefix``."""
        return await self._read(run_detail.run_detail, project, prefix)

    async def accounting(self, project: str) -> board.Accounting:
        """Count the runs of a project by their class."""
        return await self._read(board.accounting, project)
