"""Vercel AI SDK up to version 6, and the legacy telemetry of 7: ``ai.*`` attributes of scope ``ai`` (dialects reference, section 6).

Nothing tells an agent's loop from a single completion: both are an ``ai.generateText`` around calls of a model and of tools.
"""

from typing import Any, Final

from collectors.dialects.attributes import as_text, captured, decoded, first, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.messages import messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.steps import NO_CONTENT, TRUNCATED, conversation_of, step_of
from collectors.dialects.usage import GENAI, Names, usage_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, ToolDefinition

_NAME: Final = "vercel"
_OPERATION: Final = "ai.operationId"
_AGENT: Final = "ai.telemetry.functionId"
_CONVERSATION: Final = tuple(
    f"ai.telemetry.metadata.{name}" for name in ("sessionId", "threadId", "conversationId", "chatId", "session_id", "thread_id")
)
"""Users choose these names; the documentation's examples have the first two."""
_LOOPS: Final = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})
_CALLS: Final = (".doGenerate", ".doStream")
_USAGE: Final = Names(
    input=("ai.usage.inputTokens", "ai.usage.promptTokens", *GENAI.input),
    output=("ai.usage.outputTokens", "ai.usage.completionTokens", *GENAI.output),
    cached=("ai.usage.cachedInputTokens", "ai.usage.inputTokenDetails.cacheReadTokens", *GENAI.cached),
    reasoning=("ai.usage.reasoningTokens", "ai.usage.outputTokenDetails.reasoningTokens", *GENAI.reasoning),
)


def read(span: Span) -> Step:
    """Read by operation."""
    operation = _operation(span)
    if operation == "ai.toolCall":
        return _tool(span)
    if operation.endswith(_CALLS):
        return _model(span)
    if operation in _LOOPS:
        return _agent(span)
    if operation == "ai.rerank":
        return _rerank(span)
    return step_of(span, _NAME, StepKind.OTHER)


def _operation(span: Span) -> str:
    """Return the operation; ``operation.name`` has the function's name after it."""
    named = first_text(span.attributes, _OPERATION) or first_text(span.attributes, "operation.name").partition(" ")[0]
    return named or span.name


def _tool(span: Span) -> Step:
    attributes = span.attributes
    name = first_text(attributes, "ai.toolCall.name") or span.name
    got, gave = given(first(attributes, "ai.toolCall.args")), returned(first(attributes, "ai.toolCall.result"))
    return tool_step(span, _NAME, name, first_text(attributes, "ai.toolCall.id"), got, gave, agent=first_text(attributes, _AGENT))


def _model(span: Span) -> Step:
    attributes = span.attributes
    asked, asked_is_cut = _messages(first(attributes, "ai.prompt.messages"))
    answered, answer_is_cut = _response(span)
    nothing = not (asked or answered)
    return step_of(
        span,
        _NAME,
        StepKind.MODEL,
        agent=first_text(attributes, _AGENT),
        model=first_text(attributes, "ai.response.model", "gen_ai.response.model", "ai.model.id", "gen_ai.request.model"),
        provider=_provider(span),
        input=asked,
        output=answered,
        tools=_tools(attributes.get("ai.prompt.tools")),
        usage=usage_of(attributes, _USAGE),
        conversation_id=conversation_of(attributes, _CONVERSATION),
        flags=(TRUNCATED,) if asked_is_cut or answer_is_cut else (NO_CONTENT,) if nothing else (),
    )


def _agent(span: Span) -> Step:
    attributes = span.attributes
    asked, asked_is_cut = _prompt(first(attributes, "ai.prompt"))
    answered, answer_is_cut = _response(span)
    return step_of(
        span,
        _NAME,
        StepKind.AGENT,
        agent=first_text(attributes, _AGENT) or first_text(span.resource, "service.name"),
        model=first_text(attributes, "ai.model.id"),
        provider=_provider(span),
        input=asked,
        output=answered,
        usage=usage_of(attributes, _USAGE),
        conversation_id=conversation_of(attributes, _CONVERSATION),
        flags=(TRUNCATED,) if asked_is_cut or answer_is_cut else (),
    )


