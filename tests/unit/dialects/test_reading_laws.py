"""Whatever senders put into attributes, a span is read, the same way every time, into something that can be stored."""

import json
from typing import Any

import msgspec
import pytest
from builders import a_span
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.dialects import read
from collectors.dialects.attributes import UNREADABLE, decoded, in_order, integer, nested
from pipeline.model.span import Event
from pipeline.model.step import StepKind, ToolCall

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.sampled_from(["role", "content", "parts"]), inner, max_size=3)
    ),
    max_leaves=8,
)
WORDS = st.sampled_from(["None", "{}", "__REDACTED__", "[", "{'a': 1", '{"a": ', '"{\\"a\\": 1}"', "NaN", "\u0000", "[[[["])
FORMS = VALUES | WORDS | VALUES.map(json.dumps) | VALUES.map(lambda value: json.dumps(json.dumps(value)))
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "tool", "ai", "tool-call"]) | VALUES,
        "type": st.sampled_from(["human", "function_call", "function_call_output", "tool"]) | VALUES,
        "content": VALUES,
        "parts": st.lists(
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["text", "tool_call", "tool_call_response", "uri", "reasoning", "server_tool_call"])
                    | VALUES
                },
                optional={
                    "content": VALUES,
                    "id": VALUES,
                    "name": VALUES,
                    "arguments": FORMS,
                    "response": VALUES,
                    "text": VALUES,
                },
            )
            | VALUES,
            max_size=3,
        ),
        "tool_calls": st.lists(st.fixed_dictionaries({"name": TEXT | VALUES, "args": VALUES}) | VALUES, max_size=2) | VALUES,
        "tool_call_id": VALUES,
        "kwargs": VALUES,
        "data": VALUES,
    },
)
CONVERSATIONS = st.lists(MESSAGE | VALUES, max_size=4)
CONTENT = FORMS | CONVERSATIONS | CONVERSATIONS.map(json.dumps) | CONVERSATIONS.map(lambda some: json.dumps({"messages": some}))
KEYS = st.sampled_from(
    [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.definitions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.tool.name",
        "gen_ai.agent.name",
        "gen_ai.usage.input_tokens",
        "gen_ai.prompt.0.content",
        "gen_ai.prompt.x.content",
        "gen_ai.completion.1.tool_calls.0.name",
        "input.value",
        "output.value",
        "tool.name",
        "tool.parameters",
        "metadata",
        "llm.input_messages.0.message.content",
        "llm.input_messages.0.message",
        "llm.input_messages.0.message.contents.0.message_content.text",
        "llm.output_messages.1.message.role",
        "llm.output_messages.1.message.tool_calls.0.tool_call.function.name",
        "llm.output_messages.1.message.tool_calls.0.tool_call.function.arguments",
        "llm.tools.0.tool.json_schema",
        "llm.token_count.prompt",
        "retrieval.documents.0.document.content",
        "traceloop.entity.name",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "session.id",
        "error.type",
        "gen_ai.operation.name",
        "openinference.span.kind",
        "traceloop.span.kind",
        "logfire.span_type",
        "gen_ai.agent.description",
        "gen_ai.tool.type",
        "llm.request.type",
        "final_result",
        "gcp.vertex.agent.llm_request",
        "gcp.vertex.agent.llm_response",
        "gcp.vertex.agent.tool_response",
        "gen_ai.agent.tools",
        "gen_ai.agent.id",
        "mlflow.spanInputs",
        "mlflow.spanOutputs",
        "mlflow.chat.tools",
        "mlflow.chat.tokenUsage",
        "mlflow.llm.model",
        "mlflow.trace.session",
        "genkit:name",
        "genkit:input",
        "genkit:output",
        "gen_ai.output",
        "gen_ai.tool.args",
        "gen_ai.tool.call_id",
        "gen_ai.completion.0.function_call",
        "crewai.crew.result",
        "aws.genai.span_kind",
    ]
)
MARKS = st.sampled_from(
    [
        *({"openinference.span.kind": kind} for kind in ("LLM", "TOOL", "AGENT", "CHAIN", "RETRIEVER", "GUARDRAIL", "other")),
        *(
            {"gen_ai.operation.name": name}
            for name in ("chat", "execute_tool", "invoke_agent", "retrieval", "agent_handoff", "x")
        ),
        *({"traceloop.span.kind": kind} for kind in ("workflow", "task", "agent", "tool", "handoff", "unknown")),
        *({"mlflow.spanType": f'"{kind}"'} for kind in ("CHAT_MODEL", "TOOL", "AGENT", "RETRIEVER", "UNKNOWN")),
        *({"genkit:metadata:subtype": kind} for kind in ("model", "tool", "flow", "util")),
        *({"gen_ai.operation.name": name} for name in ("call_llm", "llm_call", "tool_call", "chat.completions", "create_agent")),
        {"llm.request.type": "chat"},
        {"llm.request.type": "acompletion", "gen_ai.request.model": "m"},
        {"gcp.vertex.agent.event_id": "e"},
        {},
    ]
)
SCOPES = st.sampled_from(
    [
        "",
        "openinference.instrumentation.langchain",
        "openinference.instrumentation.openai_agents",
        "openinference.instrumentation.smolagents",
        "gcp.vertex.agent",
        "openinference.instrumentation.google_adk",
        "openinference.instrumentation.crewai",
        "opentelemetry.instrumentation.crewai",
        "strands.telemetry.tracer",
        "autogen-core",
        "semantic_kernel.functions.kernel_function",
        "agent_framework",
        "ai.koog",
        "any_agent",
        "gemini-cli",
        "codex_cli_rs",
        "litellm",
        "openlit.otel.tracing",
    ]
)
EVENTS = st.builds(
    Event,
    name=st.sampled_from(
        [
            "gen_ai.choice",
            "gen_ai.user.message",
            "gen_ai.tool.message",
            "gen_ai.content.prompt",
            "gen_ai.content.completion",
            "exception",
            "gen_ai.client.inference.operation.details",
            "the scope of a span whose content was logged",
        ]
    ),
    attributes=st.dictionaries(
        st.sampled_from(
            [
                "content",
                "message",
                "tool_calls",
                "id",
                "exception.type",
                "gen_ai.output.messages",
                "gen_ai.prompt",
                "input",
                "output",
            ]
        ),
        CONTENT | CONVERSATIONS.map(lambda some: {"messages": some}),
    ),
)


