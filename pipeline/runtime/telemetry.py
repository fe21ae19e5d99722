"""Telemetry: the pipeline's own metrics, named once. Every name is in docs/telemetry.md; a test holds that."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from collectors.otlp.decoding import Decoded
from collectors.otlp.signal import AnySignal
from collectors.otlp.traces import TRACES
from pipeline.config.redaction import FAILED
from pipeline.model.result import Judgment
from pipeline.model.run import RunClass
from pipeline.model.version import TraceVersion


class Metric(StrEnum):
    """Names of the pipeline's metrics."""

    SPANS_RECEIVED = "tracegrade.spans.received"
    """Counter: spans accepted and durably stored."""
    SPANS_REJECTED = "tracegrade.spans.rejected"
    """Counter: spans refused for good, one by one."""
    LOG_RECORDS_RECEIVED = "tracegrade.log_records.received"
    """Counter: log records accepted, kept and durably stored."""
    LOG_RECORDS_REJECTED = "tracegrade.log_records.rejected"
    """Counter: log records refused for good, one by one."""
    LOG_RECORDS_IGNORED = "tracegrade.log_records.ignored"
    """Counter: log records accepted and not kept, since they belong to no span or no dialect reads them."""
    FEEDBACK_RECEIVED = "tracegrade.feedback.received"
    """Counter: feedback accepted and durably stored."""
    LATE_AFTER_RETENTION = "tracegrade.facts.late_after_retention"
    """Counter: facts of a trace that came when what it was graded from had expired; stored, and not graded."""
    SPANS_TRUNCATED = "tracegrade.spans.truncated"
    """Counter: accepted spans of which something is missing, because they or their resources were too large."""
    TRACES_OPEN = "tracegrade.traces.open"
    """Gauge: traces that wait for more spans."""
    BACKLOG_AGE = "tracegrade.backlog.age"
    """Gauge in seconds: how long the oldest record has waited that a worker has not read."""
    RUNS_PENDING = "tracegrade.runs.pending"
    """Gauge: runs whose judgment is outstanding."""
    RUNS_GRADED = "tracegrade.runs.graded"
    """Counter by class: run versions written."""
    RUNS_UNRESOLVED = "tracegrade.runs.unresolved"
    """Counter by reason: run versions written as unresolved."""
    JUDGMENTS = "tracegrade.judgments"
    """Counter by outcome: judgments made."""
    RECORD_READS = "tracegrade.record_reads"
    """Counter by source and by what was found: reads of record sources that were answered, or given up."""
    JUDGE_COST = "tracegrade.judge.cost"
    """Counter in US dollars: what judgments cost, where the price is known."""
    JUDGE_TOKENS = "tracegrade.judge.tokens"
    """Counter by direction: tokens that judgments took."""
    JUDGE_HELD_BACK = "tracegrade.judge.held_back"
    """Gauge: 1 while no judgments are asked for, because the last calls failed or a person must act; else 0."""
    DEAD_LETTERS = "tracegrade.dead_letters"
    """Counter by origin: what could not be processed and is kept, record by record or span by span."""
    DEAD_LETTERS_DROPPED = "tracegrade.dead_letters.dropped"
    """Counter by origin: refused requests that are not kept, because too much was refused."""
    BRIDGE_RECORDS = "tracegrade.bridge.records"
    """Counter by outcome: records of foreign topics that are done, carried or refused whole."""
    BRIDGE_DELETED = "tracegrade.bridge.deleted"
    """Counter: records of foreign topics that the brokers deleted before they were read."""
    BRIDGE_LAG = "tracegrade.bridge.lag"
    """Gauge: records of this bridge's partitions that are there and not done."""
    REDACTIONS = "tracegrade.redactions"
    """Counter by detector: parts of spans, log records and comments that were replaced before they were stored."""
    REDACTION_FAILURES = "tracegrade.redaction.failures"
    """Counter: values that were replaced whole, because a detector failed on them."""
    NOTIFICATIONS = "tracegrade.notifications"
    """Counter by result: attempts to notify."""


