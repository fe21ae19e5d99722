"""Own telemetry, set up once a process: structured logs to stderr, metrics to an OTLP endpoint where one is named."""

import logging
import os
import sys
from typing import Final

import structlog
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

ENDPOINT: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
"""Names where metrics go. The general OTLP variable is not read: it usually names tracegrade itself."""


def log_to_stderr(level: str = "info") -> None:
    """Write one line an event: JSON where nobody watches, readable in a terminal. Values are quoted, so no text can forge a line."""
    watched = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if watched else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def meter_provider() -> MeterProvider:
    """Return where metrics are made; they are exported once a minute if an endpoint is named."""
    readers: list[MetricReader] = [PeriodicExportingMetricReader(OTLPMetricExporter())] if os.environ.get(ENDPOINT) else []
    return MeterProvider(metric_readers=readers, shutdown_on_exit=False)
