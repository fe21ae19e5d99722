"""LiteLLM, library and proxy (dialects reference, section 12): one span for a model call, and spans of the proxy's own affairs around it.

Messages are indexed as OpenLLMetry's were, but each call that a reply asks for stands under an index of its own.
"""

from typing import Any, Final

import msgspec

from collectors.dialects.attributes import as_dict, first_text, in_order, nested, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import kind_of, read_as
from collectors.dialects.messages import messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.steps import GUARDRAIL, NO_CONTENT, step_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "litellm"
_ANSWERING: Final = ("completion", "responses", "generate_content", "messages")
"""What the types of calls contain that get an answer: ``acompletion``, ``aresponses``; an ``aembedding`` gets none."""


def read(span: Span) -> Step:
    """Read a model call, told by its model and by the type of the call."""
    if span.name == "guardrail":
        return step_of(span, _NAME, StepKind.OTHER, flags=(GUARDRAIL,))
    kind = kind_of(span)
    request = first_text(span.attributes, "llm.request.type")
    if kind is not StepKind.MODEL or (request and not any(word in request for word in _ANSWERING)):
        return step_of(span, _NAME, StepKind.OTHER) if kind is StepKind.MODEL else read_as(span, _NAME, kind)
    step = read_as(span, _NAME, kind)
    given_to, gave = step.input or _indexed(span, "gen_ai.prompt.", "user"), step.output or _replied(span)
    flags = tuple(flag for flag in step.flags if flag != NO_CONTENT or not (given_to or gave))
    tools = step.tools or tool_definitions(in_order(nested(span.attributes, "llm.request.functions.")))
    return msgspec.structs.replace(step, input=given_to, output=gave, tools=tools, flags=flags)


def _indexed(span: Span, prefix: str, role: str) -> tuple[Message, ...]:
    listed = map(as_dict, in_order(nested(span.attributes, prefix)))
    return messages_of(
        [one | {"role": one.get("role") or role, "content": structured(one.get("content"))} for one in listed], role
    )


def _replied(span: Span) -> tuple[Message, ...]:
    """Return the reply: the text of the first index, and the calls that stand one under each."""
    listed = [as_dict(one) for one in in_order(nested(span.attributes, "gen_ai.completion."))]
    calls: list[Any] = [one["function_call"] for one in listed if isinstance(one.get("function_call"), dict)]
    calls += [call for one in listed for call in in_order(one.get("tool_calls"))]
    said = next((one["content"] for one in listed if one.get("content")), None)
    return messages_of([{"role": "assistant", "content": said, "tool_calls": calls}], "assistant") if listed else ()


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="LiteLLM, library and proxy",
        default="messages, tools and tokens of model calls; turn_off_message_logging leaves messages out",
    ),
    marks=Marks(scopes=("litellm", "litellm.*")),
    read=read,
)
