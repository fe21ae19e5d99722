"""AutoGen, Semantic Kernel and Agent Framework."""

import json
from typing import Any

import pytest
from builders import a_log_record, a_span
from recordings import CORPORA, arrived, runs_of

from collectors.dialects import read
from collectors.dialects.log_records import is_kept
from pipeline.model.log_record import beside
from pipeline.model.span import Event, Span
from pipeline.model.step import Message, Step, StepKind, ToolCall, Usage

CALL = {"id": "c1", "type": "function", "function": {"name": "desk-lookup", "arguments": '{"id": 7}'}}
KERNEL = "semantic_kernel.functions.kernel_function"
COMPLETIONS = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"


def step(scope: str, name: str, attributes: dict[str, Any] | None = None, **fields: Any) -> Step:
    return read(a_span(name=name, scope_name=scope, attributes=attributes or {}, **fields))


# AutoGen


def test_making_an_agent_is_a_trace_of_its_own_and_no_run() -> None:
    (run,) = runs_of(arrived(CORPORA / "strands-evals-fixtures" / "autogen_live_spans.json"))
    assert (run.place.cohort.agent, run.dialects) == ("math_assistant", ("autogen",))
    assert [(call.name, call.id, call.arguments, call.result, call.error) for call in run.tool_calls] == [
        ("calculate", "toolu_bdrk_011nDreLrC9nv8NZs6iGrx6d", None, None, None)
    ]
    assert "no_content" in run.flags


@pytest.mark.parametrize(
    ("scope", "name"), [("autogen-core", "autogen process math_agent"), ("autogen SingleThreadedAgentRuntime", "autogen send x")]
)
def test_the_runtime_is_known_and_says_nothing(scope: str, name: str) -> None:
    found = step(scope, name, {"messaging.operation": "process"})
    assert (found.kind, found.dialect, found.flags) == (StepKind.OTHER, "autogen", ())


def test_a_companion_tells_the_arguments_and_the_results() -> None:
    def a_part(number: int, under: int, attributes: dict[str, Any], scope: str = "autogen-core") -> Span:
        return a_span(f"{number:016x}", f"{under:016x}" if under else "", scope_name=scope, attributes=attributes)

    asked = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "lookup",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"id": 7}',
    }
    told = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "tool",
        "llm.input_messages.0.message.tool_call_id": "c1",
        "llm.input_messages.0.message.content": "door",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "At the door.",
    }
    (run,) = runs_of(
        [
            a_part(1, 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.system": "autogen", "gen_ai.agent.name": "desk"}),
            a_part(2, 1, asked, "openinference.instrumentation.openai"),
            a_part(3, 1, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.call.id": "c1"}),
            a_part(4, 1, told, "openinference.instrumentation.openai"),
        ]
    )
    assert run.tool_calls == (ToolCall("lookup", "c1", {"id": 7}, result="door"),)
    assert run.answer == "At the door."


# Semantic Kernel


def test_a_completion_has_its_messages_in_log_records() -> None:
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("gen_ai.system.message", {"role": "system", "content": "Be kind."}),
        ("gen_ai.user.message", {"role": "user", "content": "Where is it?"}),
        ("gen_ai.assistant.message", {"role": "assistant", "tool_calls": [CALL]}),
        ("gen_ai.tool.message", {"role": "tool", "tool_call_id": "c1", "content": "door"}),
        ("gen_ai.choice", {"message": {"role": "assistant", "content": "At the door."}, "finish_reason": "stop", "index": 0}),
    ]
    records = [a_log_record(event_name=name, body=json.dumps(body), position=place) for place, (name, body) in enumerate(bodies)]
    assert all(map(is_kept, records))
    attributes = {
        "gen_ai.operation.name": "chat.completions",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "gpt",
        "gen_ai.response.finish_reason": "stop",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
    }
    found = read(beside(a_span(name="chat.completions gpt", scope_name=COMPLETIONS, attributes=attributes), records))
    assert (found.kind, found.dialect, found.model, found.usage) == (StepKind.MODEL, "semantic_kernel", "gpt", Usage(10, 5))
    assert found.input == (
        Message("system", "Be kind."),
        Message("user", "Where is it?"),
        Message("assistant", tool_calls=(ToolCall("desk-lookup", "c1", {"id": 7}),)),
        Message("tool", "door", tool_call_id="c1"),
    )
    assert found.output == (Message("assistant", "At the door."),)


@pytest.mark.parametrize("scope", ["Microsoft.SemanticKernel.Diagnostics", COMPLETIONS])
def test_before_that_they_were_on_two_events(scope: str) -> None:
    events = (
        Event("gen_ai.content.prompt", attributes={"gen_ai.prompt": json.dumps([{"role": "user", "content": "Where is it?"}])}),
        Event(
            "gen_ai.content.completion",
            attributes={"gen_ai.completion": json.dumps([{"role": "Assistant", "content": "There."}])},
        ),
    )
    attributes = {
        "gen_ai.operation.name": "chat.completions",
        "gen_ai.response.prompt_tokens": 10,
        "gen_ai.response.completion_tokens": 5,
    }
    found = step(scope, "chat.completions gpt", attributes, events=events)
    assert (found.input, found.output, found.usage) == (
        (Message("user", "Where is it?"),),
        (Message("assistant", "There."),),
        Usage(10, 5),
    )


def test_a_text_completion_is_given_a_text() -> None:
    record = a_log_record(event_name="gen_ai.prompt", body="Once upon a time")
    span = a_span(scope_name=COMPLETIONS, attributes={"gen_ai.operation.name": "text.streaming_completions"})
    assert is_kept(record)
    found = read(beside(span, [record]))
    assert (found.kind, found.input) == (StepKind.MODEL, (Message("user", "Once upon a time"),))


def test_only_functions_that_a_model_asked_for_are_tools() -> None:
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "desk-lookup"}
    own = step(KERNEL, "execute_tool desk-lookup", named)
    asked = step(KERNEL, "execute_tool desk-lookup", named | {"gen_ai.tool.call.id": "c1"})
    assert (own.kind, own.tool) == (StepKind.CHAIN, None)
    assert (asked.kind, asked.tool) == (StepKind.TOOL, ToolCall("desk-lookup", "c1"))


