"""Assemble: the state of one trace. Facts in (spans, their log records, judgments, feedback), the runs they make out.

The state is a fold over facts that are already stored, and every way to reach the same set of facts gives the same state (promise 4).
One owner holds it; ``add_*`` update it in place and cost the same however long the trace is.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from pipeline.model import ids
from pipeline.model.log_record import LogRecord, beside, is_earlier
from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span, supersedes
from pipeline.model.step import Step
from pipeline.model.topology import Record
from pipeline.model.version import ResultKey, StoredRun, StoredTrace
from pipeline.stages.group import Group, group

Read = Callable[[Span], Step]
"""How a dialect reads a span, with its log records beside its events."""


class TraceState:
    """What the owner of a trace holds of it between two records."""

    __slots__ = (
        "_first_received_ns",
        "_groups",
        "_hashes",
        "_last_received_ns",
        "_log_records",
        "_spans",
        "_steps",
        "feedback",
        "graded_facts",
        "judgments",
        "project",
        "result_keys",
        "runs",
        "trace_id",
    )

    def __init__(self, project: str, trace_id: str) -> None:
        self.project = project
        self.trace_id = trace_id
        self.judgments: dict[str, Judgment] = {}
        self.feedback: dict[str, Feedback] = {}
        self.graded_facts = 0
        """How many facts the last written traces row knew of."""
        self.runs: dict[str, StoredRun] = {}
        """Runs as they were last written."""
        self.result_keys: set[ResultKey] = set()
        """Every results row that was ever written for this trace."""
        self._hashes: set[tuple[str, str]] = set()
        self._first_received_ns = 0
        self._last_received_ns = 0
        self._spans: dict[str, Span] = {}
        self._log_records: dict[str, dict[str, LogRecord]] = {}
        """By span id, by content hash; also of spans that did not come yet."""
        self._steps: dict[str, Step] = {}
        self._groups: tuple[Group, ...] | None = None

    @classmethod
    def stored(cls, stored: StoredTrace) -> "TraceState":
        """Return the state that the stored facts and versions fold to: recovery and late spans come this way."""
        state = cls(stored.project, stored.trace_id)
        state.graded_facts = stored.graded_facts
        state._first_received_ns = stored.first_received_ns
        state.runs = {run.run_id: run for run in stored.runs}
        state.result_keys = set(stored.result_keys)
        state.add_spans(stored.spans)
        state.add_log_records(stored.log_records)
        for judgment in stored.judgments:
            state.add_judgment(judgment)
        for feedback in stored.feedback:
            state.add_feedback(feedback)
        return state

    @property
    def facts(self) -> int:
        """How many distinct facts there are; what versions count in."""
        return len(self._hashes) + len(self.judgments) + len(self.feedback) + sum(map(len, self._log_records.values()))

    @property
    def is_open(self) -> bool:
        """Whether there are facts that no traces row accounts for."""
        return self.facts > self.graded_facts

    @property
    def last_received_ns(self) -> int:
        """When the last span or log record came; 0 without any."""
        return self._last_received_ns

    @property
    def first_received_ns(self) -> int:
        """When the first span came, also one that has expired since; 0 without any."""
        return self._first_received_ns

    def add(self, records: Sequence[Record]) -> int | None:
        """Fold records of any kind. Returns when the first new judgment or feedback came, with which nothing more is waited for; else None."""
        self.add_spans(record for record in records if isinstance(record, Span))
        self.add_log_records(record for record in records if isinstance(record, LogRecord))
        first: int | None = None
        for record in records:
            if isinstance(record, Judgment) and self.add_judgment(record):
                came = record.judged_ns
            elif isinstance(record, Feedback) and self.add_feedback(record):
                came = record.received_ns
            else:
                continue
            first = came if first is None else min(first, came)
        return first

    def add_spans(self, spans: Iterable[Span]) -> bool:
        """Fold spans in any order, delivered any number of times. Returns whether any of them was new."""
        before = len(self._hashes)
        for span in spans:
            self._hashes.add((span.span_id, span.content_hash))
            self._first_received_ns = min(self._first_received_ns or span.received_ns, span.received_ns)
            self._last_received_ns = max(self._last_received_ns, span.received_ns)
            self._keep(span)
        return len(self._hashes) > before

    def _keep(self, span: Span) -> None:
        kept = self._spans.get(span.span_id)
        if kept is not None:
            received = min(kept.received_ns, span.received_ns)
            best = span if supersedes(span, kept) else kept
            span = best if best.received_ns == received else msgspec.structs.replace(best, received_ns=received)
            if span is kept:
                return
        self._spans[span.span_id] = span
        self._steps.pop(span.span_id, None)
        self._groups = None

    def add_log_records(self, records: Iterable[LogRecord]) -> None:
        """Fold log records in any order, delivered any number of times, before or after the spans that they are of."""
        for record in records:
            self._last_received_ns = max(self._last_received_ns, record.received_ns)
            known = self._log_records.setdefault(record.span_id, {})
            kept = known.get(record.content_hash)
            if kept is None or is_earlier(record, kept):
                known[record.content_hash] = record
                self._steps.pop(record.span_id, None)
                self._groups = None

    def log_received_ns(self, span_ids: Iterable[str]) -> int:
        """Return when the last log record of any of these spans came; 0 without any."""
        if not self._log_records:
            return 0
        of_spans = (self._log_records.get(span_id, {}).values() for span_id in span_ids)
        return max((record.received_ns for records in of_spans for record in records), default=0)

    def add_judgment(self, judgment: Judgment) -> bool:
        """Fold a judgment; the first stored answer to a question stays."""
        return self.judgments.setdefault(judgment.id, judgment) is judgment

    def add_feedback(self, feedback: Feedback) -> bool:
        """Fold feedback; a repeated id is the same fact."""
        return self.feedback.setdefault(feedback.id, feedback) is feedback

    def steps(self, read: Read) -> dict[str, Step]:
        """Return the steps of all spans by span id, each read once."""
        for span_id, span in self._spans.items():
            if span_id not in self._steps:
                logged = self._log_records.get(span_id)
                self._steps[span_id] = read(beside(span, logged.values()) if logged else span)
        return self._steps

    def groups(self, read: Read) -> tuple[Group, ...]:
        """Return the trace's runs-to-be, regrouped from all its spans whenever one is new."""
        if self._groups is None:
            self._groups = group(self.steps(read))
        return self._groups

    def run_id(self, head_span_id: str) -> str:
        """Return the id of the run that this span heads or headed."""
        return ids.run_id(self.project, self.trace_id, head_span_id)

    def heir_of(self, run_id: str, read: Read) -> str | None:
        """Return the run that the former run's head now belongs to; None if it belongs to none."""
        for one in self.groups(read):
            if any(self.run_id(step.span_id) == run_id for step in one.steps):
                return self.run_id(one.head.span_id)
        return None
