"""Langfuse's own SDK: a type on every observation, everything else as JSON under ``langfuse.observation`` (dialects reference, section 5)."""

from typing import Any, Final

import msgspec

from collectors.dialects import genai, openinference
from collectors.dialects.attributes import as_dict, captured, first, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.openinference_kinds import KIND
from collectors.dialects.parts import tool_definitions
from collectors.dialects.payloads import Payload, answered, asked
from collectors.dialects.steps import GUARDRAIL, NO_CONTENT, OPAQUE, TRUNCATED, conversation_of, error_of, step_of
from collectors.dialects.usage import GENAI, Names, usage_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "langfuse"
_TYPE: Final = "langfuse.observation.type"
_INPUT: Final = ("langfuse.observation.input",)
_OUTPUT: Final = ("langfuse.observation.output",)
_MODEL: Final = "langfuse.observation.model.name"
_USAGE: Final = "langfuse.observation.usage_details"
_CONVERSATION: Final = ("langfuse.session.id",)
_AS_ROOT: Final = "langfuse.internal.as_root"
_COUNTS: Final = Names(
    input=("input", "input_tokens", "prompt_tokens", "promptTokens"),
    output=("output", "output_tokens", "completion_tokens", "completionTokens"),
    cached=("input_cached_tokens", "input_cache_read", "cache_read_input_tokens", "cached_tokens"),
    reasoning=("output_reasoning_tokens", "output_reasoning", "reasoning_tokens"),
)


def read(span: Span) -> Step:
    """Read by the type of the observation. Older SDKs call a generation a span, and integrations whatever another dialect tells better."""
    attributes = span.attributes
    kind = first_text(attributes, _TYPE).lower() or "span"
    if kind == "span" and (_MODEL in attributes or _USAGE in attributes):
        kind = "generation"
    if kind == "span" and KIND in attributes:
        return openinference.DIALECT.read(span)
    if kind == "span" and genai.OPERATION in attributes:
        step = genai.read_as(span, _NAME, genai.kind_of(span))
    elif kind == "generation":
        step = _model(span)
    elif kind == "tool":
        step = _tool(span)
    elif kind == "retriever":
        step = _retrieval(span)
    elif kind in ("agent", "chain", "span"):
        step = _wrapper(span, StepKind.AGENT if kind == "agent" else StepKind.CHAIN)
    elif kind == "evaluator":
        step = step_of(span, _NAME, StepKind.IGNORED)
    else:
        step = step_of(span, _NAME, StepKind.OTHER, flags=(GUARDRAIL,) if kind == "guardrail" else ())
    return _completed(step, span)


def _completed(step: Step, span: Span) -> Step:
    """Add what any observation may say: its conversation, release and environment, that it failed, that it stands for a trace of its own."""
    attributes = span.attributes
    error = step.error
    if error is None and attributes.get("langfuse.observation.level") == "ERROR":
        error = first_text(attributes, "langfuse.observation.status_message") or "error"
    tool = step.tool
    if tool is not None and tool.error is None and error is not None:
        tool = msgspec.structs.replace(tool, error=error)
    return msgspec.structs.replace(
        step,
        parent_id="" if str(attributes.get(_AS_ROOT)).lower() == "true" else step.parent_id,
        conversation_id=conversation_of(attributes, _CONVERSATION),
        agent_version=step.agent_version or first_text(attributes, "langfuse.release", "langfuse.version"),
        environment=step.environment or first_text(attributes, "langfuse.environment"),
        error=error,
        tool=tool,
    )


def _model(span: Span) -> Step:
    attributes = span.attributes
    request = structured(first(attributes, *_INPUT))
    got, gave = _input(span), _output(span)
    offered = as_dict(request).get("tools")
    truncated = got.truncated or gave.truncated
    nothing = not (got.messages or gave.messages or truncated)
    return step_of(
        span,
        _NAME,
        StepKind.MODEL,
        model=first_text(attributes, _MODEL, "gen_ai.response.model", "gen_ai.request.model"),
        provider=first_text(attributes, "gen_ai.provider.name", "gen_ai.system"),
        input=got.messages,
        output=() if gave.opaque else gave.messages,
        tools=tool_definitions(offered) if isinstance(offered, list) else (),
        usage=usage_of(as_dict(structured(attributes.get(_USAGE))), _COUNTS) or usage_of(attributes, GENAI),
        flags=(TRUNCATED,) if truncated else (NO_CONTENT,) if nothing else (),
    )


def _tool(span: Span) -> Step:
    attributes = span.attributes
    got, gave = given(first(attributes, *_INPUT)), returned(first(attributes, *_OUTPUT))
    name = first_text(attributes, "gen_ai.tool.name") or span.name
    return tool_step(span, _NAME, name, first_text(attributes, "gen_ai.tool.call.id"), got, gave, agent="")


def _retrieval(span: Span) -> Step:
    found = structured(first(span.attributes, *_OUTPUT))
    listed = found if isinstance(found, list) else []
    texts = [as_dict(one).get("page_content", as_dict(one).get("content", one)) for one in listed]
    documents = tuple(Message("tool", text) for text in texts if isinstance(text, str) and text)
    return step_of(span, _NAME, StepKind.RETRIEVAL, input=_input(span).messages, output=documents)


def _wrapper(span: Span, kind: StepKind) -> Step:
    """An agent, or what wraps one. Inside a run a wrapper's input and output speak for nobody."""
    if kind is StepKind.CHAIN and span.parent_id and not captured(span.attributes.get(_AS_ROOT)):
        return step_of(span, _NAME, kind)
    got, gave = _input(span), _output(span)
    flags = [TRUNCATED] if got.truncated or gave.truncated else []
    if gave.opaque:
        flags.append(OPAQUE)
    agent = span.name if kind is StepKind.AGENT else ""
    return step_of(
        span, _NAME, kind, agent=agent, input=got.messages, output=gave.messages, error=error_of(span), flags=tuple(flags)
    )


def _input(span: Span) -> Payload:
    return asked(_own(span, _INPUT, "langfuse.trace.input"))


def _output(span: Span) -> Payload:
    return answered(_own(span, _OUTPUT, "langfuse.trace.output"))


def _own(span: Span, names: tuple[str, ...], of_trace: str) -> Any:
    """Return what the observation says, or what a root says of the trace."""
    return first(span.attributes, *names) if span.parent_id else first(span.attributes, *names, of_trace)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Langfuse SDK 3 and later, in Python and JavaScript",
        default="what the code gives it: @observe takes arguments and results, the integrations take messages and tokens",
        content="LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true, which is the default, and update(input=…, output=…) elsewhere",
    ),
    marks=Marks(scopes=("langfuse-sdk",), attributes=(_TYPE,)),
    read=read,
)
