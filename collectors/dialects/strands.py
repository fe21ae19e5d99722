"""AWS Strands Agents (dialects reference, section 11): OpenTelemetry's conventions with Bedrock's blocks, on events or on attributes.

Tool spans of the latest conventions may keep arguments and results in messages only. What AWS's distribution of OpenTelemetry takes off the
spans comes back as log records (:mod:`~collectors.dialects.bodies`).
"""

from typing import Any, Final

import msgspec

from collectors.dialects.attributes import as_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import Content, kind_of, read_as
from collectors.dialects.steps import HANDOFF, NO_CONTENT, step_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition
from pipeline.scorers.calls import NOT_EXECUTED

_NAME: Final = "strands"
_HANDOFF: Final = "handoff_to_agent"
"""The tool by which an agent of a swarm hands over."""
_NO_SUCH_TOOL: Final = "Unknown tool: "
"""How the status of a span begins that tells of a tool that there is not: it is no execution."""


def read(span: Span) -> Step:
    """Read by operation. The wrapper of a cycle and the totals of an agent repeat what model calls say."""
    kind = kind_of(span)
    step = read_as(span, _NAME, kind)
    if step.tool is not None and kind is StepKind.TOOL:
        return _tool(span, step, step.tool)
    if step.kind is StepKind.AGENT:
        return msgspec.structs.replace(step, output=tuple(map(_spoken, step.output)), tools=step.tools or _offered(span))
    return step


def _spoken(message: Message) -> Message:
    """Return what an agent said without the line break that Strands ends its result with."""
    return msgspec.structs.replace(message, text=message.text.removesuffix("\n"))


def _offered(span: Span) -> tuple[ToolDefinition, ...]:
    names = structured(span.attributes.get("gen_ai.agent.tools"))
    return tuple(ToolDefinition(name) for name in names if isinstance(name, str) and name) if isinstance(names, list) else ()


def _tool(span: Span, step: Step, call: ToolCall) -> Step:
    if call.name == _HANDOFF:
        return step_of(span, _NAME, StepKind.OTHER, tool=ToolCall(call.name, call.id), flags=(HANDOFF,))
    call = _completed(call, span)
    if span.status_message.startswith(_NO_SUCH_TOOL):
        call = msgspec.structs.replace(call, error=NOT_EXECUTED)
    known = call.arguments is not None or call.raw_arguments or call.result is not None
    flags = tuple(flag for flag in step.flags if not (known and flag == NO_CONTENT))
    return msgspec.structs.replace(step, tool=call, flags=flags)


def _completed(call: ToolCall, span: Span) -> ToolCall:
    """Take from the messages of the span what its attributes and events leave out, and blocks out of the result."""
    content = Content(span)
    asked = next((one for message in content.input for one in message.tool_calls), None)
    told = next((message.text for message in content.output if message.role == "tool"), None)
    if asked is not None and call.arguments is None and not call.raw_arguments:
        call = msgspec.structs.replace(call, arguments=asked.arguments, raw_arguments=asked.raw_arguments)
    result = told if call.result is None else _without_blocks(call.result)
    return msgspec.structs.replace(call, result=result)


def _without_blocks(text: str) -> str:
    """Return the text of a result that is a list of Bedrock's blocks; any other result as it is."""
    blocks = structured(text) if text.startswith("[{") else None
    if not isinstance(blocks, list) or not all(map(_is_block, blocks)):
        return text
    return "\n".join(as_text(value) for block in blocks for value in block.values())


def _is_block(block: Any) -> bool:
    return isinstance(block, dict) and len(block) == 1 and ("text" in block or "json" in block)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="AWS Strands Agents, also on Bedrock AgentCore",
        default="everything: messages, arguments, results, tools and tokens; OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_unredacted_attributes= "
        "leaves content out",
    ),
    marks=Marks(
        scopes=("strands.telemetry.tracer",),
        attributes=("gen_ai.system=strands-agents", "gen_ai.provider.name=strands-agents", "event_loop.cycle_id"),
    ),
    read=read,
)
