"""Google's Agent Development Kit, in all its generations (dialects reference, section 10).

The newest writes OpenTelemetry's conventions. Those before it keep requests and responses of Gemini's API, and arguments and results, under
names of their own; OpenInference's instrumentation of ADK writes on the same spans and is read here, too.
"""

import re
from typing import Any, Final

import msgspec

from collectors.dialects import openinference
from collectors.dialects.attributes import UNREADABLE, as_dict, as_text, captured, decoded, first, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import Given, Returned, given, returned, tool_step
from collectors.dialects.genai import agent_name, kind_of, read_as
from collectors.dialects.messages import messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.steps import HANDOFF, NO_CONTENT, TRUNCATED, step_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition
from pipeline.scorers.calls import NOT_EXECUTED

_NAME: Final = "adk"
_OPENINFERENCE: Final = "openinference.instrumentation.google_adk"
_REQUEST: Final = "gcp.vertex.agent.llm_request"
_RESPONSE: Final = "gcp.vertex.agent.llm_response"
_ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
_RESULT: Final = "gcp.vertex.agent.tool_response"
_NAMED: Final = re.compile(r"(?:agent_run|invoke_agent) \[?([^\]]+)\]?")
_INNER: Final = "generate_content "
"""How the name of a call begins that, before version 2, stands inside a ``call_llm``, which has the content of both."""
_MERGED: Final = "(merged tools)"
_NO_SUCH_TOOL: Final = "Tool not found"
"""Description of the stand-in that ADK makes for a tool that it does not have: its span is no execution."""


def read(span: Span) -> Step:
    """Read by operation, or by name: older generations name none on model calls, and none at all on the span above everything."""
    kind = _kind(span)
    if kind is StepKind.MODEL:
        return _model(span)
    if kind is StepKind.TOOL:
        return _tool(span)
    if kind in (StepKind.AGENT, StepKind.ORCHESTRATION):
        return _agent(span, kind)
    return read_as(span, _NAME, kind)


def _kind(span: Span) -> StepKind:
    first_word = span.name.partition(" ")[0]
    if first_word == "invocation":
        return StepKind.ORCHESTRATION
    if first_word == "call_llm":
        return StepKind.MODEL
    return StepKind.AGENT if first_word == "agent_run" else kind_of(span)


def _agent(span: Span, kind: StepKind) -> Step:
    """Read an agent or what is above it; OpenInference adds what it was given and the event that it ended with."""
    step = read_as(span, _NAME, kind)
    named = _NAMED.fullmatch(span.name)
    given_to = messages_of(_object(span, "input.value").get("new_message"), "user")
    gave = messages_of(_object(span, "output.value").get("content"), "assistant")
    return msgspec.structs.replace(
        step,
        kind=kind,
        agent=agent_name(span) or (named[1] if named else "") if kind is StepKind.AGENT else "",
        input=step.input or given_to,
        output=step.output or gave,
    )


def _model(span: Span) -> Step:
    """Read a model call: by the conventions, else the request and the response as they were sent, else as OpenInference has it."""
    step = read_as(span, _NAME, StepKind.MODEL)
    if NO_CONTENT not in step.flags:
        return step
    request, response = (decoded(first(span.attributes, key)) for key in (_REQUEST, _RESPONSE))
    truncated = request is UNREADABLE or response is UNREADABLE
    given_to, tools = _requested(as_dict(request))
    produced = messages_of(as_dict(response).get("content"), "assistant")
    flags = tuple(flag for flag in step.flags if flag != NO_CONTENT)
    if given_to or produced or truncated:
        flags = (TRUNCATED, *flags) if truncated else flags
        return msgspec.structs.replace(step, input=given_to, output=produced, tools=tools, flags=flags)
    if span.scope_name == _OPENINFERENCE:
        return msgspec.structs.replace(openinference.DIALECT.read(span), dialect=_NAME)
    told_around = span.name.startswith(_INNER) and "gen_ai.system" in span.attributes
    return msgspec.structs.replace(step, flags=flags) if told_around else step