def _provider(span: Span) -> str:
    """Return the provider without the name of its interface: ``openai`` of ``openai.chat``."""
    return first_text(span.attributes, "ai.model.provider", "gen_ai.system").partition(".")[0]


def _rerank(span: Span) -> Step:
    listed = structured(span.attributes.get("ai.documents"))
    documents = [as_text(structured(one)) for one in listed] if isinstance(listed, list) else []
    return step_of(span, _NAME, StepKind.RETRIEVAL, output=tuple(Message("tool", text) for text in documents if text))


def _prompt(value: Any) -> tuple[tuple[Message, ...], bool]:
    """Read ``{"system", "prompt" or "messages"}``, and whether it was cut."""
    prompt = structured(value)
    if not isinstance(prompt, dict):
        return _messages(prompt)
    rules = prompt.get("system")
    said = [{"role": "system", "content": rules}] if captured(rules) else []
    asked = prompt.get("messages", prompt.get("prompt"))
    if isinstance(asked, str):  # a text, whatever it begins with: what it stands in was read whole
        return (*messages_of(said, "system"), Message("user", asked)), False
    messages, is_cut = _messages(asked)
    return (*messages_of(said, "system"), *messages), is_cut


def _messages(value: Any) -> tuple[tuple[Message, ...], bool]:
    if value is None:
        return (), False
    listed = structured(value)
    if isinstance(listed, str):
        cut = listed[:1] in ("[", "{")
        return () if cut or not listed else (Message("user", listed),), cut
    return messages_of([_message(one) for one in listed] if isinstance(listed, list) else listed, "user"), False


def _message(raw: Any) -> Any:
    if not isinstance(raw, dict) or not isinstance(raw.get("content"), list):
        return raw
    return {"role": raw.get("role"), "parts": [_part(part) for part in raw["content"]]}


def _part(part: Any) -> Any:
    """Return a part with the names that the conventions give its fields."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "tool-call":
        return _call(part) | {"type": "tool_call"}
    if kind == "tool-result":
        return {
            "type": "tool_call_response",
            "id": part.get("toolCallId"),
            "name": part.get("toolName"),
            "response": _result(part),
        }
    return part


def _call(raw: dict[str, Any]) -> dict[str, Any]:
    """Arguments are ``input`` since version 5, ``args`` before."""
    return {"id": raw.get("toolCallId"), "name": raw.get("toolName"), "arguments": raw.get("input", raw.get("args"))}


def _result(part: dict[str, Any]) -> Any:
    """Return what the model was told: since version 5 a value with its type beside it."""
    output = part.get("output", part.get("result"))
    if (
        isinstance(output, dict)
        and isinstance(output.get("type"), str)
        and output.keys() <= {"type", "value", "reason", "providerOptions"}
    ):
        return output.get("value", output.get("reason"))
    return output


def _response(span: Span) -> tuple[tuple[Message, ...], bool]:
    """Return what was answered, text and calls or an object, and whether it was cut."""
    attributes = span.attributes
    text = first(attributes, "ai.response.text", "ai.response.object", "ai.result.text", "ai.result.object")
    calls = structured(first(attributes, "ai.response.toolCalls", "ai.result.toolCalls"))
    listed = [_call(one) for one in calls if isinstance(one, dict)] if isinstance(calls, list) else []
    said = {"role": "assistant", "content": as_text(text), "tool_calls": listed}
    return messages_of([said], "assistant"), isinstance(calls, str) and calls[:1] in ("[", "{")


def _tools(value: Any) -> tuple[ToolDefinition, ...]:
    """Read a list of tools, each of them JSON by itself; the schema goes by another name than elsewhere."""
    listed = structured(value)
    found = [decoded(one) for one in listed] if isinstance(listed, list) else []
    renamed = [one | {"parameters": one.get("inputSchema", one.get("parameters"))} for one in found if isinstance(one, dict)]
    return tool_definitions(renamed)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Vercel AI SDK 3 to 6, and the legacy telemetry of 7",
        default="nothing until telemetry is on; then everything, unless recordInputs or recordOutputs is false",
        content="experimental_telemetry: { isEnabled: true, functionId: 'my-agent' } on each call or agent",
    ),
    marks=Marks(scopes=("ai", "opencode"), attributes=(_OPERATION,)),
    read=read,
)
