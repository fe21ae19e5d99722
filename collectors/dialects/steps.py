"""What every span says in the same way, whatever its dialect: who it is, when, in which service, and how it failed."""

import re
from typing import Any, Final

from collectors.dialects.attributes import as_text, captured
from collectors.dialects.finish import LENGTH, stopped_at_length
from pipeline.model.span import STATUS_ERROR, TRUNCATED_FIELDS, Attributes, Span
from pipeline.model.step import Step, StepKind

CONVERTED_FROM: Final = "tracegrade.converted_from"
"""Attribute of spans that were made from a transcript and never traced."""

UNRECOGNISED: Final = "unrecognised"
"""Flag: no dialect knows this span."""
UNREADABLE: Final = "unreadable"
"""Flag: a structure nested too deep to be read."""
TRUNCATED: Final = "truncated"
"""Flag: something of the span is missing, cut by its sender in the middle of JSON, or by the receiver because it was too large."""
DROPPED: Final = "dropped"
"""Flag: the sender dropped attributes, events or links of the span."""
NO_CONTENT: Final = "no_content"
"""Flag: messages, arguments or results were not captured, or redacted."""
CONVERTED: Final = "converted"
"""Flag: made from a transcript (:data:`CONVERTED_FROM`)."""
HANDOFF: Final = "handoff"
"""Flag: control went to another agent. Such a step is OTHER, and its ``tool`` is the model's request for it, which is no tool call."""
GUARDRAIL: Final = "guardrail"
"""Flag: what happens below checks the agent and does not speak for it."""
TRANSPORT: Final = "transport"
"""Flag: carries a call to where it is executed; another step may tell of the same call (dialects reference, trap 7)."""
OPAQUE: Final = "opaque"
"""Flag: the output is a structure and not a message; it is an answer only where there is no better one."""

_MCP: Final = "mcp.method.name"
_MCP_SCOPE: Final = "opentelemetry.instrumentation.mcp"
_FRAMEWORKS: Final = frozenset(
    {
        "strands-agents",
        "crewai",
        "langchain",
        "langgraph",
        "llama_index",
        "autogen",
        "microsoft.agent_framework",
        "semantic_kernel",
        "gcp.vertex.agent",
        "litellm",
    }
)
"""What frameworks write where the provider of a model belongs: their own names (dialects reference, trap 16)."""
_RAISING: Final = frozenset({StepKind.AGENT, StepKind.MODEL})
_HANDING_OVER: Final = re.compile(
    r"Graph(?:Interrupt|BubbleUp)|NodeInterrupt|ParentCommand|Command\b|CallDeferred|ApprovalRequired|Handoff|Stop(?:Async)?Iteration"
    r"|GeneratorExit|CancelledError"
)
"""Exceptions by which frameworks hand over, wait or stop."""
_CONVERSATION: Final = (
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "traceloop.association.properties.conversation_id",
    "gcp.vertex.agent.session_id",
)


def step_of(span: Span, dialect: str, kind: StepKind, *, flags: tuple[str, ...] = (), **what: Any) -> Step:
    """Return the span as a step of this kind: its identity, its service, its failure, and ``what`` the dialect makes of it."""
    resource, attributes = span.resource, span.attributes
    if "error" not in what:
        what["error"] = error_of(span)
        if what["error"] is None and span.events and kind in _RAISING and not what.get("output"):
            what["error"] = raised(span)
    if "conversation_id" not in what:
        what["conversation_id"] = conversation_of(attributes)
    if what.get("provider") in _FRAMEWORKS:
        what["provider"] = ""
    return Step(
        span_id=span.span_id,
        parent_id=span.parent_id,
        name=span.name,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        received_ns=span.received_ns,
        kind=kind,
        dialect=dialect,
        agent_version=_word(attributes.get("gen_ai.agent.version")),
        service=_word(resource.get("service.name")),
        service_version=_word(resource.get("service.version")),
        environment=_word(resource.get("deployment.environment.name")) or _word(resource.get("deployment.environment")),
        parent_is_remote=span.parent_is_remote,
        flags=(*flags, *_flags(span), *((LENGTH,) if kind is StepKind.MODEL and stopped_at_length(span) else ())),
        **what,
    )


def _word(value: Any) -> str:
    return as_text(value) if captured(value) else ""


def conversation_of(attributes: Attributes, own: tuple[str, ...] = ()) -> str:
    """Return the conversation that a span names, under a name that a dialect gives it or under one of those that several do."""
    for key in (*own, *_CONVERSATION):
        if key in attributes and (name := _word(attributes[key])):
            return name
    return ""


def _flags(span: Span) -> tuple[str, ...]:
    flags: list[str] = [DROPPED] if span.dropped else []
    if CONVERTED_FROM in span.attributes:
        flags.append(CONVERTED)
    if _MCP in span.attributes or span.scope_name == _MCP_SCOPE:
        flags.append(TRANSPORT)
    if TRUNCATED_FIELDS in span.attributes or TRUNCATED_FIELDS in span.resource:
        flags.append(TRUNCATED)
    return tuple(flags)


def error_of(span: Span) -> str | None:
    """Return why the span failed, None unless it says that it did.

    An exception event alone is not a failure: frameworks hand control over by exceptions, on spans whose status is not ERROR.
    """
    error_type = _word(span.attributes.get("error.type"))
    if not (span.status_code == STATUS_ERROR or error_type or _says_failure(span)):
        return None
    if (told := _exception(span)) is not None:
        return told
    message, _, _ = span.status_message.partition("Traceback (most recent call last)")
    return _sentence(error_type, message.strip()) or "error"


def raised(span: Span) -> str | None:
    """Return the exception that a span tells of where its status does not, or says OK, which no later error can take back (reliability R118).

    It counts for a step that gave nothing, and not where the exception only hands over control.
    """
    told = _exception(span)
    return None if told is None or _HANDING_OVER.match(told) else told


def _exception(span: Span) -> str | None:
    for event in reversed(span.events):
        if event.name == "exception" and captured(event.attributes.get("exception.type")):
            name = _word(event.attributes["exception.type"]).rpartition(".")[2]
            return _sentence(name, _word(event.attributes.get("exception.message")))
    return None


def _says_failure(span: Span) -> bool:
    return span.attributes.get("gen_ai.task.status") == "failure" or span.attributes.get("gen_ai.tool.status") == "error"


def _sentence(error_type: str, message: str) -> str:
    if not message or message.startswith(error_type):
        return message or error_type
    return f"{error_type}: {message}" if error_type else message
