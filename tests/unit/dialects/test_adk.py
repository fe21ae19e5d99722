"""Google's Agent Development Kit: three generations, and OpenInference on top."""

import json
from typing import Any

import pytest
from builders import a_span
from recordings import CORPORA, arrived, runs_of

from collectors.dialects import read
from pipeline.model.span import STATUS_ERROR
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition, Usage
from pipeline.scorers.calls import NOT_EXECUTED

SCOPE = "gcp.vertex.agent"
ARIZE = "openinference.instrumentation.google_adk"
REQUEST = {
    "model": "gemini",
    "config": {
        "system_instruction": "Be kind.",
        "tools": [
            {
                "function_declarations": [
                    {
                        "name": "lookup",
                        "parameters": {"type": "OBJECT", "properties": {"type": {"type": "INTEGER"}}, "required": ["type"]},
                    },
                    {"name": "refund", "parameters_json_schema": {"type": "object", "properties": {}}},
                ]
            }
        ],
    },
    "contents": [
        {"role": "user", "parts": [{"text": "Where is it?"}]},
        {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "lookup", "args": {"type": 7}}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "lookup", "response": {"result": "door"}}}]},
    ],
}
RESPONSE = {
    "content": {"role": "model", "parts": [{"text": "Let me see", "thought": True}, {"text": "At the door."}]},
    "finish_reason": "STOP",
}
ASKED = (
    Message("system", "Be kind."),
    Message("user", "Where is it?"),
    Message("assistant", tool_calls=(ToolCall("lookup", "c1", {"type": 7}),)),
    Message("tool", '{"result":"door"}', tool_call_id="c1", name="lookup"),
)


def step(name: str, attributes: dict[str, Any] | None = None, **fields: Any) -> Step:
    return read(a_span(name=name, attributes=attributes or {}, **({"scope_name": SCOPE} | fields)))


def tool(attributes: dict[str, Any], **fields: Any) -> Step:
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.type": "FunctionTool"}
    return step("execute_tool lookup", named | attributes, **fields)


@pytest.mark.parametrize("write", [json.dumps, lambda value: value], ids=["JSON", "structured"])
def test_a_model_call_is_a_request_and_a_response_of_geminis_api(write: Any) -> None:
    attributes = {
        "gen_ai.system": "gcp.vertex.agent",
        "gen_ai.request.model": "gemini",
        "gcp.vertex.agent.session_id": "s-1",
        "gcp.vertex.agent.llm_request": write(REQUEST),
        "gcp.vertex.agent.llm_response": write(RESPONSE),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
    }
    found = step("call_llm", attributes)
    assert (found.kind, found.dialect, found.model, found.provider) == (StepKind.MODEL, "adk", "gemini", "")
    assert found.input == ASKED
    assert found.output == (Message("assistant", "At the door."),)
    assert found.tools == (
        ToolDefinition("lookup", {"type": "object", "properties": {"type": {"type": "integer"}}, "required": ["type"]}),
        ToolDefinition("refund", {"type": "object", "properties": {}}),
    )
    assert (found.usage, found.conversation_id, found.flags) == (Usage(10, 5), "s-1", ())


@pytest.mark.parametrize("off", ["{}", {}, "<not serializable>"])
def test_content_that_is_switched_off_is_none(off: Any) -> None:
    found = step("call_llm", {"gcp.vertex.agent.llm_request": off, "gcp.vertex.agent.llm_response": off})
    assert (found.input, found.output, found.flags) == ((), (), ("no_content",))
    executed = tool({"gcp.vertex.agent.tool_call_args": off, "gcp.vertex.agent.tool_response": off})
    assert executed.tool is not None
    assert (executed.tool.arguments, executed.tool.result) == (None, None)


def test_a_result_that_adk_did_not_see_is_none() -> None:
    found = tool({"gcp.vertex.agent.tool_response": '{"result": "<not specified>"}'})
    assert found.tool is not None
    assert found.tool.result is None


def test_a_request_that_was_cut_is_flagged() -> None:
    found = step("call_llm", {"gcp.vertex.agent.llm_request": json.dumps(REQUEST)[:-5]})
    assert (found.input, found.flags) == ((), ("truncated",))


@pytest.mark.parametrize(
    ("name", "attributes", "kind", "agent"),
    [
        ("invocation", {}, StepKind.ORCHESTRATION, ""),
        ("invocation [hello_app]", {}, StepKind.ORCHESTRATION, ""),
        ("invoke_workflow desk", {"gen_ai.operation.name": "invoke_workflow"}, StepKind.ORCHESTRATION, ""),
        ("agent_run [desk]", {}, StepKind.AGENT, "desk"),
        ("invoke_agent desk", {"gen_ai.operation.name": "invoke_agent"}, StepKind.AGENT, "desk"),
        ("invoke_agent x", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}, StepKind.AGENT, "desk"),
        ("generate_content gemini", {"gen_ai.operation.name": "generate_content"}, StepKind.MODEL, ""),
        ("send_data", {}, StepKind.OTHER, ""),
    ],
)
def test_what_is_what_in_every_generation(name: str, attributes: dict[str, Any], kind: StepKind, agent: str) -> None:
    found = step(name, attributes)
    assert (found.kind, found.agent, found.dialect) == (kind, agent, "adk")
    assert "unrecognised" not in found.flags