def test_an_agent_of_semantic_kernel() -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "gen_ai.agent.id": "7"}
    found = step("semantic_kernel.utils.telemetry.agent_diagnostics.decorators", "invoke_agent desk", attributes)
    assert (found.kind, found.agent, found.dialect) == (StepKind.AGENT, "desk", "semantic_kernel")


# Agent Framework


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("workflow.run", StepKind.ORCHESTRATION),
        ("workflow.run research", StepKind.ORCHESTRATION),
        ("workflow.build", StepKind.OTHER),
        ("executor.process writer", StepKind.CHAIN),
        ("edge_group.process FanInEdgeGroup", StepKind.CHAIN),
        ("message.send", StepKind.OTHER),
    ],
)
def test_spans_of_a_workflow_go_by_name(name: str, kind: StepKind) -> None:
    found = step("agent_framework", name, {"workflow.id": "w"})
    assert (found.kind, found.dialect, found.flags) == (kind, "agent_framework", ())


@pytest.mark.parametrize(
    ("named", "agent"),
    [
        ({"gen_ai.agent.name": "desk", "gen_ai.agent.id": "99981f6a"}, "desk"),
        ({"gen_ai.agent.name": "99981f6a", "gen_ai.agent.id": "99981f6a"}, "shop"),
        ({"gen_ai.agent.name": "UnnamedAgent", "gen_ai.agent.id": "99981f6a"}, "shop"),
        ({"gen_ai.agent.id": "99981f6a"}, "shop"),
    ],
)
def test_an_agent_that_nobody_named_goes_by_its_service(named: dict[str, str], agent: str) -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "unknown"} | named
    found = step("agent_framework", "invoke_agent 99981f6a", attributes, resource={"service.name": "shop"})
    assert (found.kind, found.agent, found.model) == (StepKind.AGENT, agent, "")


@pytest.mark.parametrize("word", ["None", "", "N/A"])
def test_arguments_that_are_a_word_for_nothing_are_none(word: str) -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.call.arguments": word}
    assert step("agent_framework", "execute_tool lookup", attributes).tool == ToolCall("lookup")


def test_a_recorded_run_of_agent_framework() -> None:
    (run,) = runs_of(arrived(CORPORA / "langfuse-framework-traces" / "microsoft-agent-2025-10-14.json"))
    assert run.place.cohort.agent == "agent_framework", "the agent's name is its id, and the service's is agent_framework"
    assert run.request == "What's the weather like in Portland?"
    assert run.answer == "The weather in Portland is currently stormy with a high temperature of 19°C."
    assert [(call.name, call.arguments, call.result) for call in run.tool_calls] == [
        ("get_weather", {"location": "Portland"}, "The weather in Portland is stormy with a high of 19°C.")
    ]
    assert (run.model_calls, run.models, run.conversation_id) == (2, ("gpt-4o",), "thread_G78qCSLpzn0YQwFwrvK5OivI")
