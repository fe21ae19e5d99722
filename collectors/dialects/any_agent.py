"""Mozilla any-agent (dialects reference, section 12): OpenTelemetry's conventions with names of its own for arguments, results and replies."""

from typing import Any, Final

import msgspec

from collectors.dialects.attributes import as_dict, as_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import returned
from collectors.dialects.genai import kind_of, read_as
from collectors.dialects.messages import messages_of
from collectors.dialects.renaming import renamed
from collectors.dialects.steps import NO_CONTENT, step_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, ToolCall

_NAME: Final = "any_agent"
_OUTPUT: Final = "gen_ai.output"
_OF_TOOLS: Final = {"gen_ai.tool.args": "gen_ai.tool.call.arguments", _OUTPUT: "gen_ai.tool.call.result"}
_FINAL: Final = "final_output"
"""The tool through which an agent must answer where its answer has a schema; it carries the answer and does nothing."""


def read(span: Span) -> Step:
    """Read by operation."""
    kind = kind_of(span)
    if kind is StepKind.TOOL:
        step = read_as(renamed(span, _OF_TOOLS), _NAME, kind)
        return _answer(span, step.tool) if step.tool is not None and step.tool.name == _FINAL else step
    step = read_as(span, _NAME, kind)
    if kind is not StepKind.MODEL or step.output or _OUTPUT not in span.attributes:
        return step
    flags = tuple(flag for flag in step.flags if flag != NO_CONTENT)
    return msgspec.structs.replace(step, output=_replied(span.attributes[_OUTPUT]), flags=flags)


def _replied(value: Any) -> tuple[Message, ...]:
    """Return a model's reply: calls as a list of objects with two names, or a text."""
    listed = structured(value)
    if not isinstance(listed, list) or not all("tool.name" in as_dict(one) for one in listed):
        return messages_of([{"role": "assistant", "content": as_text(value)}], "assistant")
    calls = [{"name": one["tool.name"], "arguments": one.get("tool.args")} for one in listed]
    return messages_of([{"role": "assistant", "tool_calls": calls}], "assistant")


def _answer(span: Span, call: ToolCall) -> Step:
    """Return the answer that was handed in, unless it was refused."""
    text = call.arguments.get("answer") if isinstance(call.arguments, dict) else None
    refused = as_dict(structured(call.result)).get("success") is False or returned(call.result).failed
    said = (Message("assistant", text),) if isinstance(text, str) and not refused else ()
    return step_of(span, _NAME, StepKind.OTHER, tool=ToolCall(call.name, call.id), output=said)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Mozilla any-agent, whatever framework it runs",
        default="everything but the input of later model calls: messages, arguments, results and tokens",
    ),
    marks=Marks(scopes=("any_agent*", "any-agent*"), attributes=("any_agent.version", "gen_ai.tool.args", _OUTPUT)),
    read=read,
)
