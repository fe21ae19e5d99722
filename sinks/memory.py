"""A store in memory with the rules of the tables: the greatest version of a key is the row. For tests and for trying things out.

It passes the same contract suite as the ClickHouse store (tests/contract).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from pipeline.model import ids
from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord, is_earlier
from pipeline.model.result import Feedback, Judgment
from pipeline.model.run import RunClass
from pipeline.model.span import Span
from pipeline.model.topology import DeadLetter
from pipeline.model.version import (
    ResultKey,
    ResultRow,
    Retraction,
    RunVersion,
    StoredRun,
    StoredTrace,
    TraceKey,
    TraceVersion,
    result_rows,
)
from sinks.memory_conversations import MemoryConversations


class RunRow(msgspec.Struct, frozen=True):
    """A row of ``runs``: a run version, or the retraction of a run."""

    version: int
    row: RunVersion | Retraction


class MemoryStore:
    """Facts and folds of any number of projects."""

    def __init__(self) -> None:
        self.spans: dict[TraceKey, dict[tuple[str, str], Span]] = {}
        self.log_records: dict[TraceKey, dict[str, LogRecord]] = {}
        self.judgments: dict[TraceKey, dict[str, Judgment]] = {}
        self.feedback: dict[TraceKey, dict[str, Feedback]] = {}
        self.evidence: dict[TraceKey, dict[str, Evidence]] = {}
        self.traces: dict[TraceKey, TraceVersion] = {}
        self.runs: dict[tuple[str, str, str], RunRow] = {}
        self.results: dict[tuple[str, ResultKey], ResultRow] = {}
        self.dead_letters: dict[str, tuple[str, str, bytes]] = {}
        self.conversations = MemoryConversations(self.live_runs)
        self.told_clocks: dict[int, tuple[int, int]] = {}
        """By partition: when it was written, and how far the owner was."""

    async def insert_spans(self, spans: Sequence[Span]) -> None:
        """Store spans; of equal ones the first received stays."""
        for span in spans:
            trace = self.spans.setdefault((span.project, span.trace_id), {})
            known = trace.get((span.span_id, span.content_hash))
            if known is None or span.received_ns < known.received_ns:
                trace[span.span_id, span.content_hash] = span

    async def insert_log_records(self, records: Sequence[LogRecord]) -> None:
        """Store log records; of equal ones the first received stays."""
        for record in records:
            trace = self.log_records.setdefault((record.project, record.trace_id), {})
            known = trace.get(record.content_hash)
            if known is None or is_earlier(record, known):
                trace[record.content_hash] = record

    async def insert_judgments(self, judgments: Sequence[Judgment]) -> None:
        """Store judgments; the first answer to a question stays."""
        for judgment in judgments:
            trace = self.judgments.setdefault((judgment.project, judgment.trace_id), {})
            known = trace.get(judgment.id)
            if known is None or judgment.judged_ns < known.judged_ns:
                trace[judgment.id] = judgment

    async def insert_feedback(self, feedback: Sequence[Feedback]) -> None:
        """Store feedback; of one id what was received first stays."""
        for one in feedback:
            trace = self.feedback.setdefault((one.project, one.trace_id), {})
            known = trace.get(one.id)
            if known is None or one.received_ns < known.received_ns:
                trace[one.id] = one

    async def insert_evidence(self, evidence: Sequence[Evidence]) -> None:
        """Store what was read; the first answer to a question stays."""
        for one in evidence:
            trace = self.evidence.setdefault((one.project, one.trace_id), {})
            known = trace.get(one.id)
            if known is None or one.read_ns < known.read_ns:
                trace[one.id] = one

    async def written(self, trace_keys: Sequence[TraceKey]) -> set[TraceKey]:
        """Return those of the traces of which anything but spans is stored."""
        wanted = set(trace_keys)
        told = self.traces.keys() | self.log_records.keys() | self.judgments.keys() | self.feedback.keys() | self.evidence.keys()
        return (wanted & told) | {(project, trace) for project, trace, _ in self.runs if (project, trace) in wanted}

    async def load(self, trace_keys: Sequence[TraceKey]) -> dict[TraceKey, StoredTrace]:
        """Return all that is stored of these traces."""
        return {key: self._load(key) for key in trace_keys}

    def _load(self, key: TraceKey) -> StoredTrace:
        trace = self.traces.get(key)
        rows = [(run_id, row) for (project, trace_id, run_id), row in self.runs.items() if (project, trace_id) == key]
        return StoredTrace(
            project=key[0],
            trace_id=key[1],
            spans=tuple(self.spans.get(key, {}).values()),
            judgments=tuple(self.judgments.get(key, {}).values()),
            feedback=tuple(self.feedback.get(key, {}).values()),
            log_records=tuple(self.log_records.get(key, {}).values()),
            evidence=tuple(self.evidence.get(key, {}).values()),
            first_received_ns=trace.first_received_ns if trace else 0,
            graded_facts=trace.facts if trace else 0,
            graded_receipts=trace.receipts if trace else 0,
            version=trace.version if trace else 0,
            runs=tuple(_stored_run(run_id, row) for run_id, row in rows),
            result_keys=frozenset(row.key for row in self.results.values() if (row.project, row.trace_id) == key),
        )

    async def remember(self, trace_keys: Sequence[TraceKey]) -> None:
        """Nothing is forgotten here, unless a test does it by hand."""

    async def unfinished(self, buckets: Collection[int] = range(ids.BUCKETS), since_ns: int = 0) -> list[TraceKey]:
        """Return the traces that are open and have a fact received since then, have pending runs, or have rows at a place they left."""
        told = self.spans.keys() | self.log_records.keys() | self.judgments.keys() | self.feedback.keys() | self.evidence.keys()
        found = {key for key in told if self._is_open(key) and max(self._received(key), default=0) >= since_ns}
        found |= {(run.run.project, run.run.trace_id) for run in self.live_runs() if run.run_class is RunClass.PENDING}
        return sorted({key for key in found if ids.bucket(*key) in buckets}.union(await self.misplaced(buckets, since_ns)))

    def _is_open(self, key: TraceKey) -> bool:
        trace, received = self.traces.get(key), self._received(key)
        known, receipts = (trace.facts, trace.receipts) if trace else (0, 0)
        return len(received) > known or (len(received) == known and sum(received) < receipts)

    def _received(self, key: TraceKey) -> list[int]:
        """When each fact of a trace came first."""
        received = [span.received_ns for span in self.spans.get(key, {}).values()]
        received += [record.received_ns for record in self.log_records.get(key, {}).values()]
        received += [judgment.judged_ns for judgment in self.judgments.get(key, {}).values()]
        received += [one.received_ns for one in self.feedback.get(key, {}).values()]
        received += [one.read_ns for one in self.evidence.get(key, {}).values()]
        return received

    async def misplaced(
        self,
        buckets: Collection[int] = range(ids.BUCKETS),
        since_ns: int = 0,  # noqa: ARG002 - more than was asked for is no fault
    ) -> list[TraceKey]:
        """Return the traces with weighted rows at a place their runs left, or runs older than they; when rows were stored is not kept here."""
        homes = {run.run.run_id: run.run.place for run in self.live_runs()}
        found = {(row.project, row.trace_id) for row in self.counting() if homes.get(row.key.run_id) != row.key.place}
        # The last version of a trace wrote or retracted every run of it: who wrote an older one had lost the trace and did not know.
        facts = {key: trace.facts for key, trace in self.traces.items()}
        live = [((run.run.project, run.run.trace_id), run.version) for run in self.live_runs()]
        found |= {key for key, version in live if version < 4 * facts.get(key, 0)}
        return sorted(key for key in found if ids.bucket(*key) in buckets)

    async def write_clocks(self, clocks: Mapping[int, int], at_ns: int) -> None:
        """Write how far the owners of these partitions are; what was written later stays."""
        for partition, clock in clocks.items():
            if partition not in self.told_clocks or self.told_clocks[partition][0] <= at_ns:
                self.told_clocks[partition] = (at_ns, clock)

    async def clocks(self) -> dict[int, int]:
        """Return how far the owner of each partition is."""
        return {partition: clock for partition, (_, clock) in sorted(self.told_clocks.items())}

    async def write(self, versions: Sequence[TraceVersion]) -> None:
        """Write results, runs and traces; a row of a greater version stays."""
        for version in versions:
            for row in result_rows(version):
                known = self.results.get((row.project, row.key))
                if known is None or known.version <= row.version:
                    self.results[row.project, row.key] = row
            rows: list[RunVersion | Retraction] = [*version.runs, *version.retractions]
            for run in rows:
                self._write_run(version, run)
            if version.close_reason is not None:
                trace = self.traces.get((version.project, version.trace_id))
                if trace is None or trace.version <= version.version:
                    self.traces[version.project, version.trace_id] = version

    def _write_run(self, version: TraceVersion, run: RunVersion | Retraction) -> None:
        run_id = run.run.run_id if isinstance(run, RunVersion) else run.run_id
        key = (version.project, version.trace_id, run_id)
        if key not in self.runs or self.runs[key].version <= run.version:
            self.runs[key] = RunRow(version=run.version, row=run)

    async def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Keep what could not be processed."""
        self.dead_letters.update({letter.id: (letter.origin, letter.reason, letter.body) for letter in letters})

    def live_runs(self) -> list[RunVersion]:
        """Return the live runs."""
        return [row.row for row in self.runs.values() if isinstance(row.row, RunVersion)]

    def counting(self) -> Iterable[ResultRow]:
        """Return the rows that count in something."""
        return (row for row in self.results.values() if row.weight > 0)


def _stored_run(run_id: str, row: RunRow) -> StoredRun:
    if isinstance(row.row, Retraction):
        return StoredRun(run_id=run_id, version=row.version, live=False)
    return StoredRun(
        run_id=run_id,
        version=row.version,
        live=True,
        transcript_hash=row.row.transcript.hash if row.row.transcript else "",
        requested_ns=row.row.requested_ns,
        deadline_ns=row.row.deadline_ns,
        run_class=row.row.run_class,
    )