def _requested(request: dict[str, Any]) -> tuple[tuple[Message, ...], tuple[ToolDefinition, ...]]:
    config = as_dict(request.get("config"))
    rules = config.get("system_instruction")
    system = messages_of(
        [rules | {"role": "system"} if isinstance(rules, dict) else {"role": "system", "content": rules}], "system"
    )
    offers = [as_dict(one).get("function_declarations") for one in _listed(config.get("tools"))]
    tools = tool_definitions([_declared(as_dict(one)) for offer in offers for one in _listed(offer)])
    return (*system, *messages_of(request.get("contents"), "user")), tools


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _declared(declaration: dict[str, Any]) -> dict[str, Any]:
    """Return a function's declaration with its parameters as JSON Schema, whose types Gemini's API writes in capitals."""
    schema = declaration.get("parameters_json_schema") or _json_schema(declaration.get("parameters"))
    return {"name": declaration.get("name"), "parameters": schema}


def _json_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _json_schema(value) for key, value in schema.items()
    }


def _tool(span: Span) -> Step:
    attributes = span.attributes
    name = first_text(attributes, "gen_ai.tool.name") or span.name.removeprefix("execute_tool ")
    call_id = first_text(attributes, "gen_ai.tool.call.id")
    if name in (_MERGED, "(merged)"):  # repeats the results of parallel calls
        return step_of(span, _NAME, StepKind.OTHER)
    if attributes.get("gen_ai.tool.type") == "TransferToAgentTool" or name == "transfer_to_agent":
        return step_of(span, _NAME, StepKind.OTHER, tool=ToolCall(name, call_id), flags=(HANDOFF,))
    got, gave = _given(span), _returned(span)
    return _with_reason(tool_step(span, _NAME, name, call_id, got, gave, agent=agent_name(span)), span)


def _given(span: Span) -> Given:
    own = first(span.attributes, "gen_ai.tool.call.arguments", _ARGUMENTS)
    return given(own if own is not None else first(span.attributes, "input.value"))


def _returned(span: Span) -> Returned:
    """Return what the tool returned. ``{}`` is what ADK writes where content is switched off, and the last where nothing was returned."""
    own = first(span.attributes, "gen_ai.tool.call.result", _RESULT)
    if own is None:
        told = _object(span, "output.value")
        own = told.get("response", told or None)
    return Returned() if structured(own) in ({}, {"result": "<not specified>"}) else returned(own)


def _with_reason(step: Step, span: Span) -> Step:
    """Add what failed, which the result alone says (dialects reference, trap 10): ADK's spans say at most the type of the error."""
    call = step.tool
    reason = as_dict(structured(call.result)).get("error") if call is not None else None
    if call is None or not reason or isinstance(reason, bool) or not captured(reason):
        return step
    named = first_text(span.attributes, "error.type")
    if step.error in (None, named):
        error = f"{named}: {as_text(reason)}" if named else as_text(reason)
        step = msgspec.structs.replace(step, error=error, tool=msgspec.structs.replace(call, error=error))
    if span.attributes.get("gen_ai.tool.description") == _NO_SUCH_TOOL and step.tool is not None:
        return msgspec.structs.replace(step, tool=msgspec.structs.replace(step.tool, error=NOT_EXECUTED))
    return step


def _object(span: Span, key: str) -> dict[str, Any]:
    return as_dict(structured(span.attributes.get(key)))


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Google ADK, alone or under OpenInference",
        default="names, models, tokens and errors, and before version 2 messages, arguments and results, too",
        content="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT; before version 2 ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS, "
        "which is on",
    ),
    marks=Marks(scopes=("gcp.vertex.agent", _OPENINFERENCE), attributes=("gcp.vertex.agent.*",)),
    read=read,
)
