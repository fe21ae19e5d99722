"""Spans that belong to no run whatever their dialect: graders, product telemetry, copies of spans that have not ended."""

from typing import Final

from pipeline.model.span import Span

_SCOPES: Final = frozenset({"crewai.telemetry", "pydantic-evals"})
_LOGFIRE: Final = frozenset({"pending_span", "annotation"})
_FEEDBACK: Final = ("annotations.0.annotation.name", "evaluations.0.evaluation.name")
"""On a span of its own that links to what it is about; the same attributes on the span itself make it no less a part of its run."""


def is_ignored(span: Span) -> bool:
    """Whether the span is no part of any run (dialects reference, sections 7, 12, 14.15): scoring a grader would never end."""
    attributes = span.attributes
    return (
        span.scope_name in _SCOPES
        or attributes.get("openinference.span.kind") == "EVALUATOR"
        or str(attributes.get("logfire.span_type")) in _LOGFIRE
        or "gen_ai.evaluation.name" in attributes
        or "mlflow.trace.sourceScorer" in attributes
        or (bool(span.links) and any(mark in attributes for mark in _FEEDBACK))
    )
