"""OpenTelemetry's GenAI semantic conventions, current and older spellings (dialects reference, section 2)."""

from collections.abc import Mapping
from typing import Any, Final

from collectors.dialects.attributes import UNREADABLE, decoded, first, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import Given, Returned, given, returned, tool_step
from collectors.dialects.messages import instructions, messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.steps import GUARDRAIL, HANDOFF, NO_CONTENT, TRUNCATED, step_of
from collectors.dialects.usage import GENAI, usage_of
from pipeline.model.span import Attributes, Event, Span
from pipeline.model.step import Message, Step, StepKind, ToolCall

OPERATION: Final = "gen_ai.operation.name"
_DETAILS: Final = "gen_ai.client.inference.operation.details"
MESSAGES: Final = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions")
"""On a span, or on an event that carries them apart; such an event has a name of its own in some instrumentations."""
_ROLE_EVENTS: Final = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")} | {
    "gen_ai.prompt": "user"
}
_CONTENT_EVENTS: Final = {
    "gen_ai.content.prompt": ("gen_ai.prompt", "user"),
    "gen_ai.content.completion": ("gen_ai.completion", "assistant"),
}
"""Events of 1.27, one a side: the attribute that has all of it, and whose it is where it does not say."""
_DEFAULT_AGENT: Final = "OpenAI Agents instrumentation"
"""Description of the agent that OpenTelemetry's openai-agents instrumentation invents for spans that are no agent's."""
_KINDS: Final = {
    "chat": StepKind.MODEL,
    "generate_content": StepKind.MODEL,
    "text_completion": StepKind.MODEL,
    "response": StepKind.MODEL,
    "call_llm": StepKind.MODEL,
    "execute_tool": StepKind.TOOL,
    "retrieval": StepKind.RETRIEVAL,
    "invoke_agent": StepKind.AGENT,
    "invoke_workflow": StepKind.ORCHESTRATION,
    "invoke_swarm": StepKind.ORCHESTRATION,
    "invoke_graph": StepKind.ORCHESTRATION,
    "create_agent": StepKind.IGNORED,
    "execute_task": StepKind.CHAIN,
    "execute_event_loop_cycle": StepKind.CHAIN,
    "agent_step": StepKind.CHAIN,
    "plan": StepKind.CHAIN,
    "chain": StepKind.CHAIN,
    "unknown": StepKind.CHAIN,
}
"""By operation; any other operation (embeddings, memory …) is recognised and OTHER."""
_HANDOFFS: Final = frozenset({"agent_handoff", "handoff"})
_MODEL_ATTRIBUTES: Final = ("gen_ai.request.model", "gen_ai.response.model")
_ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "tool_arguments")
_RESULT: Final = ("gen_ai.tool.call.result", "tool_response")


_NAME: Final = "genai"


def read(span: Span) -> Step:
    """Read by operation, and by what the span holds where it names none."""
    return read_as(span, _NAME, kind_of(span))


def read_as(span: Span, dialect: str, kind: StepKind) -> Step:
    """Read a span of a known kind by the conventions' attributes."""
    if kind is StepKind.MODEL:
        return _model(span, dialect)
    if kind is StepKind.TOOL:
        return _tool(span, dialect)
    if kind in (StepKind.AGENT, StepKind.ORCHESTRATION):
        return _agent(span, dialect, kind)
    if kind is StepKind.OTHER:
        return _other(span, dialect)
    if kind is StepKind.RETRIEVAL:
        return _retrieval(span, dialect)
    return step_of(span, dialect, kind, agent=agent_name(span))


def kind_of(span: Span) -> StepKind:
    """Return what the span is: by its operation, else by what it holds."""
    attributes = span.attributes
    operation = attributes.get(OPERATION)
    if isinstance(operation, str):
        return _KINDS.get(operation, StepKind.OTHER)
    if "gen_ai.tool.name" in attributes or "gen_ai.tool.call.id" in attributes:
        return StepKind.TOOL
    if "agent_name" in attributes:
        return StepKind.AGENT
    return StepKind.MODEL if any(key in attributes for key in _MODEL_ATTRIBUTES) else StepKind.OTHER


def agent_name(span: Span) -> str:
    """Return the agent's own name, empty where an instrumentation only fills the attribute."""
    attributes = span.attributes
    if attributes.get("gen_ai.agent.description") == _DEFAULT_AGENT and attributes.get(OPERATION) != "invoke_agent":
        return ""
    name = first_text(attributes, "gen_ai.agent.name", "agent_name")
    if not name and span.name.startswith("invoke_agent "):
        return span.name.removeprefix("invoke_agent ").strip()
    return name


class Content:
    """The messages of a span, wherever it keeps them: attributes first, then span events."""

    __slots__ = ("input", "output", "truncated")

    def __init__(self, span: Span) -> None:
        attributes = _with_details(span)
        self.truncated = False
        self.input = self._read(attributes, "gen_ai.input.messages", "user")
        self.output = self._read(attributes, "gen_ai.output.messages", "assistant")
        if span.events and not (self.input or self.output):
            self.input, self.output = _event_messages(span)
        rules = first(attributes, "gen_ai.system_instructions")
        if rules is not None:
            self.input = (*instructions(rules), *self.input)

    def _read(self, attributes: Mapping[str, Any], key: str, role: str) -> tuple[Message, ...]:
        value = first(attributes, key)
        if value is None:
            return ()
        value = decoded(value)
        self.truncated = self.truncated or value is UNREADABLE
        return messages_of(value, role)

    @property
    def flags(self) -> tuple[str, ...]:
        """What to flag on a model call."""
        if self.truncated:
            return (TRUNCATED,)
        return () if self.input or self.output else (NO_CONTENT,)


