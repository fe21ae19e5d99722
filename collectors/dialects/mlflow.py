"""MLflow Tracing (dialects reference, section 12): a type on every span, inputs and outputs as JSON, in the shapes of whatever was traced.

All values are JSON texts, so that a type arrives in quotes. Spans without a type are functions that somebody traced.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from collectors.dialects import genai
from collectors.dialects.attributes import UNREADABLE, as_dict, as_text, captured, decoded
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.messages import messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.payloads import Payload, answered, asked
from collectors.dialects.steps import GUARDRAIL, NO_CONTENT, OPAQUE, TRUNCATED, step_of
from collectors.dialects.usage import Names, usage_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "mlflow"
_TYPE: Final = "mlflow.spanType"
_KINDS: Final = {
    "LLM": StepKind.MODEL,
    "CHAT_MODEL": StepKind.MODEL,
    "TOOL": StepKind.TOOL,
    "AGENT": StepKind.AGENT,
    "WORKFLOW": StepKind.ORCHESTRATION,
    "RETRIEVER": StepKind.RETRIEVAL,
    "EVALUATOR": StepKind.IGNORED,
    "GUARDRAIL": StepKind.OTHER,
    "EMBEDDING": StepKind.OTHER,
    "RERANKER": StepKind.OTHER,
}
"""Any other type is a wrapper."""
_TOKENS: Final = Names(
    input=("input_tokens",), output=("output_tokens",), cached=("cache_read_input_tokens",), reasoning=("reasoning_tokens",)
)


def read(span: Span) -> Step:
    """Read by type; spans that came to MLflow over OTLP have an empty one, and the conventions' operation (reliability R119)."""
    kind = _KINDS.get(_text(span, _TYPE), StepKind.CHAIN)
    if kind is StepKind.CHAIN and genai.OPERATION in span.attributes:
        return genai.read(span)
    step = _of_kind(span, kind)
    session = _text(span, "mlflow.trace.session")
    return msgspec.structs.replace(step, conversation_id=session) if session and not step.conversation_id else step


def _of_kind(span: Span, kind: StepKind) -> Step:
    if kind is StepKind.TOOL:
        arguments, result = given(_value(span, "mlflow.spanInputs")), returned(_value(span, "mlflow.spanOutputs"))
        return tool_step(span, _NAME, span.name, "", arguments, result, agent="")
    if kind is StepKind.MODEL:
        return _model(span)
    if kind in (StepKind.IGNORED, StepKind.OTHER):
        return step_of(span, _NAME, kind, flags=(GUARDRAIL,) if _text(span, _TYPE) == "GUARDRAIL" else ())
    got, gave = asked(_raw(span, "mlflow.spanInputs")), answered(_raw(span, "mlflow.spanOutputs"))
    flags = (*((OPAQUE,) if gave.opaque else ()), *_cut(span))
    agent = span.name if kind is StepKind.AGENT else ""
    return step_of(span, _NAME, kind, agent=agent, input=got.messages, output=gave.messages, flags=flags)


def _model(span: Span) -> Step:
    inputs, outputs = _value(span, "mlflow.spanInputs"), _value(span, "mlflow.spanOutputs")
    fields = as_dict(inputs)
    given_to, gave = _requested(inputs), _produced(outputs)
    truncated = _cut(span)
    nothing = (NO_CONTENT,) if not (given_to or gave.messages or truncated) else ()
    return step_of(
        span,
        _NAME,
        StepKind.MODEL,
        model=_text(span, "mlflow.llm.model") or as_text(fields.get("model")),
        provider=_text(span, "mlflow.llm.provider"),
        input=given_to,
        output=() if gave.opaque else gave.messages,
        tools=tool_definitions(_value(span, "mlflow.chat.tools") or fields.get("tools") or []),
        usage=usage_of(as_dict(_value(span, "mlflow.chat.tokenUsage")), _TOKENS),
        flags=truncated or nothing,
    )


def _requested(inputs: Any) -> tuple[Message, ...]:
    """Return what a model was given: messages, under the name that each API has for them, with the system's apart in some."""
    fields = as_dict(inputs)
    listed = next((fields[key] for key in ("messages", "input", "contents") if isinstance(fields.get(key), list)), inputs)
    rules = next((fields[key] for key in ("system", "instructions") if fields.get(key)), None)
    system = messages_of([{"role": "system", "content": rules}], "system") if rules else ()
    return (*system, *(messages_of(listed, "user") if isinstance(listed, list) else asked(listed).messages))


def _produced(outputs: Any) -> Payload:
    found = messages_of(list(_answers(as_dict(outputs))), "assistant")
    return Payload(found) if found else answered(outputs)


def _answers(outputs: dict[str, Any]) -> Iterator[Any]:
    """Yield messages of a reply: OpenAI's choices and responses, Bedrock's message, Gemini's candidates, LangChain's generations."""
    for choice in _listed(outputs.get("choices")):
        yield as_dict(choice).get("message")
    for candidate in _listed(outputs.get("candidates")):
        yield as_dict(candidate).get("content")
    for generation in _listed(outputs.get("generations")):
        yield from (as_dict(one).get("message") for one in (generation if isinstance(generation, list) else [generation]))
    if outputs.get("object") == "response":
        yield outputs
    yield as_dict(outputs.get("output")).get("message")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cut(span: Span) -> tuple[str, ...]:
    """Return the flag of values that were cut in the middle of their JSON."""
    values = (span.attributes.get(key) for key in ("mlflow.spanInputs", "mlflow.spanOutputs"))
    return (
        (TRUNCATED,)
        if any(isinstance(value, str) and value[:1] in ("{", "[") and decoded(value) is UNREADABLE for value in values)
        else ()
    )


def _raw(span: Span, key: str) -> Any:
    value = span.attributes.get(key)
    return None if value == "null" else value


def _value(span: Span, key: str) -> Any:
    """Return what an attribute's JSON says, or its text where it is none."""
    value = _raw(span, key)
    inner = decoded(value)
    return value if inner is UNREADABLE else inner


def _text(span: Span, key: str) -> str:
    value = _value(span, key)
    return as_text(value) if captured(value) else ""


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(title="MLflow Tracing and its autologging", default="everything: inputs, outputs, tools and tokens"),
    marks=Marks(attributes=(_TYPE, "mlflow.spanInputs", "mlflow.traceRequestId")),
    read=read,
)
