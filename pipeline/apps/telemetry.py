"""Own telemetry: metrics to an OTLP endpoint where one is named."""

import os
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

ENDPOINT: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
"""Names where metrics go. The general OTLP variable is not read: it usually names tracegrade itself."""
LAST_METRICS: Final = 2000.0
"""Milliseconds that the last export of metrics is given."""


def meter_provider() -> MeterProvider:
    """Return where metrics are made; they are exported once a minute if an endpoint is named."""
    readers: list[MetricReader] = [PeriodicExportingMetricReader(OTLPMetricExporter())] if os.environ.get(ENDPOINT) else []
    return MeterProvider(metric_readers=readers, shutdown_on_exit=False)
