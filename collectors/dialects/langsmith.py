"""LangSmith's exporter: runs of LangChain, LangGraph and ``@traceable`` as spans, inputs and outputs whole (dialects reference, section 8)."""

import re
from typing import Any, Final

import msgspec

from collectors.dialects.attributes import UNREADABLE, as_dict, as_text, decoded, first, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import Returned, given, returned, tool_step
from collectors.dialects.messages import messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.payloads import answered, asked
from collectors.dialects.steps import NO_CONTENT, OPAQUE, TRUNCATED, conversation_of, step_of
from collectors.dialects.usage import GENAI, usage_of
from pipeline.model.span import Event, Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "langsmith"
_KIND: Final = "langsmith.span.kind"
_INPUT: Final = "gen_ai.prompt"
_OUTPUT: Final = "gen_ai.completion"
_AGENT: Final = "langsmith.metadata.lc_agent_name"
_CONVERSATION: Final = tuple(f"langsmith.metadata.{name}" for name in ("thread_id", "session_id", "conversation_id"))
"""``langsmith.trace.session_id`` and ``session_name`` are the project, and no conversation."""
_PLUMBING: Final = frozenset({"LangGraph", "RunnableSequence", "AgentExecutor"})
"""Names of classes, which say nothing of whose run it is."""
_RAISED: Final = re.compile(r"(?P<type>\w+)\((?P<quote>['\"]?)(?P<message>.*?)(?P=quote),?\)\s*(Traceback|$)", re.DOTALL)
"""How a run's error begins: the exception as Python writes it, its traceback after it."""


def read(span: Span) -> Step:
    """Read by the type of the run."""
    kind = first_text(span.attributes, _KIND)
    span = _with_error(span) if span.events else span
    if kind == "llm":
        return _model(span)
    if kind == "tool":
        return _tool(span)
    if kind == "retriever":
        return _retrieval(span)
    if kind == "chain":
        return _chain(span)
    return step_of(span, _NAME, StepKind.OTHER)


def _with_error(span: Span) -> Span:
    """Return the span with what was raised, instead of an exception around its text."""
    events = tuple(_raised(event) if event.name == "exception" else event for event in span.events)
    return msgspec.structs.replace(span, events=events)


def _raised(event: Event) -> Event:
    text = event.attributes.get("exception.message")
    match = _RAISED.match(text) if isinstance(text, str) else None
    if match is None:
        return event
    said = {"exception.type": match["type"], "exception.message": match["message"]}
    return msgspec.structs.replace(event, attributes=event.attributes | said)


def _model(span: Span) -> Step:
    attributes = span.attributes
    inputs, outputs = decoded(first(attributes, _INPUT)), decoded(first(attributes, _OUTPUT))
    truncated = UNREADABLE in (inputs, outputs)
    request = as_dict(inputs)
    given_to = messages_of(request.get("messages", request.get("input")), "user") or asked(request).messages
    produced = _produced(as_dict(outputs))
    return step_of(
        span,
        _NAME,
        StepKind.MODEL,
        agent=first_text(attributes, _AGENT),
        model=first_text(attributes, "gen_ai.response.model", "gen_ai.request.model"),
        provider=first_text(attributes, "langsmith.metadata.ls_provider", "gen_ai.system"),
        input=given_to,
        output=produced,
        tools=tool_definitions(request["tools"]) if isinstance(request.get("tools"), list) else (),
        usage=usage_of(attributes, GENAI),
        conversation_id=conversation_of(attributes, _CONVERSATION),
        flags=(TRUNCATED,) if truncated else () if given_to or produced else (NO_CONTENT,),
    )


def _produced(outputs: dict[str, Any]) -> tuple[Message, ...]:
    """Return the reply: of LangChain's generations, of OpenAI's choices, or a message by itself."""
    generations = outputs.get("generations")
    if isinstance(generations, list) and generations:
        batch = generations[0] if isinstance(generations[0], list) else generations
        first_one = as_dict(batch[0]) if batch else {}
        return messages_of([first_one.get("message", {"content": first_one.get("text")})], "assistant")
    choices = outputs.get("choices")
    if isinstance(choices, list) and choices:
        return messages_of([as_dict(choices[0]).get("message")], "assistant")
    said = answered(outputs.get("output", outputs))
    return () if said.opaque else said.messages


def _tool(span: Span) -> Step:
    attributes = span.attributes
    inputs, outputs = structured(first(attributes, _INPUT)), structured(first(attributes, _OUTPUT))
    wrapped = isinstance(inputs, dict) and inputs.keys() == {"input"}
    got = given(inputs["input"] if wrapped else inputs)
    gave = _returned(outputs)
    return tool_step(span, _NAME, span.name, gave.call_id, got, gave, agent=first_text(attributes, _AGENT))


def _returned(outputs: Any) -> Returned:
    return returned(outputs["output"] if isinstance(outputs, dict) and outputs.keys() == {"output"} else outputs)


def _retrieval(span: Span) -> Step:
    found = as_dict(structured(first(span.attributes, _OUTPUT))).get("documents")
    documents = [as_dict(one) for one in found] if isinstance(found, list) else []
    texts = [as_text(as_dict(one.get("kwargs", one)).get("page_content")) for one in documents]
    query = asked(first(span.attributes, _INPUT), is_json=True).messages
    return step_of(span, _NAME, StepKind.RETRIEVAL, input=query, output=tuple(Message("tool", text) for text in texts if text))


def _chain(span: Span) -> Step:
    """A chain: an agent where LangChain says so by its name; as a root it stands for a run."""
    attributes = span.attributes
    agent = first_text(attributes, _AGENT)
    is_agent = bool(agent) and agent == span.name
    if span.parent_id and not is_agent:
        return step_of(span, _NAME, StepKind.CHAIN, agent=agent)
    got, gave = asked(first(attributes, _INPUT), is_json=True), answered(first(attributes, _OUTPUT), is_json=True)
    flags = [TRUNCATED] if got.truncated or gave.truncated else []
    if gave.opaque:
        flags.append(OPAQUE)
    return step_of(
        span,
        _NAME,
        StepKind.AGENT if is_agent else StepKind.CHAIN,
        agent=agent or ("" if span.name in _PLUMBING else span.name),
        input=got.messages,
        output=gave.messages,
        conversation_id=conversation_of(attributes, _CONVERSATION),
        flags=tuple(flags),
    )


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="LangSmith's exporter, for LangChain, LangGraph and @traceable",
        default="nothing until OTel is switched on; then everything, unless LANGSMITH_HIDE_INPUTS or LANGSMITH_HIDE_OUTPUTS is set",
        content="LANGSMITH_TRACING=true and LANGSMITH_OTEL_ENABLED=true",
    ),
    marks=Marks(scopes=("langsmith",), attributes=(_KIND,)),
    read=read,
)