def test_an_execution_under_its_own_names_or_under_the_conventions() -> None:
    wanted = ToolCall("lookup", "c1", {"id": 7}, result='{"result": "door"}')
    for arguments, result in (
        ("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
        ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
    ):
        assert tool({arguments: '{"id": 7}', result: '{"result": "door"}', "gen_ai.tool.call.id": "c1"}).tool == wanted


def test_merged_calls_and_hand_overs_are_no_executions() -> None:
    merged = tool({"gen_ai.tool.name": "(merged tools)", "gcp.vertex.agent.tool_call_args": "N/A"})
    transfer = tool(
        {"gen_ai.tool.name": "transfer_to_agent", "gen_ai.tool.type": "TransferToAgentTool", "gen_ai.tool.call.id": "c1"}
    )
    assert (merged.kind, merged.tool) == (StepKind.OTHER, None)
    assert (transfer.kind, transfer.tool, transfer.flags) == (StepKind.OTHER, ToolCall("transfer_to_agent", "c1"), ("handoff",))


@pytest.mark.parametrize(
    ("result", "attributes", "error"),
    [
        ('{"error": "no such id"}', {}, "no such id"),
        ('{"error": "no such id"}', {"error.type": "TOOL_ERROR"}, "TOOL_ERROR: no such id"),
        ('{"error": {"code": 4}}', {}, '{"code":4}'),
        ('{"error": null}', {}, None),
        ('{"error": false, "id": 7}', {}, None),
        ('{"status": "error", "error_message": "gone"}', {}, '{"status": "error", "error_message": "gone"}'),
        ('{"result": "error"}', {}, None),
    ],
)
def test_a_failure_that_only_the_result_tells(result: str, attributes: dict[str, Any], error: str | None) -> None:
    found = tool({"gcp.vertex.agent.tool_response": result} | attributes)
    assert found.tool is not None
    assert (found.error, found.tool.error, found.tool.result) == (error, error, result)


def test_a_tool_that_there_is_not_was_not_executed() -> None:
    attributes = {
        "gen_ai.tool.type": "BaseTool",
        "gen_ai.tool.description": "Tool not found",
        "gen_ai.tool.call.result": '{"error": "no tool with that name"}',
        "error.type": "ValueError",
    }
    found = tool(attributes, status_code=STATUS_ERROR, status_message="ValueError")
    assert found.tool is not None
    assert (found.error, found.tool.error) == ("ValueError: no tool with that name", NOT_EXECUTED)


def test_openinference_adds_what_went_in_and_came_out() -> None:
    invocation = {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"user_id": "u", "new_message": {"role": "user", "parts": [{"text": "hi"}]}}),
        "output.value": json.dumps(RESPONSE),
    }
    found = step("invocation [app]", invocation, scope_name=ARIZE)
    assert (found.kind, found.dialect, found.input, found.output) == (
        StepKind.ORCHESTRATION,
        "adk",
        (Message("user", "hi"),),
        (Message("assistant", "At the door."),),
    )
    executed = {
        "openinference.span.kind": "TOOL",
        "gen_ai.operation.name": "execute_tool",
        "tool.name": "lookup",
        "input.value": '{"id": 7}',
        "output.value": '{"id": "c1", "name": "lookup", "response": {"result": "door"}}',
    }
    assert step("execute_tool lookup", executed, scope_name=ARIZE).tool == ToolCall(
        "lookup", arguments={"id": 7}, result='{"result":"door"}'
    )


def test_a_model_call_that_only_openinference_tells() -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gemini",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "hi",
    }
    found = step("call_llm", attributes, scope_name=ARIZE)
    assert (found.dialect, found.model, found.input) == ("adk", "gemini", (Message("user", "hi"),))


def test_spans_that_lost_their_scope_are_known_by_their_attributes() -> None:
    found = step(
        "call_llm", {"gcp.vertex.agent.llm_request": json.dumps(REQUEST)}, scope_name="opentelemetry.instrumentation.httpx"
    )
    assert (found.dialect, found.input) == ("adk", ASKED)


def test_a_recorded_run_of_the_second_generation() -> None:
    (run,) = runs_of(arrived(CORPORA / "strands-evals-fixtures" / "adk_live_spans.json"))
    assert (run.place.cohort.agent, run.request, run.answer) == (
        "math_agent",
        "What is 15 multiplied by 37?",
        "15 multiplied by 37 is 555.",
    )
    assert run.system.startswith("You are a math assistant.")
    assert [(call.name, call.id, call.arguments) for call in run.tool_calls] == [
        ("calculator", "uwpsprd2", {"expression": "15 * 37"})
    ]
    assert (run.model_calls, run.usage) == (2, Usage(157 + 222, 51 + 33, None, 32 + 20)), "two spans tell of each call"
    assert [tool.name for tool in run.tools] == ["calculator"]
    assert run.flags == (), "the inner one of the two has no content, and need have none"


def test_a_recorded_run_of_the_first_generation_under_openinference() -> None:
    (run,) = runs_of(arrived(CORPORA / "langfuse-framework-traces" / "google-adk-2025-08-28.json"))
    assert (run.place.cohort.agent, run.request, run.answer) == ("hello_agent", "hi", "Hello Langfuse 👋!\n")
    assert run.system.startswith("Always greet using the say_hello tool.")
    assert [(call.name, call.arguments, call.result) for call in run.tool_calls] == [
        ("say_hello", {}, '{"greeting":"Hello Langfuse 👋"}')
    ]
    assert (run.model_calls, run.usage.input, run.usage.output, run.conversation_id) == (2, 39 + 28, 6 + 3, "demo-session")


def test_agents_that_hand_over_without_end_are_one_run_that_failed() -> None:
    (run,) = runs_of(arrived(CORPORA / "live" / "adk" / "pingpong.jsonl"))
    assert (run.place.cohort.agent, run.agents, run.model_calls, run.tool_calls) == ("support_agent", ("refunds_desk",), 8, ())
    assert run.error == "LlmCallsLimitExceededError: Max number of llm calls limit of `8` exceeded"
    assert "handoff" in run.flags
