"""Logfire: what people say of a span, and calls of models that its own instrumentations of OpenAI's and Anthropic's clients record.

What it records of other frameworks is their dialect (dialects reference, section 7).
"""

from typing import Any, Final

import msgspec

from collectors.dialects import genai
from collectors.dialects.attributes import as_dict, as_text, first, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.evaluations import EVALUATION, evaluations
from collectors.dialects.messages import instructions, messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.steps import NO_CONTENT, step_of
from collectors.dialects.usage import Names, usage_of
from pipeline.model.span import Event, Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "logfire"
_KIND: Final = "logfire.span_type"
_VALUES: Final = ("feedback.score", "feedback.label", "feedback.assertion")
_USAGE: Final = Names(
    input=("input_tokens", "prompt_tokens"),
    output=("output_tokens", "completion_tokens"),
    cached=("cached_tokens",),
    reasoning=(),
)


def read(span: Span) -> Step:
    """Read what was said of a span, or a call of a model."""
    if span.attributes.get(_KIND) == "annotation":
        return _annotation(span)
    if span.attributes.get(_KIND) == "log":  # what a stream came to; the call itself is a span beside it
        return step_of(span, _NAME, StepKind.OTHER, output=_streamed(span))
    return _model(span)


def _annotation(span: Span) -> Step:
    """Feedback on the span above, often hours later. Its value stands under its name, and under fixed names in older versions."""
    attributes = span.attributes
    name = first_text(attributes, "logfire.feedback.name", "feedback.name")
    value = first(attributes, *((name,) if name else ()), *_VALUES)
    what = "value" if isinstance(value, int | float) and not isinstance(value, bool) else "label"
    said = {
        "gen_ai.evaluation.name": name,
        f"gen_ai.evaluation.score.{what}": value,
        "gen_ai.evaluation.explanation": first_text(attributes, "logfire.feedback.comment", "feedback.comment"),
    }
    found = evaluations(msgspec.structs.replace(span, events=(Event(EVALUATION, attributes=said),)))
    return step_of(span, _NAME, StepKind.OTHER, feedback=found)


def _model(span: Span) -> Step:
    attributes = span.attributes
    step = genai.read_as(span, _NAME, StepKind.MODEL)
    request, response = _data(span, "request_data"), _data(span, "response_data")
    rules = request.get("system", request.get("instructions"))
    asked = messages_of(_listed(request.get("messages", request.get("input")), "user"), "user")
    asked = (*(instructions(rules) if rules else ()), *asked)
    answered = messages_of(_listed(response.get("message"), "assistant"), "assistant") or _streamed(span)
    if not (asked or answered):
        return step
    return msgspec.structs.replace(
        step,
        model=step.model or first_text(response, "model") or first_text(request, "model"),
        provider=step.provider or span.scope_name.rpartition(".")[2],
        input=step.input or asked,
        output=step.output or answered,
        tools=step.tools or tool_definitions(request.get("tools")),
        usage=step.usage or usage_of(as_dict(response.get("usage")) or attributes, _USAGE),
        flags=tuple(flag for flag in step.flags if flag != NO_CONTENT),
    )


def _data(span: Span, name: str) -> dict[str, Any]:
    return as_dict(structured(span.attributes.get(name)))


def _listed(value: Any, role: str) -> Any:
    return [{"role": role, "content": value}] if isinstance(value, str) else value


def _streamed(span: Span) -> tuple[Message, ...]:
    text = as_text(_data(span, "response_data").get("combined_chunk_content"))
    return (Message("assistant", text),) if text else ()


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Logfire: its instrumentations of OpenAI's and Anthropic's clients, and feedback",
        default="everything: messages, tools and tokens",
    ),
    marks=Marks(scopes=("logfire.openai", "logfire.anthropic", "logfire.feedback"), attributes=(f"{_KIND}=annotation",)),
    read=read,
)