GAUGES: Final = frozenset(
    {Metric.TRACES_OPEN, Metric.BACKLOG_AGE, Metric.RUNS_PENDING, Metric.BRIDGE_LAG, Metric.JUDGE_HELD_BACK}
)


class Telemetry:
    """Counts what happens. The same numbers go to OpenTelemetry and, as a snapshot, to the status page."""

    def __init__(self, meter: Meter) -> None:
        counted: list[Metric] = [name for name in Metric if name not in GAUGES]
        self._counters = {name: meter.create_counter(name) for name in counted}
        self._meter = meter
        self._totals: defaultdict[str, float] = defaultdict(float)
        self._gauges: dict[str, Callable[[], int]] = {}

    def gauge(self, name: Metric, read: Callable[[], int]) -> None:
        """Publish what ``read`` returns whenever the metric is collected."""

        def observe(_: CallbackOptions) -> list[Observation]:
            return [Observation(read())]

        self._meter.create_observable_gauge(name, callbacks=[observe])
        self._gauges[name] = read

    def add(self, name: Metric, amount: float = 1, **labels: str) -> None:
        """Count ``amount`` under the labels."""
        if amount:
            self._counters[name].add(amount, labels)
            self._totals[" ".join([name, *labels.values()])] += amount

    def received(self, accepted: int, rejected: int) -> None:
        """Count spans."""
        self.add(Metric.SPANS_RECEIVED, accepted)
        self.add(Metric.SPANS_REJECTED, rejected)

    def exported(self, signal: AnySignal, read: Decoded[Any]) -> None:
        """Count what a sender exported with one request."""
        if signal.path == TRACES.path:
            self.received(len(read.items), read.rejected)
            self.truncated(read.truncated)
            return
        self.add(Metric.LOG_RECORDS_RECEIVED, len(read.items))
        self.add(Metric.LOG_RECORDS_REJECTED, read.rejected)
        self.add(Metric.LOG_RECORDS_IGNORED, read.ignored)

    def truncated(self, spans: int) -> None:
        """Count spans that were too large and are not whole."""
        self.add(Metric.SPANS_TRUNCATED, spans)

    def feedback(self, accepted: int, redacted: Mapping[str, int]) -> None:
        """Count the feedback of one request, and what was replaced in it."""
        self.add(Metric.FEEDBACK_RECEIVED, accepted)
        self.redacted(redacted)

    def redacted(self, counts: Mapping[str, int]) -> None:
        """Count what was replaced, by detector; :data:`~pipeline.config.redaction.FAILED` is none."""
        for detector, count in counts.items():
            if detector == FAILED:
                self.add(Metric.REDACTION_FAILURES, count)
            else:
                self.add(Metric.REDACTIONS, count, detector=detector)

    def graded(self, version: TraceVersion) -> None:
        """Count the runs of a written version."""
        for run in version.runs:
            self.add(Metric.RUNS_GRADED, run_class=run.run_class)
            if run.run_class is RunClass.UNRESOLVED:
                self.add(Metric.RUNS_UNRESOLVED, reason=run.class_reason)

    def judged(self, judgment: Judgment) -> None:
        """Count a judgment, its tokens and its cost; an unknown cost is not counted as 0."""
        self.add(Metric.JUDGMENTS, outcome=judgment.outcome)
        self.add(Metric.JUDGE_TOKENS, judgment.input_tokens, direction="input")
        self.add(Metric.JUDGE_TOKENS, judgment.output_tokens, direction="output")
        if judgment.cost_usd is not None:
            self.add(Metric.JUDGE_COST, judgment.cost_usd)

    def dead_letter(self, origin: str) -> None:
        """Count a record that could not be processed."""
        self.add(Metric.DEAD_LETTERS, origin=origin)

    def dead_letter_dropped(self, origin: str) -> None:
        """Count what was refused and is not kept."""
        self.add(Metric.DEAD_LETTERS_DROPPED, origin=origin)

    def snapshot(self) -> dict[str, float]:
        """Return all counters and gauges since the start, by name and labels."""
        return {**self._totals, **{name: read() for name, read in self._gauges.items()}}
