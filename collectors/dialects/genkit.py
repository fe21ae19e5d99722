"""Google Genkit (dialects reference, section 12): an action on every span, its input and output as JSON under Genkit's own names.

A flow is what a program offers under a name, and stands for the agent where none is defined.
"""

from typing import Any, Final

import msgspec

from collectors.dialects.attributes import UNREADABLE, as_dict, as_text, decoded, first_text
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.messages import messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.payloads import answered, asked
from collectors.dialects.steps import NO_CONTENT, OPAQUE, TRUNCATED, step_of
from collectors.dialects.usage import Names, usage_of
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind

_NAME: Final = "genkit"
_KINDS: Final = {
    "model": StepKind.MODEL,
    "tool": StepKind.TOOL,
    "tool.v2": StepKind.TOOL,
    "agent": StepKind.AGENT,
    "flow": StepKind.AGENT,
    "retriever": StepKind.RETRIEVAL,
    "evaluator": StepKind.IGNORED,
    "embedder": StepKind.OTHER,
    "reranker": StepKind.OTHER,
}
"""By subtype, or by type where there is none; anything else is a wrapper."""
_TOKENS: Final = Names(
    input=("inputTokens",), output=("outputTokens",), cached=("cachedContentTokens",), reasoning=("thoughtsTokens",)
)


def read(span: Span) -> Step:
    """Read by what kind of action it is."""
    attributes = span.attributes
    name = first_text(attributes, "genkit:name") or span.name
    kind = _KINDS.get(first_text(attributes, "genkit:metadata:subtype", "genkit:type"), StepKind.CHAIN)
    step = _of_kind(span, kind, name)
    session = first_text(attributes, "genkit:sessionId")
    return msgspec.structs.replace(step, conversation_id=step.conversation_id or session)


def _of_kind(span: Span, kind: StepKind, name: str) -> Step:
    inputs, outputs = span.attributes.get("genkit:input"), span.attributes.get("genkit:output")
    if kind is StepKind.MODEL:
        return _model(span, name)
    if kind is StepKind.TOOL:
        return tool_step(span, _NAME, name, "", given(inputs, is_json=True), returned(outputs), agent="")
    if kind in (StepKind.IGNORED, StepKind.OTHER):
        return step_of(span, _NAME, kind)
    got, gave = asked(inputs, is_json=True), answered(outputs, is_json=True)
    flags = (*((OPAQUE,) if gave.opaque else ()), *((TRUNCATED,) if got.truncated or gave.truncated else ()))
    agent = name if kind is StepKind.AGENT else ""
    return step_of(span, _NAME, kind, agent=agent, input=got.messages, output=gave.messages, flags=flags)


def _model(span: Span, name: str) -> Step:
    inputs, outputs = (decoded(span.attributes.get(key)) for key in ("genkit:input", "genkit:output"))
    request, response = as_dict(inputs), as_dict(outputs)
    given_to = messages_of(request.get("messages"), "user")
    produced = messages_of(response.get("message"), "assistant")
    truncated = inputs is UNREADABLE or outputs is UNREADABLE
    return step_of(
        span,
        _NAME,
        StepKind.MODEL,
        model=name.rpartition("/")[2],
        provider=name.rpartition("/")[0],
        input=given_to,
        output=produced,
        tools=tool_definitions([_declared(one) for one in request["tools"]] if isinstance(request.get("tools"), list) else []),
        usage=usage_of(as_dict(response.get("usage")), _TOKENS),
        flags=(TRUNCATED,) if truncated else () if given_to or produced else (NO_CONTENT,),
    )


def _declared(tool: Any) -> dict[str, Any]:
    fields = as_dict(tool)
    return {"name": as_text(fields.get("name")), "parameters": fields.get("inputSchema")}


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(title="Google Genkit", default="everything: inputs, outputs, tools and tokens"),
    marks=Marks(scopes=("genkit-tracer",), attributes=("genkit:type", "genkit:metadata:subtype")),
    read=read,
)