def _with_details(span: Span) -> Mapping[str, Any]:
    """Return the attributes, completed by those of the event that carries content apart; input and output may come on two events."""
    details = [
        event.attributes for event in span.events if event.name == _DETAILS or any(key in event.attributes for key in MESSAGES)
    ]
    if not details:
        return span.attributes
    merged: dict[str, Any] = {}
    for one in details:
        merged |= one
    return merged | span.attributes


def _event_messages(span: Span) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Read the forms before 1.37: an event for each message, and before that one for all that was asked and one for all that was answered."""
    asked: list[Message] = []
    answered: list[Message] = []
    for event in span.events:
        attributes = _fields(event)
        if event.name == "gen_ai.choice":
            choice = structured(attributes.get("message"))
            said = choice if isinstance(choice, dict) else {"content": choice}
            calls = structured(said.get("tool_calls") or attributes.get("tool_calls"))  # OpenLLMetry has them beside the message
            answered += messages_of(said | {"tool_calls": calls}, "assistant")
        elif event.name in _ROLE_EVENTS:
            role = _ROLE_EVENTS[event.name]
            calls = structured(attributes.get("tool_calls"))
            raw = {"role": role, "content": structured(attributes.get("content")), "tool_calls": calls}
            call_id = attributes.get("id") or attributes.get("tool_call_id")
            asked += messages_of(raw | {"tool_call_id": call_id if role == "tool" else None}, role)
        elif event.name in _CONTENT_EVENTS:
            key, role = _CONTENT_EVENTS[event.name]
            said = structured(attributes.get(key))
            found = messages_of(said if isinstance(said, list | dict) else [{"content": said}], role)
            (asked if role == "user" else answered).extend(found)
    return tuple(asked), tuple(answered)


def _fields(event: Event) -> Attributes:
    """Return what the event says: its attributes, or what some put as a whole under one of them; a bare text is the content."""
    whole = structured(event.attributes.get("gen_ai.event.content"))
    if isinstance(whole, dict):
        return event.attributes | whole
    body = event.attributes.get("body")
    return event.attributes | {"content": body, "message": body} if isinstance(body, str) else event.attributes


def _model(span: Span, dialect: str) -> Step:
    attributes, content = span.attributes, Content(span)
    return step_of(
        span,
        dialect,
        StepKind.MODEL,
        agent=agent_name(span),
        model=first_text(attributes, "gen_ai.response.model", "gen_ai.request.model"),
        provider=first_text(attributes, "gen_ai.provider.name", "gen_ai.system"),
        input=content.input,
        output=content.output,
        tools=tool_definitions(attributes.get("gen_ai.tool.definitions")),
        usage=usage_of(attributes, GENAI),
        flags=content.flags,
    )


def _tool(span: Span, dialect: str) -> Step:
    attributes = span.attributes
    name = first_text(attributes, "gen_ai.tool.name") or span.name.removeprefix("execute_tool ")
    call_id = first_text(attributes, "gen_ai.tool.call.id")
    got, gave = given(first(attributes, *_ARGUMENTS)), returned(first(attributes, *_RESULT))
    for event in span.events:
        if event.name == "gen_ai.tool.message" and got == Given():
            got = given(_fields(event).get("content"))
        elif event.name == "gen_ai.choice" and gave == Returned():
            gave = returned(structured(_fields(event).get("message")))
    return tool_step(span, dialect, name, call_id, got, gave, agent=agent_name(span))


def _agent(span: Span, dialect: str, kind: StepKind) -> Step:
    attributes, content = span.attributes, Content(span)
    name = agent_name(span)
    output = content.output
    if not output and isinstance(result := attributes.get("final_result"), str):
        output = (Message("assistant", result),)
    if kind is StepKind.AGENT and not name:  # a wrapper around agents, or an agent that nobody named
        kind = StepKind.AGENT if content.input or output else StepKind.ORCHESTRATION
        name = first_text(span.resource, "service.name") if kind is StepKind.AGENT else ""
    return step_of(
        span,
        dialect,
        kind,
        agent=name,
        model=first_text(attributes, *_MODEL_ATTRIBUTES),
        provider=first_text(attributes, "gen_ai.provider.name", "gen_ai.system"),
        input=content.input,
        output=output,
        tools=tool_definitions(attributes.get("gen_ai.tool.definitions")),
        usage=usage_of(attributes, GENAI),
        flags=(TRUNCATED,) if content.truncated else (),
    )


def _other(span: Span, dialect: str) -> Step:
    operation = str(span.attributes.get(OPERATION))
    if operation in _HANDOFFS:
        return handoff(span, dialect, first_text(span.attributes, "gen_ai.handoff.to_agent"))
    return step_of(span, dialect, StepKind.OTHER, flags=(GUARDRAIL,) if operation == "guardrail_check" else ())


def handoff(span: Span, dialect: str, target: str) -> Step:
    """Return a hand-over of control, with the call by which the model asked for it as frameworks name it."""
    name = "transfer_to_" + "".join(letter if letter.isalnum() else "_" for letter in target.lower())
    return step_of(span, dialect, StepKind.OTHER, tool=ToolCall(name), flags=(HANDOFF,))


def _retrieval(span: Span, dialect: str) -> Step:
    query = first_text(span.attributes, "gen_ai.retrieval.query.text")
    documents = first_text(span.attributes, "gen_ai.retrieval.documents")
    asked = (Message("user", query),) if query else ()
    found = (Message("tool", documents),) if documents else ()
    return step_of(span, dialect, StepKind.RETRIEVAL, input=asked, output=found)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="OpenTelemetry GenAI conventions, of any instrumentation",
        default="names, models, tokens and errors; no messages, no arguments and no results",
        content="OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY; instrumentations from before 1.37 take true",
    ),
    marks=Marks(attributes=("gen_ai.*",)),
    read=read,
)
