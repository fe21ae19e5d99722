"""Gemini CLI (dialects reference, section 12): spans of a coding assistant, with operations of its own and Gemini's form of messages."""

from typing import Any, Final

import msgspec

from collectors.dialects.attributes import as_dict, first, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.genai import OPERATION, kind_of, read_as
from collectors.dialects.messages import messages_of
from collectors.dialects.renaming import renamed
from collectors.dialects.steps import NO_CONTENT, step_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "gemini_cli"
_AGENT: Final = "gemini-cli"
_NAMES: Final = {
    "input-json": "gen_ai.input.messages",
    "output-json": "gen_ai.output.messages",
    "gen_ai.tool.call_id": "gen_ai.tool.call.id",
}
"""What earlier releases write → the conventions' name."""
_KINDS: Final = {
    "llm_call": StepKind.MODEL,
    "tool_call": StepKind.TOOL,
    "agent_call": StepKind.AGENT,
    "user_prompt": StepKind.AGENT,
    "system_prompt": StepKind.OTHER,
    "schedule_tool_calls": StepKind.CHAIN,
}
"""By operation, or by name where there is none. What a user typed and all that came of it is a run of the assistant."""


def read(span: Span) -> Step:
    """Read by operation; messages may be a bare text."""
    span = renamed(span, _NAMES)
    kind = _KINDS.get(first_text(span.attributes, OPERATION) or span.name.partition(" ")[0], kind_of(span))
    if kind is StepKind.TOOL:
        return _tool(span)
    if kind not in (StepKind.MODEL, StepKind.AGENT):
        return step_of(span, _NAME, kind)
    step = read_as(span, _NAME, kind)
    given_to = step.input or _messages(span, "gen_ai.input.messages", "user")
    gave = step.output or _messages(span, "gen_ai.output.messages", "assistant")
    flags = tuple(flag for flag in step.flags if flag != NO_CONTENT or not (given_to or gave))
    agent = first_text(span.attributes, "gen_ai.agent.name") or _AGENT
    return msgspec.structs.replace(step, kind=kind, agent=agent, input=given_to, output=gave, flags=flags)


def _messages(span: Span, key: str, role: str) -> tuple[Message, ...]:
    value = structured(span.attributes.get(key))
    if isinstance(value, dict):
        value = value.get("contents", value)
    return messages_of([{"role": role, "content": value}] if isinstance(value, str) else value, role)


def _tool(span: Span) -> Step:
    request: Any = structured(first(span.attributes, "gen_ai.tool.call.arguments", "gen_ai.input.messages"))
    fields = as_dict(as_dict(request).get("request")) or as_dict(request)
    name = first_text(span.attributes, "gen_ai.tool.name") or first_text(fields, "name") or span.name
    call_id = first_text(span.attributes, "gen_ai.tool.call.id") or first_text(fields, "callId")
    got = given(fields.get("args", request))
    gave = returned(first(span.attributes, "gen_ai.tool.call.result", "gen_ai.output.messages"))
    return tool_step(span, _NAME, name, call_id, got, gave, agent=_AGENT)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Gemini CLI",
        default="nothing: telemetry is off",
        content="GEMINI_TELEMETRY_ENABLED=true and GEMINI_TELEMETRY_LOG_PROMPTS=true; GEMINI_DEV_TRACING=true in releases that need it for spans",
    ),
    marks=Marks(scopes=("gemini-cli",), attributes=("gen_ai.agent.name=gemini-cli",)),
    read=read,
)
