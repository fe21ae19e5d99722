"""The GenAI conventions and OpenLLMetry, span by span, and what every span says whatever its dialect."""

import json
from typing import Any

import pytest
from builders import a_span

from collectors.dialects import read
from pipeline.model.span import STATUS_ERROR, Event
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition, Usage

OPERATION = "gen_ai.operation.name"
ASKED = ToolCall("lookup", "call-1", {"id": 7})
MESSAGES = [
    {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": " call-1", "name": "lookup", "arguments": {"id": 7}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call-1", "response": {"at": "door"}}]},
]
READ = (
    Message("user", "Where is it?"),
    Message("assistant", tool_calls=(ASKED,)),
    Message("tool", '{"at":"door"}', tool_call_id="call-1"),
)


def step(operation: str | None, attributes: dict[str, Any] | None = None, **fields: Any) -> Step:
    named = {OPERATION: operation} if operation else {"gen_ai.system": "openai"}
    return read(a_span(attributes=named | (attributes or {}), **fields))


@pytest.mark.parametrize("form", [MESSAGES, json.dumps(MESSAGES), json.dumps(json.dumps(MESSAGES))])
def test_messages_are_structured_or_json_once_or_twice_over(form: Any) -> None:
    assert step("chat", {"gen_ai.input.messages": form}).input == READ


@pytest.mark.parametrize("key", ["response", "result", "content"])
def test_a_response_goes_by_the_schemas_name_or_by_the_one_in_its_own_example(key: str) -> None:
    part = {"type": "tool_call_response", "id": "call-1", key: "done"}
    found = step("chat", {"gen_ai.input.messages": [{"role": "user", "parts": [part]}]})
    assert found.input == (Message("tool", "done", tool_call_id="call-1"),)


def test_messages_may_be_on_an_event_and_the_input_on_another_one_than_the_output() -> None:
    events = tuple(
        Event("gen_ai.client.inference.operation.details", attributes={key: value})
        for key, value in (
            ("gen_ai.input.messages", MESSAGES[:1]),
            ("gen_ai.output.messages", [{"role": "assistant", "parts": [{"type": "text", "content": "Here."}]}]),
            ("gen_ai.system_instructions", [{"type": "text", "content": "Be kind."}]),
        )
    )
    found = step("chat", events=events)
    assert found.input == (Message("system", "Be kind."), Message("user", "Where is it?"))
    assert found.output == (Message("assistant", "Here."),)


def test_the_old_form_has_an_event_for_every_message() -> None:
    call = {"id": "call-1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": 7}'}}
    events = (
        Event("gen_ai.user.message", attributes={"content": "Where is it?"}),
        Event("gen_ai.assistant.message", attributes={"tool_calls": json.dumps([call])}),
        Event("gen_ai.tool.message", attributes={"content": "door", "id": "call-1"}),
        Event("gen_ai.choice", attributes={"message": json.dumps({"role": "assistant", "content": "Here."})}),
    )
    found = step("chat", events=events)
    assert found.input == (READ[0], READ[1], Message("tool", "door", tool_call_id="call-1"))
    assert found.output == (Message("assistant", "Here."),)


def test_system_instructions_are_parts_or_a_text() -> None:
    for rules in ("Be kind.", '[{"type": "text", "content": "Be kind."}]', [{"type": "text", "content": "Be kind."}]):
        assert step("chat", {"gen_ai.system_instructions": rules}).input == (Message("system", "Be kind."),)


def test_a_call_that_was_written_as_text_is_a_call() -> None:
    text = "ResponseFunctionToolCall(arguments='{\"id\":7}', call_id='call-1', name='lookup', type='function_call', id='fc_1')"
    output = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    assert step("chat", {"gen_ai.output.messages": output}).output == (Message("assistant", tool_calls=(ASKED,)),)


def test_a_call_that_the_provider_ran_itself_comes_with_its_result() -> None:
    parts = [
        {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"query": "x"}},
        {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": "found"},
        {"type": "text", "content": "Found."},
    ]
    (message,) = step("chat", {"gen_ai.output.messages": [{"role": "assistant", "parts": parts}]}).output
    assert message == Message("assistant", "Found.", (ToolCall("web_search", "s1", {"query": "x"}, result="found"),))


def test_parts_without_content_are_no_content() -> None:
    hidden = [{"role": "assistant", "parts": [{"type": "text"}, {"type": "reasoning"}]}]
    assert step("chat", {"gen_ai.output.messages": hidden}).flags == ("no_content",)


def test_messages_that_were_cut_are_flagged_and_nobodys_words() -> None:
    found = step("chat", {"gen_ai.output.messages": json.dumps(MESSAGES)[:-9]})
    assert (found.output, found.flags) == ((), ("truncated",))


