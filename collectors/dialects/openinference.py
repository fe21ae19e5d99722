"""OpenInference: a kind on every span, flattened messages, opaque ``input.value`` and ``output.value`` (dialects reference, section 3)."""

import re
from typing import Any, Final

from collectors.dialects.attributes import as_dict, decoded, first, first_text, in_order, integer, nested
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.messages import messages_of
from collectors.dialects.openinference_kinds import GENERATIONS, KIND, LLAMA_INDEX, OPENAI_AGENTS, agent_name, kind_of
from collectors.dialects.parts import tool_definitions
from collectors.dialects.payloads import Payload, answered, asked
from collectors.dialects.steps import GUARDRAIL, HANDOFF, NO_CONTENT, OPAQUE, TRUNCATED, step_of
from collectors.dialects.usage import OPENINFERENCE, usage_of, usage_within
from pipeline.model.span import Attributes, Span
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition

_SMOLAGENTS: Final = "openinference.instrumentation.smolagents"
_JSON: Final = "application/json"


class OpenInference:
    """The dialect of Arize's instrumentations."""

    name = "openinference"

    def read(self, span: Span) -> Step:
        """Read by kind; LangChain and others get their kinds corrected."""
        reader = _READERS.get(kind_of(span))
        return step_of(span, self.name, StepKind.OTHER) if reader is None else reader(self, span)

    def model(self, span: Span) -> Step:
        """A model call."""
        attributes = span.attributes
        tree = nested(attributes, "llm.")
        given_to = _flattened(span, tree.get("input_messages"), "user") or _genai(attributes, "gen_ai.input.messages", "user")
        produced = _flattened(span, tree.get("output_messages"), "assistant")
        produced = produced or _generated(attributes) or _genai(attributes, "gen_ai.output.messages", "assistant")
        got = Payload(given_to) if given_to else _input(span)
        gave = Payload(produced) if produced else _output(span)
        truncated = got.truncated or gave.truncated
        nothing = not (got.messages or gave.messages or truncated)
        return step_of(
            span,
            self.name,
            StepKind.MODEL,
            agent=agent_name(span),
            model=first_text(
                attributes, "llm.response.model_name", "llm.model_name", "gen_ai.response.model", "gen_ai.request.model"
            ),
            provider=first_text(attributes, "llm.provider", "llm.system", "gen_ai.provider.name"),
            input=got.messages,
            output=() if gave.opaque else gave.messages,
            tools=_tools(attributes, tree.get("tools")),
            usage=usage_of(attributes, OPENINFERENCE) or usage_within(attributes.get("output.value")),
            flags=(TRUNCATED,) if truncated else (NO_CONTENT,) if nothing else (),
        )

    def tool(self, span: Span) -> Step:
        """An execution of a tool, unless it hands over to another agent or only carries the final answer."""
        attributes = span.attributes
        name = first_text(attributes, "tool.name", "gen_ai.tool.name") or span.name
        if span.scope_name == OPENAI_AGENTS and "tool.name" not in attributes and span.name.startswith("handoff to "):
            call = ToolCall("transfer_to_" + re.sub(r"\W", "_", span.name.removeprefix("handoff to ")).lower())
            return step_of(span, self.name, StepKind.OTHER, tool=call, flags=(HANDOFF,))
        parameters = attributes.get("tool.parameters")
        is_json = attributes.get("input.mime_type") == _JSON
        got = given(first(attributes, "input.value", "tool.parameters"), parameters, is_json=is_json)
        gave = returned(first(attributes, "output.value", "gen_ai.tool.call.result"))
        if KIND not in attributes:  # a log record alone, named after its scope
            name = gave.name or name
        call_id = first_text(attributes, "tool.id", "tool_call.id", "gen_ai.tool.call.id")
        if gave.goto:
            return step_of(span, self.name, StepKind.OTHER, tool=ToolCall(name, call_id or gave.call_id), flags=(HANDOFF,))
        if span.scope_name == _SMOLAGENTS and name == "final_answer":
            said = (Message("assistant", gave.text),) if gave.text else ()
            return step_of(span, self.name, StepKind.OTHER, tool=ToolCall(name, call_id), output=said)
        return tool_step(span, self.name, name, call_id, got, gave, agent=agent_name(span))

    def agent(self, span: Span) -> Step:
        """An agent, or what only wraps agents: a span without a name, an input and an output of its own."""
        name = agent_name(span)
        if not name and not _has_content(span):
            return step_of(span, self.name, StepKind.ORCHESTRATION)
        got, gave, flags = _values(span)
        return step_of(
            span,
            self.name,
            StepKind.AGENT,
            agent=name or first_text(span.resource, "service.name") or span.name.partition(".")[0],
            model=first_text(span.attributes, "llm.model_name", "gen_ai.request.model"),
            input=got,
            output=gave,
            tools=_tools(span.attributes, nested(span.attributes, "llm.tools.")),
            usage=usage_of(span.attributes, OPENINFERENCE),
            most_rounds=integer(span.attributes.get("smolagents.max_steps")) or 0,
            flags=flags,
        )

    def orchestration(self, span: Span) -> Step:
        """A graph above agents."""
        return self._wrapper(span, StepKind.ORCHESTRATION, agent="" if span.name == "LangGraph" else span.name)

    def chain(self, span: Span) -> Step:
        """A wrapper inside a run. Only a root can stand for one, so only a root's input and output are read."""
        if span.parent_id:
            return step_of(span, self.name, StepKind.CHAIN, agent=agent_name(span))
        return self._wrapper(span, StepKind.CHAIN, agent=agent_name(span))

    def _wrapper(self, span: Span, kind: StepKind, *, agent: str) -> Step:
        got, gave, flags = _values(span)
        return step_of(span, self.name, kind, agent=agent, input=got, output=gave, flags=flags)

    def retrieval(self, span: Span) -> Step:
        """A look-up of documents, as a request and what came back."""
        listed = in_order(nested(span.attributes, "retrieval.documents."))
        found = [first_text(as_dict(as_dict(one).get("document")), "content") for one in listed]
        documents = tuple(Message("tool", text) for text in found if text)
        return step_of(span, self.name, StepKind.RETRIEVAL, input=_input(span).messages, output=documents)

    def guardrail(self, span: Span) -> Step:
        """A check of the agent by itself."""
        return step_of(span, self.name, StepKind.OTHER, flags=(GUARDRAIL,))


