"""The shapes of recordings that are known, told apart by what is in a document and never by its file name."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay import agentdojo, any_agent, jaeger, langfuse, openai_agents, otlp_json, span_dicts, tau_bench


class Shape(NamedTuple):
    """One way in which spans, or what can be rendered as spans, stand in files."""

    name: str
    what: str
    """What to look for in a file, for messages."""
    matches: Callable[[Any], bool]
    requests: Callable[[Any, str], Iterator[ExportTraceServiceRequest]]
    """Turns a document and the name of its file into OTLP requests; may take the document apart."""
    transcript: bool = False
    """Its times are made up, so they have no order with those of recorded spans."""


def _shape(module: ModuleType, *, transcript: bool = False) -> Shape:
    return Shape(module.NAME, module.WHAT, module.matches, module.requests, transcript)


SHAPES: Final = (
    _shape(otlp_json),
    _shape(any_agent),
    _shape(span_dicts),
    _shape(jaeger),
    _shape(langfuse),
    _shape(openai_agents),
    _shape(tau_bench, transcript=True),
    _shape(agentdojo, transcript=True),
)

_NO_SPANS: Final = (
    ({"resourceLogs"}, "OTLP log records"),
    ({"resourceMetrics"}, "OTLP metrics"),
    ({"eval_cases"}, "an evaluation set"),
    ({"scenario", "calls"}, "the truth of a scenario"),
)
"""Keys of documents that lie beside recordings, and what such a document is."""


def shape_of(document: Any) -> Shape | None:
    """Return the shape of the document; None where none matches."""
    return next((shape for shape in SHAPES if shape.matches(document)), None)


def no_spans(document: Any) -> str:
    """Return what the document is if it is known to hold no spans; empty otherwise."""
    if not isinstance(document, dict):
        return ""
    return next((what for keys, what in _NO_SPANS if keys <= document.keys()), "")


def known() -> str:
    """Return the known shapes, one a line."""
    return "\n".join(f"  {shape.name}: {shape.what}" for shape in SHAPES)