@pytest.mark.parametrize(
    ("names", "usage"),
    [
        ({"gen_ai.usage.input_tokens": 120, "gen_ai.usage.output_tokens": 30}, Usage(120, 30)),
        ({"gen_ai.usage.prompt_tokens": 120, "gen_ai.usage.completion_tokens": 30}, Usage(120, 30)),
        (
            {
                "gen_ai.usage.input_tokens": 120,
                "gen_ai.usage.cache_read.input_tokens": 20,
                "gen_ai.usage.reasoning.output_tokens": 5,
            },
            Usage(120, None, 20, 5),
        ),
        ({"gen_ai.usage.input_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 20}, Usage(24, None, 20)),
        ({"gen_ai.usage.input_tokens": True, "gen_ai.usage.output_tokens": -1}, None),
        ({}, None),
    ],
)
def test_tokens_in_every_spelling(names: dict[str, Any], usage: Usage | None) -> None:
    assert step("chat", names).usage == usage


def test_tools_offered_come_flat_or_as_functions_in_json_or_not() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    flat = [{"type": "function", "name": "lookup", "parameters": schema}]
    nested = json.dumps([{"type": "function", "function": flat[0]}, {"name": ""}, "no tool"])
    for form in (flat, nested):
        assert step("chat", {"gen_ai.tool.definitions": form}).tools == (ToolDefinition("lookup", schema),)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("chat", StepKind.MODEL),
        ("text_completion", StepKind.MODEL),
        ("invoke_workflow", StepKind.ORCHESTRATION),
        ("invoke_swarm", StepKind.ORCHESTRATION),
        ("create_agent", StepKind.IGNORED),
        ("retrieval", StepKind.RETRIEVAL),
        ("unknown", StepKind.CHAIN),
        ("execute_event_loop_cycle", StepKind.CHAIN),
        ("embeddings", StepKind.OTHER),
        ("agent_handoff", StepKind.OTHER),
    ],
)
def test_the_operation_says_what_a_span_is(operation: str, kind: StepKind) -> None:
    found = step(operation)
    assert (found.kind, found.dialect) == (kind, "genai")
    assert "unrecognised" not in found.flags


def test_without_an_operation_a_tools_or_a_models_name_says_it() -> None:
    assert step(None, {"gen_ai.tool.name": "lookup"}).kind is StepKind.TOOL
    assert step(None, {"gen_ai.request.model": "m"}).kind is StepKind.MODEL


def test_an_agents_name_is_its_own_or_in_the_span_name_and_never_the_instrumentations() -> None:
    assert step("invoke_agent", {"gen_ai.agent.name": "desk", "gen_ai.agent.version": "3"}).agent_version == "3"
    assert step("invoke_agent", name="invoke_agent desk").agent == "desk"
    invented = {"gen_ai.agent.name": "OpenAI Agent", "gen_ai.agent.description": "OpenAI Agents instrumentation"}
    assert step("chat", invented).agent == ""
    assert step("invoke_agent", {"gen_ai.system": "openai"}, name="Agent workflow").kind is StepKind.ORCHESTRATION


def test_a_hand_over_is_no_execution() -> None:
    handoff = step("agent_handoff", {"gen_ai.handoff.to_agent": "Math Desk"})
    assert (handoff.tool, handoff.flags) == (ToolCall("transfer_to_math_desk"), ("handoff",))


def test_an_execution_has_what_its_span_says() -> None:
    attributes = {
        "gen_ai.tool.name": "lookup",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.call.arguments": '{"id": 7}',
        "gen_ai.tool.call.result": '{"status": "error", "reason": "gone"}',
    }
    found = step("execute_tool", attributes)
    result = '{"status": "error", "reason": "gone"}'
    assert found.tool == ToolCall("lookup", "call-1", {"id": 7}, result=result, error=result)


def test_a_failure_is_told_by_status_error_type_or_the_frameworks_own_word() -> None:
    for how in ({"error.type": "TimeoutError"}, {"gen_ai.task.status": "failure"}, {"gen_ai.tool.status": "error"}):
        assert step("execute_tool", how).error is not None
    assert step("execute_tool", status_code=STATUS_ERROR, status_message="gone").error == "gone"
    assert step("execute_tool", {"error.type": "KeyError"}, status_code=STATUS_ERROR, status_message="7").error == "KeyError: 7"
    assert step("execute_tool", {"gen_ai.tool.status": "success"}).error is None


def test_every_span_says_its_service_its_conversation_and_what_to_know_of_it() -> None:
    span = a_span(
        attributes={"gen_ai.system": "x", "session.id": "s-1", "tracegrade.converted_from": "tau-bench"},
        resource={"service.name": "desk", "service.version": "1.2", "deployment.environment": "prod"},
        flags=0x300,
        dropped=1,
    )
    found = read(span)
    assert (found.service, found.service_version, found.environment, found.conversation_id) == ("desk", "1.2", "prod", "s-1")
    assert found.parent_is_remote
    assert set(found.flags) == {"converted", "dropped"}


