"""Vercel AI SDK 7: the GenAI conventions under scope ``gen_ai``, a few things otherwise (dialects reference, section 6)."""

from typing import Any, Final

import msgspec

from collectors.dialects import genai
from collectors.dialects.attributes import first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.parts import tool_definitions
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind, ToolDefinition

_NAME: Final = "vercel_v7"


def read(span: Span) -> Step:
    """Read as the conventions are read. An agent without a name is called by its model in the span's name, which is no name of it."""
    step = genai.read_as(span, _NAME, genai.kind_of(span))
    if step.kind in (StepKind.AGENT, StepKind.ORCHESTRATION):
        named = first_text(span.attributes, "gen_ai.agent.name")
        return msgspec.structs.replace(step, kind=StepKind.AGENT, agent=named or first_text(span.resource, "service.name"))
    if step.kind is StepKind.MODEL:
        return msgspec.structs.replace(step, tools=_tools(span.attributes.get("gen_ai.tool.definitions")) or step.tools)
    return step


def _tools(value: Any) -> tuple[ToolDefinition, ...]:
    """Read tools whose schema goes by its name in the SDK."""
    listed = structured(value)
    tools = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tool_definitions([one | {"parameters": one.get("inputSchema", one.get("parameters"))} for one in tools])


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Vercel AI SDK 7",
        default="nothing until @ai-sdk/otel is registered; then everything, unless recordInputs or recordOutputs is false",
        content="registerTelemetry(new OpenTelemetry()) of @ai-sdk/otel, and telemetry: { functionId: 'my-agent' }",
    ),
    marks=Marks(scopes=("gen_ai",)),
    read=read,
)
