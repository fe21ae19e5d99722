"""OpenLLMetry (Traceloop): a kind of its own on most spans, messages indexed (before 2026) or as the GenAI conventions have them.

Spans of its instrumentations that say nothing of Traceloop are plain GenAI conventions and are read as such (dialects reference, section 4).
"""

from typing import Any, Final

import msgspec

from collectors.dialects.attributes import as_dict, first, first_text, in_order, nested, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.genai import OPERATION, agent_name, handoff, read_as
from collectors.dialects.messages import messages_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.payloads import answered, asked
from collectors.dialects.steps import NO_CONTENT, OPAQUE, TRUNCATED, step_of
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, ToolDefinition

_KIND: Final = "traceloop.span.kind"
_ENTITY: Final = "traceloop.entity.name"
_AGENT_OF_METADATA: Final = "traceloop.association.properties.lc_agent_name"
_OLD_FORM: Final = ("llm.request.type", "gen_ai.prompt.0.role", "gen_ai.completion.0.role", "gen_ai.completion.0.content")
"""Attributes of the older generation, whose messages are indexed."""
_MODEL_REQUESTS: Final = frozenset({"chat", "completion"})
_INPUT: Final = ("gen_ai.tool.call.arguments", "traceloop.entity.input")
_OUTPUT: Final = ("gen_ai.tool.call.result", "traceloop.entity.output")


class OpenLLMetry:
    """The dialect of Traceloop's SDK and instrumentations."""

    name = "openllmetry"

    def read(self, span: Span) -> Step:
        """Read by kind, where that is one; else by operation."""
        kind = span.attributes.get(_KIND)
        if kind == "tool":
            return self._tool(span)
        if kind == "handoff":
            target = (
                first_text(span.attributes, "gen_ai.handoff.to_agent") or span.name.removesuffix(".handoff").partition(" → ")[2]
            )
            return handoff(span, self.name, target)
        if kind in ("workflow", "agent"):
            return self._agent(span, is_agent=kind == "agent" or _invokes_agent(span))
        if kind is None:
            return self._model(span)
        if _entity(span) and first_text(span.attributes, _AGENT_OF_METADATA) == _entity(span):
            return self._agent(span, is_agent=True)  # LangGraph: an agent as a node of another one's graph
        return step_of(span, self.name, StepKind.CHAIN, agent=_agent(span))

    def _model(self, span: Span) -> Step:
        request = span.attributes.get("llm.request.type")
        if isinstance(request, str) and request not in _MODEL_REQUESTS:
            return step_of(span, self.name, StepKind.OTHER)
        step = read_as(span, self.name, StepKind.MODEL)
        given_to, produced = _indexed(span, "gen_ai.prompt.", "user"), _indexed(span, "gen_ai.completion.", "assistant")
        if not (given_to or produced):
            return step
        return msgspec.structs.replace(
            step,
            input=given_to or step.input,
            output=produced or step.output,
            tools=step.tools or _functions(span),
            flags=tuple(flag for flag in step.flags if flag != NO_CONTENT),
        )

    def _tool(self, span: Span) -> Step:
        attributes = span.attributes
        name = first_text(attributes, "gen_ai.tool.name", _ENTITY) or span.name.removesuffix(".tool")
        call_id = first_text(attributes, "gen_ai.tool.call.id")
        got, gave = given(first(attributes, *_INPUT)), returned(first(attributes, *_OUTPUT))
        return tool_step(span, self.name, name, call_id, got, gave, agent=_agent(span))

    def _agent(self, span: Span, *, is_agent: bool) -> Step:
        """Read a workflow or agent; CrewAI says of crews and tasks, too, that they invoke an agent."""
        kind = StepKind.AGENT if is_agent else StepKind.ORCHESTRATION
        step = read_as(span, self.name, kind)
        got = asked(span.attributes.get("traceloop.entity.input"), is_json=True)
        gave = answered(span.attributes.get("traceloop.entity.output"), is_json=True)
        truncated = (TRUNCATED,) if got.truncated or gave.truncated else ()
        opaque = (OPAQUE,) if gave.opaque and not step.output else ()
        return msgspec.structs.replace(
            step,
            kind=kind,
            agent=_agent(span) or _entity(span),
            input=step.input or got.messages,
            output=step.output or gave.messages,
            flags=(*step.flags, *opaque, *truncated),
        )


def _invokes_agent(span: Span) -> bool:
    return span.attributes.get(OPERATION) == "invoke_agent"


def _agent(span: Span) -> str:
    return agent_name(span) or first_text(span.attributes, _AGENT_OF_METADATA)


def _entity(span: Span) -> str:
    return first_text(span.attributes, _ENTITY)


def _indexed(span: Span, prefix: str, role: str) -> tuple[Message, ...]:
    """Read ``gen_ai.prompt.N.*`` and ``gen_ai.completion.N.*``."""
    found: list[dict[str, Any]] = []
    for one in map(as_dict, in_order(nested(span.attributes, prefix))):
        content, calls = structured(one.get("content")), in_order(one.get("tool_calls"))
        found.append(one | {"role": one.get("role") or role, "content": content, "tool_calls": calls})
    return messages_of(found, role)


def _functions(span: Span) -> tuple[ToolDefinition, ...]:
    return tool_definitions(in_order(nested(span.attributes, "llm.request.functions.")))


DIALECT: Final = Dialect(
    name=OpenLLMetry.name,
    about=About(
        title="OpenLLMetry, the SDK and the instrumentations of Traceloop",
        default="everything: messages, arguments, results and tokens; TRACELOOP_TRACE_CONTENT=false leaves it out",
    ),
    marks=Marks(attributes=(_KIND, *_OLD_FORM)),
    read=OpenLLMetry().read,
)