@settings(deadline=None, max_examples=300)
@given(MARKS, st.dictionaries(KEYS, CONTENT, max_size=8), SCOPES, st.lists(EVENTS, max_size=2), st.integers(0, 2))
def test_any_span_is_read_alike_every_time_and_can_be_stored(
    mark: dict[str, Any], attributes: dict[str, Any], scope: str, events: list[Event], status: int
) -> None:
    span = a_span(attributes=mark | attributes, scope_name=scope, events=tuple(events), status_code=status)
    step = read(span)
    assert step == read(span)
    assert (step.span_id, step.start_ns, step.end_ns) == (span.span_id, span.start_ns, span.end_ns)
    assert msgspec.json.encode(step)
    assert all(isinstance(text, str) for text in (step.agent, step.model, step.name, step.conversation_id))
    assert all(isinstance(message.text, str) for message in (*step.input, *step.output))
    assert step.kind is not StepKind.TOOL or step.tool is not None


@settings(deadline=None)
@given(st.dictionaries(KEYS, CONTENT, max_size=8))
def test_reading_leaves_the_span_as_it_was(attributes: dict[str, Any]) -> None:
    span = a_span(attributes=attributes | {"openinference.span.kind": "LLM"})
    before = msgspec.json.encode(span)
    read(span)
    assert msgspec.json.encode(span) == before


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_what_is_nested_too_deep_to_be_walked_is_kept_as_text_or_flagged(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    calls = {
        "gen_ai.output.messages": f'[{{"role": "assistant", "parts": [{{"type": "tool_call", "name": "t", "arguments": {deep}}}]}}]'
    }
    for mark in (
        {"gen_ai.operation.name": "chat"},
        {"gen_ai.operation.name": "execute_tool"},
        {"openinference.span.kind": "TOOL"},
    ):
        step = read(a_span(attributes=mark | calls | {"gen_ai.tool.call.arguments": deep, "input.value": deep}))
        asked = [call for message in step.output for call in message.tool_calls]
        for call in (*asked, step.tool or ToolCall("")):
            assert call.arguments is None


@pytest.mark.parametrize("hostile", ["{'a': " + "-" * 100_000 + "1}", "{'a': " + "(" * 5_000, "{'" + "x" * 50_000 + "': 1}"])
def test_a_python_literal_that_could_overflow_the_stack_is_kept_as_text(hostile: str) -> None:
    step = read(a_span(attributes={"openinference.span.kind": "TOOL", "tool.name": "t", "input.value": hostile}))
    assert step.tool == ToolCall("t", raw_arguments=hostile)


def test_python_writes_numbers_that_json_does_not_know() -> None:
    assert decoded('{"a": NaN, "b": [Infinity]}') == {"a": "NaN", "b": ["Infinity"]}
    assert decoded('{"a": "\\ud800", "b": NaN}') is UNREADABLE
    assert decoded("NaN of course") is UNREADABLE


@pytest.mark.parametrize(
    ("value", "number"),
    [(7, 7), ("7", 7), (7.0, 7), (7.5, None), ("7.0", None), (True, None), ("", None), ("7" * 99, None), (None, None)],
)
def test_a_count_is_a_whole_number_however_it_was_written(value: Any, number: int | None) -> None:
    assert integer(value) == number


def test_a_name_that_ends_where_another_goes_on_breaks_nothing() -> None:
    assert nested({"a.b": 1, "a.b.c": 2}, "a.") == {"b": {"c": 2}}
    assert nested({"a.b.c": 2, "a.b": 1}, "a.") == {"b": {"c": 2, "": 1}}
    assert in_order({"10": "b", "2": "a", "x": "c", "²": "d"}) == ["a", "b"]
