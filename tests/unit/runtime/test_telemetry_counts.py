"""The pipeline's own numbers: what is unknown is not counted as 0, and OpenTelemetry is given the same as the status page."""

import pytest
from builders import a_span
from msgspec.structs import replace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from unit.clickhouse.records import a_run, a_run_version, a_version

from collectors.otlp.decoding import Decoded
from collectors.otlp.traces import TRACES
from pipeline.model.result import Judgment, Outcome
from pipeline.model.run import RunClass
from pipeline.runtime.telemetry import Metric, Telemetry

JUDGMENT = Judgment(
    "default", "t", "r", 4, "h", "c", "tone", Outcome.PASS, 4.0, input_tokens=100, output_tokens=20, cost_usd=0.25
)


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def telemetry(reader: InMemoryMetricReader) -> Telemetry:
    return Telemetry(MeterProvider([reader]).get_meter("test"))


def test_runs_are_counted_by_class_and_reason(telemetry: Telemetry) -> None:
    judged, late = (a_run_version(a_run("default", head=head)) for head in ("a1", "a2"))
    expired = replace(late, run_class=RunClass.UNRESOLVED, class_reason="expired")
    telemetry.graded(a_version(judged, expired))
    telemetry.graded(a_version(judged))
    assert telemetry.snapshot() == {
        "tracegrade.runs.graded judged": 2,
        "tracegrade.runs.graded unresolved": 1,
        "tracegrade.runs.unresolved expired": 1,
    }


def test_what_a_judgment_cost_is_counted_where_it_is_known(telemetry: Telemetry) -> None:
    telemetry.judged(JUDGMENT)
    telemetry.judged(replace(JUDGMENT, outcome=Outcome.GRADER_ERROR, cost_usd=None, input_tokens=0, output_tokens=0))
    assert telemetry.snapshot() == {
        "tracegrade.judgments pass": 1,
        "tracegrade.judgments grader_error": 1,
        "tracegrade.judge.tokens input": 100,
        "tracegrade.judge.tokens output": 20,
        "tracegrade.judge.cost": 0.25,
    }


def test_spans_that_are_not_whole_are_counted(telemetry: Telemetry) -> None:
    telemetry.exported(TRACES, Decoded((a_span(), a_span(), a_span()), rejected=1, truncated=2))
    assert telemetry.snapshot() == {
        "tracegrade.spans.received": 3,
        "tracegrade.spans.rejected": 1,
        "tracegrade.spans.truncated": 2,
    }


def test_opentelemetry_is_given_the_same_numbers(telemetry: Telemetry, reader: InMemoryMetricReader) -> None:
    telemetry.received(7, 2)
    telemetry.received(3, 0)
    telemetry.gauge(Metric.TRACES_OPEN, lambda: 5)
    telemetry.dead_letter("assemble")
    data = reader.get_metrics_data()
    assert data is not None
    points = {
        metric.name: [getattr(point, "value", None) for point in metric.data.data_points]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert points == {
        "tracegrade.spans.received": [10],
        "tracegrade.spans.rejected": [2],
        "tracegrade.traces.open": [5],
        "tracegrade.dead_letters": [1],
    }
    assert telemetry.snapshot() == {
        "tracegrade.spans.received": 10,
        "tracegrade.spans.rejected": 2,
        "tracegrade.dead_letters assemble": 1,
        "tracegrade.traces.open": 5,
    }
