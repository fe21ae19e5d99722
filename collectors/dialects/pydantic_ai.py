"""Pydantic AI's own instrumentation, formats 1 to 6 (dialects reference, section 7).

The conventions, with another place for an agent's messages, names of its own up to format 2, and tools that are none: those that carry the
final output.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from collectors.dialects import genai
from collectors.dialects.attributes import UNREADABLE, as_dict, as_text, decoded, first, first_text, integer, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import returned
from collectors.dialects.messages import instructions, messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.steps import NO_CONTENT, TRUNCATED, step_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, ToolCall
from pipeline.scorers.calls import NOT_EXECUTED

_NAME: Final = "pydantic_ai"
_ALL: Final = ("pydantic_ai.all_messages", "all_messages_events")
_NEW: Final = "pydantic_ai.new_message_index"
_FINAL: Final = "final_result"
_DEFERRED: Final = "pydantic_ai.tool.deferral.name"
_FAILED_AT: Final = "pydantic_ai.tool.failure_stage"
_RESULT: Final = ("gen_ai.tool.call.result", "tool_response")


def read(span: Span) -> Step:
    """Read as the conventions are read, by operation or, before format 3, by name."""
    kind = _kind_of(span)
    if kind is StepKind.MODEL:
        return _model(span)
    if kind is StepKind.TOOL:
        return _output(span) if _is_output(span) else _tool(span)
    return _agent(span) if kind is StepKind.AGENT else genai.read_as(span, _NAME, kind)


def _kind_of(span: Span) -> StepKind:
    if span.name.startswith("running ") and "tools" in span.attributes:  # the wrapper of parallel calls
        return StepKind.CHAIN
    if genai.OPERATION not in span.attributes and first(span.attributes, *_ALL, _FINAL) is not None:
        return StepKind.AGENT
    return genai.kind_of(span)


def _model(span: Span) -> Step:
    step = genai.read_as(span, _NAME, StepKind.MODEL)
    asked, answered = _events(span.attributes.get("events"))
    if asked or answered:
        flags = tuple(flag for flag in step.flags if flag != NO_CONTENT)
        step = msgspec.structs.replace(
            step,
            input=step.input or messages_of(asked, "user"),
            output=step.output or messages_of(answered, "assistant"),
            flags=flags,
        )
    parameters = as_dict(structured(span.attributes.get("model_request_parameters")))
    offered, outputs = step.tools or tool_definitions(parameters.get("function_tools")), _output_tools(parameters)
    if not outputs:
        return step if offered == step.tools else msgspec.structs.replace(step, tools=offered)
    return msgspec.structs.replace(
        step,
        input=tuple(_without_outputs(message, outputs) for message in step.input),
        output=tuple(_without_outputs(message, outputs) for message in step.output),
        tools=tuple(tool for tool in offered if tool.name not in outputs),
    )


def _output_tools(parameters: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the tools by which the model gives its output; ``result_tools`` until version 0.1."""
    listed = parameters.get("output_tools", parameters.get("result_tools"))
    return frozenset(as_text(as_dict(one).get("name")) for one in listed) if isinstance(listed, list) else frozenset()


def _without_outputs(message: Message, outputs: frozenset[str]) -> Message:
    """Turn calls that only carry the output into what they are: the answer."""
    carried = [call for call in message.tool_calls if call.name in outputs]
    if not carried:
        return message
    text = message.text or "\n".join(_given(call) for call in carried)
    calls = tuple(call for call in message.tool_calls if call.name not in outputs)
    return msgspec.structs.replace(message, text=text, tool_calls=calls)


def _given(call: ToolCall) -> str:
    return call.raw_arguments if call.arguments is None else as_text(call.arguments)


def _is_output(span: Span) -> bool:
    said = span.attributes.get("logfire.msg")
    return span.name == "running output function" or (isinstance(said, str) and said.startswith("running output function"))


def _output(span: Span) -> Step:
    """An output function: what it returned is what the run gave."""
    gave = returned(first(span.attributes, *_RESULT)).text
    said = (Message("assistant", gave),) if gave else ()
    return step_of(span, _NAME, StepKind.OTHER, agent=genai.agent_name(span), output=said)


def _tool(span: Span) -> Step:
    step = genai.read_as(span, _NAME, StepKind.TOOL)
    if step.tool is not None and span.attributes.get(_FAILED_AT) == "validation":  # the function was never entered
        return msgspec.structs.replace(step, tool=msgspec.structs.replace(step.tool, error=NOT_EXECUTED))
    if step.tool is None or _DEFERRED not in span.attributes:
        return step
    # It waits for somebody's approval, or is done elsewhere; formats before 5 mark that as an error.
    return msgspec.structs.replace(step, error=None, tool=msgspec.structs.replace(step.tool, error=None))


def _agent(span: Span) -> Step:
    """An agent's run. Messages before the new ones are of earlier runs, and none of them was said in this one."""
    attributes = span.attributes
    step = genai.read_as(span, _NAME, StepKind.AGENT)
    listed = decoded(first(attributes, *_ALL))
    truncated = (TRUNCATED,) if listed is UNREADABLE and TRUNCATED not in step.flags else ()
    raw = [_raw(one) for one in listed] if isinstance(listed, list) else []
    before = min(max(integer(attributes.get(_NEW)) or 0, 0), len(raw))
    own = messages_of(raw[before:], "user")
    asked = next((index for index, message in enumerate(own) if message.role == "user" and message.text), -1) + 1
    rules = () if any(message.role == "system" for message in step.input) else _rules(attributes)
    given_to = (*rules, *messages_of(raw[:before], "user"), *own[:asked])
    called = tuple(message for message in own[asked:] if message.tool_calls)
    said = first(attributes, _FINAL)
    answer = (Message("assistant", as_text(said)),) if said is not None else ()
    return msgspec.structs.replace(
        step,
        kind=StepKind.AGENT,
        agent=genai.agent_name(span) or first_text(span.resource, "service.name"),
        model=step.model or first_text(attributes, "model_name"),
        input=(*step.input, *given_to),
        output=(*called, *answer) if answer else called or step.output,
        flags=(*step.flags, *truncated),
    )


def _rules(attributes: Mapping[str, Any]) -> tuple[Message, ...]:
    value = first(attributes, "gen_ai.system_instructions")
    return () if value is None else instructions(value)


def _events(value: Any) -> tuple[list[Any], list[Any]]:
    """Read the attribute ``events`` of format 1: what the model was given, and its choices."""
    listed = decoded(value) if value is not None else None
    events = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    asked = [_raw(one) for one in events if one.get("event.name") != "gen_ai.choice"]
    choices = [structured(one.get("message")) for one in events if one.get("event.name") == "gen_ai.choice"]
    return asked, [one if isinstance(one, dict) else {"content": one} for one in choices]


def _raw(message: Any) -> Any:
    """Give an event of format 1 the fields of a message."""
    if not isinstance(message, dict) or "event.name" not in message:
        return message
    role = as_text(message["event.name"]).removeprefix("gen_ai.").removesuffix(".message")
    return {
        "role": role,
        "content": message.get("content"),
        "tool_calls": message.get("tool_calls"),
        "tool_call_id": message.get("id"),
    }


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Pydantic AI, with or without Logfire",
        default="nothing until an agent is instrumented; then everything, unless include_content is False",
        content="Agent.instrument_all(), and include_content=True in InstrumentationSettings",
    ),
    marks=Marks(scopes=("pydantic-ai",)),
    read=read,
)