def test_what_no_dialect_knows_is_kept_and_flagged() -> None:
    found = read(a_span(attributes={"http.request.method": "POST"}, scope_name="opentelemetry.instrumentation.httpx"))
    assert (found.kind, found.dialect, found.flags) == (StepKind.OTHER, "", ("unrecognised",))


@pytest.mark.parametrize(
    "fields",
    [
        {"scope_name": "crewai.telemetry"},
        {"scope_name": "pydantic-ai", "attributes": {OPERATION: "chat", "logfire.span_type": "pending_span"}},
        {"attributes": {"gen_ai.evaluation.name": "tone"}},
    ],
)
def test_telemetry_pending_copies_and_graders_are_no_part_of_any_run(fields: dict[str, Any]) -> None:
    assert read(a_span(**fields)).kind is StepKind.IGNORED


# OpenLLMetry


def traceloop(kind: str | None, attributes: dict[str, Any] | None = None, **fields: Any) -> Step:
    named = {"traceloop.span.kind": kind} if kind else {}
    return read(a_span(attributes=named | (attributes or {}), **fields))


def test_the_older_generation_has_indexed_messages() -> None:
    found = traceloop(
        None,
        {
            "llm.request.type": "chat",
            "gen_ai.system": "OpenAI",
            "gen_ai.request.model": "m",
            "gen_ai.prompt.0.role": "system",
            "gen_ai.prompt.0.content": "Be kind.",
            "gen_ai.prompt.1.role": "user",
            "gen_ai.prompt.1.content": '[{"type": "text", "text": "Where is it?"}]',
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.finish_reason": "tool_calls",
            "gen_ai.completion.0.tool_calls.0.id": "call-1",
            "gen_ai.completion.0.tool_calls.0.name": "lookup",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"id": 7}',
            "llm.request.functions.0.name": "lookup",
            "llm.request.functions.0.parameters": '{"type": "object"}',
            "gen_ai.usage.prompt_tokens": 120,
        },
    )
    assert (found.kind, found.dialect, found.flags) == (StepKind.MODEL, "openllmetry", ())
    assert found.input == (Message("system", "Be kind."), Message("user", "Where is it?"))
    assert found.output == (Message("assistant", tool_calls=(ASKED,)),)
    assert found.tools == (ToolDefinition("lookup", {"type": "object"}),)
    assert found.usage == Usage(120)
    assert traceloop(None, {"llm.request.type": "embedding"}).kind is StepKind.OTHER


def test_a_decorated_workflow_stands_for_the_run_and_reads_like_its_function() -> None:
    found = traceloop(
        "workflow",
        {
            "traceloop.entity.name": "answer_mail",
            "traceloop.entity.input": '{"args": ["Where is it?"], "kwargs": {}}',
            "traceloop.entity.output": '"Here."',
        },
    )
    assert (found.kind, found.agent) == (StepKind.ORCHESTRATION, "answer_mail")
    assert (found.input, found.output) == ((Message("user", "Where is it?"),), (Message("assistant", "Here."),))


def test_a_crew_and_its_tasks_are_no_agents_though_they_say_so() -> None:
    fields: dict[str, Any] = {"scope_name": "opentelemetry.instrumentation.crewai"}
    invoked = {OPERATION: "invoke_agent"}
    assert traceloop("workflow", invoked, name="crewai.workflow", **fields).kind is StepKind.ORCHESTRATION
    assert traceloop("task", invoked, name="t.task", **fields).kind is StepKind.CHAIN
    agent = traceloop("agent", invoked | {"gen_ai.agent.name": "Writer"}, name="Writer.agent", **fields)
    assert (agent.kind, agent.agent) == (StepKind.AGENT, "Writer")


def test_a_callback_record_is_unwrapped_to_arguments_call_id_and_result() -> None:
    record = {"input_str": "{'id': 7}", "inputs": {"id": 7}, "kwargs": {"tool_call_id": "call-1"}}
    message = {"lc": 1, "kwargs": {"content": "door", "tool_call_id": "call-1", "status": "success"}}
    found = traceloop(
        "tool",
        {
            "gen_ai.tool.name": "lookup",
            "gen_ai.tool.call.arguments": json.dumps(record),
            "gen_ai.tool.call.result": json.dumps({"output": message, "kwargs": {}}),
        },
    )
    assert found.tool == ToolCall("lookup", "call-1", {"id": 7}, result="door")


def test_a_hand_over_is_named_by_its_attribute_or_by_its_arrow() -> None:
    assert traceloop("handoff", name="desk → Refunds.handoff").tool == ToolCall("transfer_to_refunds")
    assert traceloop("handoff", {"gen_ai.handoff.to_agent": "refunds"}).tool == ToolCall("transfer_to_refunds")


def test_json_that_a_decorator_cut_is_flagged() -> None:
    found = traceloop("workflow", {"traceloop.entity.output": '{"outputs": {"mess'})
    assert (found.output, found.flags) == ((), ("truncated",))
