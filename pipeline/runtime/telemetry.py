"""Telemetry: the pipeline's own metrics, named once. Every name is in docs/telemetry.md; a test holds that."""

from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from pipeline.model.result import Judgment
from pipeline.model.run import RunClass
from pipeline.model.version import TraceVersion


class Metric(StrEnum):
    """Names of the pipeline's metrics."""

    SPANS_RECEIVED = "tracegrade.spans.received"
    """Counter: spans accepted and durably stored."""
    SPANS_REJECTED = "tracegrade.spans.rejected"
    """Counter: spans refused for good, one by one."""
    TRACES_OPEN = "tracegrade.traces.open"
    """Gauge: traces that wait for more spans."""
    RUNS_PENDING = "tracegrade.runs.pending"
    """Gauge: runs whose judgment is outstanding."""
    RUNS_GRADED = "tracegrade.runs.graded"
    """Counter by class: run versions written."""
    RUNS_UNRESOLVED = "tracegrade.runs.unresolved"
    """Counter by reason: run versions written as unresolved."""
    JUDGMENTS = "tracegrade.judgments"
    """Counter by outcome: judgments made."""
    JUDGE_COST = "tracegrade.judge.cost"
    """Counter in US dollars: what judgments cost, where the price is known."""
    JUDGE_TOKENS = "tracegrade.judge.tokens"
    """Counter by direction: tokens that judgments took."""
    DEAD_LETTERS = "tracegrade.dead_letters"
    """Counter by origin: records that could not be processed."""
    NOTIFICATIONS = "tracegrade.notifications"
    """Counter by result: attempts to notify."""


GAUGES: Final = frozenset({Metric.TRACES_OPEN, Metric.RUNS_PENDING})


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
        """Count spans of one request."""
        self.add(Metric.SPANS_RECEIVED, accepted)
        self.add(Metric.SPANS_REJECTED, rejected)

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

    def snapshot(self) -> dict[str, float]:
        """Return all counters and gauges since the start, by name and labels."""
        return {**self._totals, **{name: read() for name, read in self._gauges.items()}}
