"""Assemble: the state of one trace. Facts in (spans, their log records, judgments, feedback, what was read), the runs they make out.

The state is a fold over facts that are already stored, and every way to reach the same set of facts gives the same state (promise 4).
One owner holds it; ``add_*`` update it in place and cost the same however long the trace is.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from pipeline.model import ids
from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord, beside, is_earlier
from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span, supersedes
from pipeline.model.step import Step
from pipeline.model.topology import Record
from pipeline.model.version import ResultKey, StoredRun, StoredTrace
from pipeline.stages.close import AssembleSettings
from pipeline.stages.group import Group, group
from pipeline.stages.looks import Looks

Read = Callable[[Span], Step]
"""How a dialect reads a span, with its log records beside its events."""


class TraceState:
    """What the owner of a trace holds of it between two records."""

    __slots__ = (
        "_first_received_ns",
        "_groups",
        "_heirs",
        "_last_received_ns",
        "_log_records",
        "_receipts",
        "_spans",
        "_steps",
        "_unread",
        "evidence",
        "feedback",
        "graded_facts",
        "graded_receipts",
        "judgments",
        "looks",
        "project",
        "receipts",
        "result_keys",
        "runs",
        "trace_id",
    )

    def __init__(self, project: str, trace_id: str) -> None:
        self.project = project
        self.trace_id = trace_id
        self.judgments: dict[str, Judgment] = {}
        self.feedback: dict[str, Feedback] = {}
        self.evidence: dict[str, Evidence] = {}
        self.graded_facts = 0
        """How many facts the last written traces row knew of."""
        self.receipts = 0
        """Sum of when each fact came first, in ns: less where a fact that was known turns out to have come earlier."""
        self.graded_receipts = 0
        """The same, as the last written traces row knew it."""
        self.runs: dict[str, StoredRun] = {}
        """Runs as they were last written."""
        self.result_keys: set[ResultKey] = set()
        """Every results row that was ever written for this trace."""
        self._receipts: dict[tuple[type[Record], str, str], int] = {}
        """When each fact came first, in ns, as far as is known."""
        self._first_received_ns = 0
        self._last_received_ns = 0
        self._spans: dict[str, Span] = {}
        self._log_records: dict[str, dict[str, LogRecord]] = {}
        """By span id, by content hash; also of spans that did not come yet."""
        self._steps: dict[str, Step] = {}
        self._unread: set[str] = set()
        """Ids of spans that were not read since they or their log records came."""
        self.looks = Looks()
        self._groups: tuple[Group, ...] | None = None
        self._heirs: dict[str, str] = {}
        """Of each step's run id, if it headed one, that of the run which it belongs to now."""

    @classmethod
    def stored(cls, stored: StoredTrace) -> "TraceState":
        """Return the state that the stored facts and versions fold to: recovery and late spans come this way."""
        state = cls(stored.project, stored.trace_id)
        state.graded_facts = stored.graded_facts
        state.graded_receipts = stored.graded_receipts
        state._first_received_ns = stored.first_received_ns
        state.runs = {run.run_id: run for run in stored.runs}
        state.result_keys = set(stored.result_keys)
        state.add_spans(stored.spans)
        state.add_log_records(stored.log_records)
        for judgment in stored.judgments:
            state.add_judgment(judgment)
        for feedback in stored.feedback:
            state.add_feedback(feedback)
        for evidence in stored.evidence:
            state.add_evidence(evidence)
        return state

    @property
    def facts(self) -> int:
        """How many distinct facts there are; what versions count in."""
        return len(self._receipts)

    @property
    def is_open(self) -> bool:
        """Whether there are facts that no traces row accounts for, or one of those that it does came earlier than it knew."""
        return self.facts > self.graded_facts or (self.facts == self.graded_facts and self.receipts < self.graded_receipts)

    @property
    def last_received_ns(self) -> int:
        """When the last span or log record came; 0 without any."""
        return self._last_received_ns

    @property
    def first_received_ns(self) -> int:
        """When the first span came, also one that has expired since; 0 without any."""
        return self._first_received_ns

    def add(self, records: Sequence[Record]) -> int | None:
        """Fold records of any kind. Returns when the first new judgment, feedback or evidence came, with which nothing more is waited for; else None."""
        self.add_spans(record for record in records if isinstance(record, Span))
        self.add_log_records(record for record in records if isinstance(record, LogRecord))
        first: int | None = None
        for record in records:
            if isinstance(record, Judgment) and self.add_judgment(record):
                came = record.judged_ns
            elif isinstance(record, Feedback) and self.add_feedback(record):
                came = record.received_ns
            elif isinstance(record, Evidence) and self.add_evidence(record):
                came = record.read_ns
            else:
                continue
            first = came if first is None else min(first, came)
        return first

    def add_spans(self, spans: Iterable[Span]) -> bool:
        """Fold spans in any order, delivered any number of times. Returns whether any of them was new."""
        before = len(self._receipts)
        for span in spans:
            self._is_first((Span, span.span_id, span.content_hash), span.received_ns)
            self._first_received_ns = min(self._first_received_ns or span.received_ns, span.received_ns)
            self._last_received_ns = max(self._last_received_ns, span.received_ns)
            self.looks.came(span)
            self._keep(span)
        return len(self._receipts) > before

    def _is_first(self, fact: tuple[type[Record], str, str], received_ns: int) -> bool:
        """Take note of a delivery of a fact. Returns whether it is the first one, as far as is known: the one that counts, whenever it comes."""
        known = self._receipts.get(fact)
        if known is not None and known <= received_ns:
            return False
        self._receipts[fact] = received_ns
        self.receipts += received_ns - (known or 0)
        return True

    def _keep(self, span: Span) -> None:
        kept = self._spans.get(span.span_id)
        if kept is not None:
            received = min(kept.received_ns, span.received_ns)
            best = span if supersedes(span, kept) else kept
            span = best if best.received_ns == received else msgspec.structs.replace(best, received_ns=received)
            if span is kept:
                return
        self._spans[span.span_id] = span
        self._changed(span.span_id)

    def _changed(self, span_id: str) -> None:
        self._unread.add(span_id)
        self._groups = None
        if self.runs:  # written already, and perhaps otherwise now
            self.looks.changed()

    def add_log_records(self, records: Iterable[LogRecord]) -> None:
        """Fold log records in any order, delivered any number of times, before or after the spans that they are of."""
        for record in records:
            self._is_first((LogRecord, record.span_id, record.content_hash), record.received_ns)
            self._last_received_ns = max(self._last_received_ns, record.received_ns)
            known = self._log_records.setdefault(record.span_id, {})
            kept = known.get(record.content_hash)
            if kept is None or is_earlier(record, kept):
                known[record.content_hash] = record
                self._changed(record.span_id)

    def log_received_ns(self, span_ids: Iterable[str]) -> int:
        """Return when the last log record of any of these spans came; 0 without any."""
        if not self._log_records:
            return 0
        of_spans = (self._log_records.get(span_id, {}).values() for span_id in span_ids)
        return max((record.received_ns for records in of_spans for record in records), default=0)

    def add_judgment(self, judgment: Judgment) -> bool:
        """Fold a judgment; the first answer to a question counts. Returns whether there was none."""
        is_new = judgment.id not in self.judgments
        if self._is_first((Judgment, judgment.id, ""), judgment.judged_ns):
            self.looks.changed()
            self.judgments[judgment.id] = judgment
        return is_new

    def add_feedback(self, feedback: Feedback) -> bool:
        """Fold feedback; a repeated id is the same fact, as it was said first. Returns whether the id is new."""
        is_new = feedback.id not in self.feedback
        if self._is_first((Feedback, feedback.id, ""), feedback.received_ns):
            self.looks.changed()
            self.feedback[feedback.id] = feedback
        return is_new

    def add_evidence(self, evidence: Evidence) -> bool:
        """Fold what was read; the first answer to a question counts. Returns whether there was none."""
        is_new = evidence.id not in self.evidence
        if self._is_first((Evidence, evidence.id, ""), evidence.read_ns):
            self.looks.changed()
            self.evidence[evidence.id] = evidence
        return is_new

    def look_at(self, settings: AssembleSettings) -> int:
        """Return when to look at what came, if nothing else comes."""
        return self.looks.next_at(self._last_received_ns, len(self._spans), settings)

    def rest_until(self, read: Read, settings: AssembleSettings) -> int:
        """Return until when no run of the trace can be due, as far as what came tells; 0 where one may be."""
        self.steps(read)
        return self.looks.rest_until(self._first_received_ns, self._last_received_ns, settings)

    def steps(self, read: Read) -> dict[str, Step]:
        """Return the steps of all spans by span id, each read once."""
        fresh = [span for span_id in self._unread if (span := self._spans.get(span_id)) is not None]
        for span in fresh:
            logged = self._log_records.get(span.span_id)
            self._steps[span.span_id] = read(beside(span, logged.values()) if logged else span)
        self.looks.read((self._steps[span.span_id] for span in fresh), self._steps)
        self._unread.clear()
        return self._steps

    def attribute(self, name: str, *steps: Step) -> str:
        """Return what the first of these steps' spans that has an attribute, or its resource, says under that name; empty where none does."""
        spans = (self._spans[step.span_id] for step in steps)
        said = (span.attributes.get(name, span.resource.get(name)) for span in spans)
        return next((str(value) for value in said if isinstance(value, str | int | float) and value != ""), "")

    def groups(self, read: Read) -> tuple[Group, ...]:
        """Return the trace's runs-to-be, regrouped from all its spans whenever one is new."""
        if self._groups is None:
            self._groups = group(self.steps(read))
            self._heirs = {}
        return self._groups

    def run_id(self, head_span_id: str) -> str:
        """Return the id of the run that this span heads or headed."""
        return ids.run_id(self.project, self.trace_id, head_span_id)

    def heir_of(self, run_id: str, read: Read) -> str | None:
        """Return the run that the former run's head now belongs to; None if it belongs to none."""
        groups = self.groups(read)
        if not self._heirs:
            heads = {one.head.span_id: self.run_id(one.head.span_id) for one in groups}
            self._heirs = {self.run_id(step.span_id): heads[one.head.span_id] for one in groups for step in one.steps}
        return self._heirs.get(run_id)
