"""Store: the store as the runtimes use it. Each call runs on the thread of its connection: for facts, for other writes, for reads, for people."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Final, Self

from pipeline.config.retention import RetentionSettings
from pipeline.config.store import StoreSettings
from pipeline.errors import TemporaryError
from pipeline.model import ids
from pipeline.model.contract import Contract
from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span
from pipeline.model.topology import DeadLetter
from pipeline.model.version import StoredTrace, TraceKey, TraceVersion
from sinks.clickhouse import (
    board,
    dead_letters,
    fact_hashes,
    facts,
    recovery,
    retention,
    run_detail,
    traces,
    writer,
)
from sinks.clickhouse.agent_tables import AgentTables
from sinks.clickhouse.connection import Database, connect
from sinks.clickhouse.conversations import ConversationTable
from sinks.clickhouse.evaluations import EvaluationTable
from sinks.clickhouse.judge_table import JudgeTable
from sinks.clickhouse.letter_table import LetterTable
from sinks.clickhouse.line import Line
from sinks.clickhouse.migrate import migrate
from sinks.clickhouse.rubrics import RubricTable
from sinks.clickhouse.run_history import RunHistories
from sinks.clickhouse.run_list import RunList
from sinks.clickhouse.window_table import WindowTable


class Store(AgentTables):
    """Facts, folds, reads and people, each on a line of its own.

    What a sender waits for does not wait for results, nor those for reads, nor any of them for somebody who looks through a million runs.
    Every method raises TemporaryError where the same call may work later. What a write stored, every later read sees. Two writes are in
    order where the second is asked for when the first has returned.
    """

    def __init__(
        self,
        facts_line: Database,
        folds_line: Database,
        reads_line: Database,
        ping: Callable[[], bool] = lambda: True,
        people_line: Database | None = None,
    ) -> None:
        """Take a connection for each line; ``ping`` says whether the engine answers, from any thread.

        Where people have no line of their own, they wait with the pipeline for what it reads.
        """
        self._ping = ping
        super().__init__(Line(folds_line, "folds"), Line(reads_line, "reads"))
        self._facts = Line(facts_line, "facts")
        self._people = self._reads if people_line is None else Line(people_line, "people")
        self._ingest, self._write, self._read = self._facts.call, self._folds.call, self._reads.call
        self.letters: Final = LetterTable(self._reads, self._folds)
        self.conversations: Final = ConversationTable(self._people)
        self.evaluations: Final = EvaluationTable(self._people)
        self.windows: Final = WindowTable(self._people)
        self.run_list: Final = RunList(self._people)
        self.run_histories: Final = RunHistories(self._people)
        self.rubrics: Final = RubricTable(self._people, self._folds)
        self.judge: Final = JudgeTable(self._reads, self._folds)

    @classmethod
    def open(cls, settings: StoreSettings, environment: Mapping[str, str] = os.environ) -> Self:
        """Open the store and bring its tables up to this version. Blocks for half a second where the engine starts.

        Raises:
            ConfigurationError: a person can fix it, such as a folder that belongs to a running process.
            TemporaryError: the server does not answer now.
        """
        with ExitStack() as opened:
            first, second, third, fourth = (opened.enter_context(closing(connect(settings, environment))) for _ in range(4))
            migrate(first)
            opened.pop_all()  # from here on the store closes them
            return cls(first, second, third, third.ping, fourth)

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
        for line in (self._facts, self._folds, self._reads, self._people):
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

    async def insert_evidence(self, evidence: Sequence[Evidence]) -> None:
        """Store what was read of record sources durably."""
        await self._ingest(facts.insert_evidence, evidence)

    async def insert_contracts(self, contracts: Sequence[Contract]) -> None:
        """Store what results are made under."""
        await self._write(facts.insert_contracts, contracts)

    async def contracts(self) -> dict[str, Contract]:
        """Return every contract that results were ever made under, by its hash."""
        return await self._read(facts.contracts)

    async def altered_facts(self, project: str, trace_id: str) -> list[fact_hashes.Altered]:
        """Return the judgments and the feedback of a trace that are not what was stored."""
        return await self._people.call(fact_hashes.altered_facts, project, trace_id)

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

    # People

    async def scoreboard(self, project: str, limit: int = 100, agent: str = "", flag: str = "") -> list[board.BoardRow]:
        """Return the live runs that ended last."""
        return await self._people.call(board.scoreboard, project, limit, agent, flag)

    async def run_detail(self, project: str, prefix: str) -> run_detail.RunDetail:
        """Return the run whose id starts with ``prefix``."""
        return await self._people.call(run_detail.run_detail, project, prefix)

    async def accounting(self, project: str) -> board.Accounting:
        """Count the runs of a project by their class."""
        return await self._people.call(board.accounting, project)