_READERS: Final = {
    "LLM": OpenInference.model,
    "TOOL": OpenInference.tool,
    "AGENT": OpenInference.agent,
    "GRAPH": OpenInference.orchestration,
    "CHAIN": OpenInference.chain,
    "RETRIEVER": OpenInference.retrieval,
    "GUARDRAIL": OpenInference.guardrail,
}


def _has_content(span: Span) -> bool:
    return any(key in span.attributes for key in ("input.value", "output.value", "llm.output_messages.0.message.role"))


def _genai(attributes: dict[str, Any], key: str, role: str) -> tuple[Message, ...]:
    value = first(attributes, key)
    return () if value is None else messages_of(decoded(value), role)


def _generated(attributes: Attributes) -> tuple[Message, ...]:
    """Read the reply that LangChain serialised, its text beside its message, where a span has lost the flattened form."""
    output = attributes.get("output.value")
    if not isinstance(output, str) or not output.startswith(GENERATIONS):
        return ()
    batches = as_dict(decoded(output)).get("generations")
    replies = [as_dict(one) for batch in batches if isinstance(batch, list) for one in batch] if isinstance(batches, list) else []
    return messages_of([_reply(one.get("text"), as_dict(one.get("message"))) for one in replies], "assistant")


def _reply(text: Any, message: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text} | as_dict(message.get("kwargs", message))


def _input(span: Span) -> Payload:
    value = span.attributes.get("input.value")
    return asked(value, is_json=span.attributes.get("input.mime_type") == _JSON)


def _output(span: Span) -> Payload:
    value = span.attributes.get("output.value")
    gave = answered(value, is_json=span.attributes.get("output.mime_type") == _JSON)
    return gave._replace(opaque=True) if span.scope_name == LLAMA_INDEX and str(value).startswith("StopEvent(") else gave


def _agent_output(span: Span) -> Payload:
    """Return what an agent gave: its messages with their calls where it lists them, and its output."""
    if span.scope_name == _SMOLAGENTS and span.attributes.get("output.value") == "None":
        return Payload((Message("assistant"),))  # no answer: the step limit was reached
    gave = _output(span)
    listed = _flattened(span, nested(span.attributes, "llm.output_messages."), "assistant")
    return gave._replace(messages=(*listed, *gave.messages)) if any(message.tool_calls for message in listed) else gave


def _values(span: Span) -> tuple[tuple[Message, ...], tuple[Message, ...], tuple[str, ...]]:
    """Return what the span was given, what it gave, and what to flag."""
    got, gave = _input(span), _agent_output(span)
    truncated = (TRUNCATED,) if got.truncated or gave.truncated else ()
    return got.messages, gave.messages, (OPAQUE, *truncated) if gave.opaque else truncated


def _tools(attributes: Attributes, listed: Any) -> tuple[ToolDefinition, ...]:
    offers = [as_dict(as_dict(one).get("tool")).get("json_schema") for one in in_order(listed)]
    found = tuple(tool for text in offers for tool in tool_definitions(text))
    return found or tool_definitions(attributes.get("gen_ai.tool.definitions"))


def _flattened(span: Span, listed: Any, role: str) -> tuple[Message, ...]:
    """Read messages from the tree of their names."""
    found: list[dict[str, Any]] = []
    for one in in_order(listed):
        fields = as_dict(as_dict(one).get("message"))
        if not isinstance(fields.get("content"), str):
            fields["content"] = _contents(fields)
        if "tool_calls" in fields:
            fields["tool_calls"] = _calls(fields, span)
        found.append(fields)
        found += map(_told, in_order(as_dict(one).get("function")))
    return messages_of(found, role)


def _told(result: Any) -> dict[str, Any]:
    """Return a result that AutoGen's model was told, which stands beside its message."""
    fields = as_dict(decoded(result))
    return {"role": "tool", "content": fields.get("content"), "tool_call_id": fields.get("call_id"), "name": fields.get("name")}


def _contents(fields: dict[str, Any]) -> list[Any]:
    parts = [as_dict(as_dict(part).get("message_content")) for part in in_order(fields.get("contents"))]
    return parts or in_order(fields.get("content"))


def _calls(fields: dict[str, Any], span: Span) -> list[dict[str, Any]]:
    """Return the calls of a message. The instrumentations leave ``{}`` out, so absent arguments are none unless attributes were dropped."""
    found: list[dict[str, Any]] = []
    for one in in_order(fields.get("tool_calls")):
        call = as_dict(as_dict(one).get("tool_call"))
        function = as_dict(call.get("function"))
        arguments = function.get("arguments", None if span.dropped else {})
        found.append({"id": call.get("id"), "name": function.get("name"), "arguments": arguments})
    return found


DIALECT: Final = Dialect(
    name=OpenInference.name,
    about=About(
        title="OpenInference, the instrumentations of Arize",
        default="everything: messages, arguments, results, tools and tokens; OPENINFERENCE_HIDE_INPUTS and _HIDE_OUTPUTS leave it out",
    ),
    marks=Marks(scopes=("openinference.instrumentation.*",), attributes=(KIND,)),
    read=OpenInference().read,
)
