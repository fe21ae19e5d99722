"""JetBrains Koog (dialects reference, section 12): an agent's span from its creation on, a span for each of its runs below, nodes of its graph.

Its agents have ids and no names. Older releases write messages indexed, with calls as content, and tools' inputs and outputs under OpenInference's
names.
"""

from typing import Any, Final

import msgspec

from collectors.dialects.attributes import as_dict, first_text, in_order, nested, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import OPERATION, kind_of, read_as
from collectors.dialects.messages import messages_of
from collectors.dialects.renaming import renamed
from collectors.dialects.steps import NO_CONTENT, step_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "koog"
_OF_TOOLS: Final = {"input.value": "gen_ai.tool.call.arguments", "output.value": "gen_ai.tool.call.result"}


def read(span: Span) -> Step:
    """Read by operation, nodes by their name. What creates an agent is above its runs, and no part of one."""
    if span.attributes.get(OPERATION) == "create_agent":
        return step_of(span, _NAME, StepKind.OTHER)
    if "koog.node.name" in span.attributes:
        return step_of(span, _NAME, StepKind.CHAIN)
    kind = kind_of(span)
    if kind is StepKind.TOOL:
        return read_as(renamed(span, _OF_TOOLS), _NAME, kind)
    step = read_as(span, _NAME, kind)
    if kind is StepKind.AGENT:
        return msgspec.structs.replace(step, kind=kind, agent=step.agent or first_text(span.resource, "service.name"))
    return _with_indexed(step, span) if kind is StepKind.MODEL and NO_CONTENT in step.flags else step


def _with_indexed(step: Step, span: Span) -> Step:
    given_to, gave = _indexed(span, "gen_ai.prompt.", "user"), _indexed(span, "gen_ai.completion.", "assistant")
    flags = tuple(flag for flag in step.flags if flag != NO_CONTENT) if given_to or gave else step.flags
    return msgspec.structs.replace(step, input=given_to, output=gave, flags=flags)


def _indexed(span: Span, prefix: str, role: str) -> tuple[Message, ...]:
    found: list[dict[str, Any]] = []
    for one in map(as_dict, in_order(nested(span.attributes, prefix))):
        content = structured(one.get("content"))
        calls = content if isinstance(content, list) and all("function" in as_dict(call) for call in content) else []
        found.append(one | {"role": one.get("role") or role, "content": "" if calls else content, "tool_calls": calls})
    return messages_of(found, role)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="JetBrains Koog",
        default="names, models, tokens and errors; texts are masked",
        content="install(OpenTelemetry) { setVerbose(true) }",
    ),
    marks=Marks(scopes=("ai.koog", "ai.koog.*"), attributes=("koog.node.name", "koog.event.id", "koog.agent.strategy.name")),
    read=read,
)
