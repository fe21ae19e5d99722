"""OpenAI Agents SDK in its own words: what its tracing exports, as it is or as Logfire puts it on spans (dialects reference, section 9).

What OpenInference, OpenLLMetry and OpenTelemetry's instrumentation make of the same traces are dialects of their own.
"""

from typing import Any, Final

from collectors.dialects import genai
from collectors.dialects.attributes import UNREADABLE, as_dict, captured, decoded, first, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.messages import instructions, messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.steps import GUARDRAIL, NO_CONTENT, TRUNCATED, step_of
from collectors.dialects.usage import GENAI, Names, usage_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, Usage

_NAME: Final = "openai_agents"
SCOPE: Final = "openai-agents"
"""Scope of spans that were made from the SDK's own export."""
_TYPES: Final = {
    "OpenAI Agents trace": "trace",
    "Agent run": "agent",
    "Function": "function",
    "Responses API": "response",
    "Chat completion": "generation",
    "Handoff": "handoff",
    "Guardrail": "guardrail",
}
"""How the names of Logfire's spans begin → type of the SDK's span."""
_USAGE: Final = Names(
    input=("input_tokens", "prompt_tokens"),
    output=("output_tokens", "completion_tokens"),
    cached=("cached_input_tokens", "cached_tokens"),
    reasoning=("reasoning_tokens",),
)


def read(span: Span) -> Step:
    """Read by the type of the SDK's span; tasks and turns come as custom ones, and wrap others."""
    reader = _READERS.get(_type(span))
    return step_of(span, _NAME, StepKind.OTHER) if reader is None else reader(span)


def _type(span: Span) -> str:
    own = first_text(span.attributes, "type")
    return own or next((kind for beginning, kind in _TYPES.items() if span.name.startswith(beginning)), "custom")


def _trace(span: Span) -> Step:
    return step_of(span, _NAME, StepKind.ORCHESTRATION, conversation_id=first_text(span.attributes, "group_id"))


def _agent(span: Span) -> Step:
    return step_of(span, _NAME, StepKind.AGENT, agent=first_text(span.attributes, "name"))


def _handoff(span: Span) -> Step:
    return genai.handoff(span, _NAME, first_text(span.attributes, "to_agent"))


def _guardrail(span: Span) -> Step:
    return step_of(span, _NAME, StepKind.OTHER, flags=(GUARDRAIL,))


def _wrapper(span: Span) -> Step:
    return step_of(span, _NAME, StepKind.CHAIN)


def _function(span: Span) -> Step:
    attributes = span.attributes
    name = first_text(attributes, "name") or span.name
    got, gave = given(first(attributes, "input")), returned(first(attributes, "output"))
    return tool_step(span, _NAME, name, "", got, gave, agent="")


def _model(span: Span) -> Step:
    attributes = span.attributes
    response = as_dict(structured(attributes.get("response")))
    asked, asked_is_cut = _said(first(attributes, "raw_input", "input"), "user")
    answered, answer_is_cut = _said(response or first(attributes, "output"), "assistant")
    rules = response.get("instructions")
    given_to = (*(instructions(rules) if captured(rules) else ()), *asked)
    truncated = asked_is_cut or answer_is_cut
    return step_of(
        span,
        _NAME,
        StepKind.MODEL,
        model=first_text(response, "model") or first_text(attributes, "model", "gen_ai.response.model", "gen_ai.request.model"),
        provider=first_text(attributes, "gen_ai.system"),
        input=given_to,
        output=answered,
        tools=tool_definitions(response.get("tools")),
        usage=_usage(span, response),
        flags=(TRUNCATED,) if truncated else () if given_to or answered else (NO_CONTENT,),
    )


def _said(value: Any, role: str) -> tuple[tuple[Message, ...], bool]:
    """Return the messages of a text, a list or a response, and whether it was cut."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        value = decoded(value)
        if value is UNREADABLE:
            return (), True
    return messages_of([{"role": role, "content": value}] if isinstance(value, str) else value, role), False


def _usage(span: Span, response: dict[str, Any]) -> Usage | None:
    counts = as_dict(structured(span.attributes.get("usage"))) or as_dict(response.get("usage"))
    details = as_dict(counts.get("input_tokens_details")) | as_dict(counts.get("output_tokens_details"))
    return usage_of(details | counts, _USAGE) or usage_of(span.attributes, GENAI)


_READERS: Final = {
    "trace": _trace,
    "agent": _agent,
    "generation": _model,
    "response": _model,
    "function": _function,
    "handoff": _handoff,
    "guardrail": _guardrail,
    "custom": _wrapper,
}

DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="OpenAI Agents SDK, its own export, and Logfire's instrumentation of it",
        default="names, tools, their arguments and results, tokens; of the Responses API the export has no messages, Logfire has",
        content="RunConfig(trace_include_sensitive_data=True), which is the default; for messages use Logfire or OpenInference",
    ),
    marks=Marks(scopes=(SCOPE, "logfire.openai_agents")),
    read=read,
)
