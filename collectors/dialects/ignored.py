"""Spans that belong to no run whatever their dialect: graders, product telemetry, copies of spans that have not ended."""

from typing import Final

from pipeline.model.span import Span

_SCOPES: Final = {
    "crewai.telemetry": "product telemetry of CrewAI",
    "pydantic-evals": "an evaluation",
}
"""Scope → what its spans are instead of a part of a run."""
_ENVIRONMENT: Final = "langfuse.environment"
_LANGFUSE: Final = "langfuse-"
"""How environments begin that Langfuse keeps to itself: ``langfuse-llm-as-a-judge``."""
_FEEDBACK: Final = tuple(
    f"{scope}{one}s.0.{one}.name" for scope in ("", "trace.", "session.") for one in ("annotation", "evaluation")
)
"""On a span of its own that links to what it is about; the same attributes on the span itself make it no less a part of its run."""


def ignored_because(span: Span) -> str:
    """Return what the span is if it is no part of any run, else nothing (dialects reference, sections 7, 12, 14.15).

    Scoring a grader would never end.
    """
    if span.scope_name in _SCOPES:
        return _SCOPES[span.scope_name]
    attributes = span.attributes
    if (
        attributes.get("openinference.span.kind") == "EVALUATOR"
        or "mlflow.trace.sourceScorer" in attributes
        or (_ENVIRONMENT in attributes and str(attributes[_ENVIRONMENT]).startswith(_LANGFUSE))
    ):
        return "an evaluation"
    if "gen_ai.evaluation.name" in attributes:
        return "the result of an evaluation"
    if attributes.get("logfire.span_type") == "pending_span":
        return "a copy that Logfire sends while the span itself is still open"
    if span.links and any(mark in attributes for mark in _FEEDBACK):
        return "feedback on another span"
    return ""
