"""Koog, any-agent, Genkit, Gemini CLI, Codex CLI, OpenCode, LiteLLM and OpenLIT."""

import json
from typing import Any

import pytest
from builders import a_span
from recordings import CORPORA, arrived, runs_of

from collectors.dialects import read
from pipeline.model.run import Ended
from pipeline.model.span import Event
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition, Usage

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


def step(scope: str, attributes: dict[str, Any] | None = None, name: str = "span", **fields: Any) -> Step:
    return read(a_span(name=name, scope_name=scope, attributes=attributes or {}, **fields))


# Koog


def test_a_recorded_run_of_koog() -> None:
    (run,) = runs_of(arrived(CORPORA / "langfuse-framework-traces" / "koog-2025-08-26.json"))
    assert run.place.cohort.agent == "ai.koog", "its agents have ids and no names: the service's"
    assert run.place.cohort.version == "0.3.0"
    assert run.system == "You are a nice and polite assistant."
    assert run.request.startswith("Greet and say goodbye to the user in the same message.")
    assert [(call.name, call.arguments, call.result, call.error) for call in run.tool_calls] == [
        ("HelloTool", {"name": "Bob"}, "Hello my darling Bob!", None),
        ("ByeTool", {"name": "Bob"}, "Bye my dear Bob!", None),
    ]
    assert (run.answer, run.model_calls) == ("Hello my darling Bob! And, bye my dear Bob!", 2)
    assert run.conversation_id == "6f8d2449-33ed-4c7c-82e7-5410e34ee4e6"


def test_an_agent_of_koog_that_runs_twice_makes_two_runs() -> None:
    def a_run(number: int) -> list[Any]:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "a"}
        chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        ids = f"{number:016x}", f"{number + 1:016x}"
        return [
            a_span(ids[0], f"{1:016x}", scope_name="ai.koog", attributes=attributes),
            a_span(ids[1], ids[0], scope_name="ai.koog", attributes=chat),
        ]

    created = a_span(f"{1:016x}", scope_name="ai.koog", attributes={"gen_ai.operation.name": "create_agent"})
    assert len(runs_of([created, *a_run(2), *a_run(4)])) == 2


def test_koogs_nodes_are_wrappers_and_its_newer_spans_the_conventions() -> None:
    assert step("ai.koog", {"koog.node.name": "nodeCallLLM", "gen_ai.conversation.id": "x"}).kind is StepKind.CHAIN
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "lookup",
        "gen_ai.tool.call.arguments": '{"id": 7}',
    }
    assert step("ai.koog", attributes).tool == ToolCall("lookup", arguments={"id": 7})


# any-agent


@pytest.mark.parametrize("framework", ["AGNO", "OPENAI", "GOOGLE"])
def test_recorded_runs_of_any_agent(framework: str) -> None:
    (run,) = runs_of(arrived(CORPORA / "any-agent" / f"{framework}_trace.json"))
    assert (run.place.cohort.agent, run.model_calls, run.ended) == ("any_agent", 3, Ended.ANSWER)
    assert run.request.startswith("Find what year it is in the America/New_York timezone")
    assert [(call.name, call.arguments, call.error) for call in run.tool_calls] == [
        ("get_current_time", {"timezone": "America/New_York"}, None),
        ("write_file", {"text": "2025"}, None),
    ]
    assert run.tool_calls[0].result is not None
    assert json.loads(run.tool_calls[0].result)["timezone"] == "America/New_York"
    assert run.answer is not None
    assert [one["number"] for one in json.loads(run.answer)["steps"]] == [1, 2]


def test_a_final_output_that_was_refused_is_no_answer() -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "final_output",
        "gen_ai.tool.args": '{"answer": "x"}',
        "gen_ai.output": '{"success": false, "result": "Please fix this validation error"}',
    }
    found = step("any_agent", attributes)
    assert (found.kind, found.output) == (StepKind.OTHER, ())


# Genkit

QUESTION = {"role": "user", "content": [{"text": "Where is it?"}]}


def genkit(subtype: str, name: str, inputs: Any, outputs: Any = None, **more: Any) -> Step:
    attributes = {
        "genkit:type": "action",
        "genkit:metadata:subtype": subtype,
        "genkit:name": name,
        "genkit:input": json.dumps(inputs),
        "genkit:state": "success",
    }
    if outputs is not None:
        attributes["genkit:output"] = json.dumps(outputs)
    return step("genkit-tracer", attributes | more, name=name)


def test_a_model_call_of_genkit() -> None:
    inputs = {
        "messages": [
            {"role": "system", "content": [{"text": "Be kind."}]},
            QUESTION,
            {"role": "model", "content": [{"toolRequest": {"name": "lookup", "ref": "c1", "input": {"id": 7}}}]},
            {"role": "tool", "content": [{"toolResponse": {"name": "lookup", "ref": "c1", "output": {"at": "door"}}}]},
        ],
        "tools": [{"name": "lookup", "description": "…", "inputSchema": SCHEMA}],
    }
    outputs = {
        "message": {"role": "model", "content": [{"text": "At the door."}]},
        "usage": {"inputTokens": 10, "outputTokens": 5, "thoughtsTokens": 2, "cachedContentTokens": 4},
    }
    found = genkit("model", "googleai/gemini", inputs, outputs, **{"genkit:sessionId": "s-1"})
    assert (found.kind, found.model, found.provider, found.conversation_id) == (StepKind.MODEL, "gemini", "googleai", "s-1")
    assert found.input == (
        Message("system", "Be kind."),
        Message("user", "Where is it?"),
        Message("assistant", tool_calls=(ToolCall("lookup", "c1", {"id": 7}),)),
        Message("tool", '{"at":"door"}', tool_call_id="c1", name="lookup"),
    )
    assert found.output == (Message("assistant", "At the door."),)
    assert (found.tools, found.usage) == ((ToolDefinition("lookup", SCHEMA),), Usage(10, 5, 4, 2))


@pytest.mark.parametrize("subtype", ["tool", "tool.v2"])
def test_a_tool_of_genkit(subtype: str) -> None:
    assert genkit(subtype, "lookup", {"id": 7}, {"at": "door"}).tool == ToolCall(
        "lookup", arguments={"id": 7}, result='{"at": "door"}'
    )


def test_a_flow_of_genkit_stands_for_the_agent() -> None:
    found = genkit("flow", "supportFlow", "Where is it?", "At the door.")
    assert (found.kind, found.agent) == (StepKind.AGENT, "supportFlow")
    assert (found.input, found.output) == ((Message("user", "Where is it?"),), (Message("assistant", "At the door."),))
    assert step("genkit-tracer", {"genkit:type": "util", "genkit:name": "generate"}).kind is StepKind.CHAIN


def test_cut_json_of_genkit_is_flagged() -> None:
    attributes = {"genkit:metadata:subtype": "model", "genkit:name": "m", "genkit:input": '{"messages": [{"ro'}
    assert step("genkit-tracer", attributes).flags == ("truncated",)


# Coding assistants


def test_a_model_call_of_gemini_cli_in_geminis_form_or_as_a_text() -> None:
    contents = [{"role": "user", "parts": [{"text": "Where is it?"}]}]
    reply = [{"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}]}]
    attributes = {"gen_ai.agent.name": "gemini-cli", "gen_ai.request.model": "gemini"}
    for named in (
        {
            "gen_ai.operation.name": "llm_call",
            "gen_ai.input.messages": json.dumps(contents),
            "gen_ai.output.messages": json.dumps(reply),
        },
        {"gen_ai.operation.name": "llm_call", "input-json": json.dumps({"contents": contents}), "output-json": json.dumps(reply)},
    ):
        found = step("gemini-cli", attributes | named, name="llm_call")
        assert (found.kind, found.agent, found.input) == (StepKind.MODEL, "gemini-cli", (Message("user", "Where is it?"),))
        assert found.output == (Message("assistant", tool_calls=(ToolCall("read_file", "c1", {"path": "a"}),)),)
    prompt = {"gen_ai.operation.name": "user_prompt", "gen_ai.input.messages": "Where is it?"}
    found = step("gemini-cli", prompt)
    assert (found.kind, found.agent, found.input) == (StepKind.AGENT, "gemini-cli", (Message("user", "Where is it?"),))


def test_a_tool_call_of_gemini_cli() -> None:
    request = {"request": {"callId": "c1", "name": "read_file", "args": {"path": "a"}}}
    for named in (
        {"gen_ai.tool.name": "read_file", "gen_ai.tool.call_id": "c1", "gen_ai.input.messages": '{"path": "a"}'},
        {"input-json": json.dumps(request)},
    ):
        found = step("gemini-cli", {"gen_ai.operation.name": "tool_call"} | named, name="tool_call")
        assert found.tool == ToolCall("read_file", "c1", {"path": "a"})
    assert step("gemini-cli", {"gen_ai.operation.name": "schedule_tool_calls"}).kind is StepKind.CHAIN


def test_a_turn_of_codex_is_a_run_and_its_tokens_are_counted_once() -> None:
    totals = {
        f"codex.turn.token_usage.{name}": count
        for name, count in (("input_tokens", 30), ("output_tokens", 7), ("cached_input_tokens", 4))
    }
    turn = a_span("a" * 16, name="session_task.turn", scope_name="codex_cli_rs", attributes=totals | {"conversation.id": "s-1"})
    used = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 7}
    answered = a_span("b" * 16, "a" * 16, name="handle_responses", scope_name="codex_cli_rs", attributes=used)
    (run,) = runs_of([turn, answered])
    assert (run.place.cohort.agent, run.model_calls, run.usage.input, run.usage.output, run.conversation_id) == (
        "codex",
        1,
        30,
        7,
        "s-1",
    )
    (alone,) = runs_of([turn])
    assert alone.usage == Usage(30, 7, 4)
    assert step("codex_cli_rs", name="poll").kind is StepKind.OTHER


def test_opencode_writes_as_vercels_sdk_does() -> None:
    found = step(
        "opencode", {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "bash", "ai.toolCall.args": '{"command": "ls"}'}
    )
    assert (found.dialect, found.tool) == ("vercel", ToolCall("bash", arguments={"command": "ls"}))
    assert step("opencode", name="Session.create").dialect == "vercel"


# LiteLLM

COMPLETION = {
    "llm.request.type": "acompletion",
    "gen_ai.request.model": "gpt",
    "gen_ai.system": "openai",
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "Where is it?",
    "llm.request.functions.0.name": "lookup",
    "llm.request.functions.0.parameters": json.dumps(SCHEMA),
    "gen_ai.usage.prompt_tokens": 10,
    "gen_ai.usage.completion_tokens": 5,
}


def test_a_model_call_of_litellm() -> None:
    said = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "At the door."}
    found = step("litellm", COMPLETION | said, name="litellm_request")
    assert (found.kind, found.dialect, found.model, found.usage) == (StepKind.MODEL, "litellm", "gpt", Usage(10, 5))
    assert (found.input, found.output) == ((Message("user", "Where is it?"),), (Message("assistant", "At the door."),))
    assert found.tools == (ToolDefinition("lookup", SCHEMA),)


def test_calls_that_litellm_numbers_are_those_of_one_reply() -> None:
    called = {
        "gen_ai.completion.0.function_call.name": "lookup",
        "gen_ai.completion.0.function_call.arguments": '{"id": 7}',
        "gen_ai.completion.1.function_call.name": "lookup",
        "gen_ai.completion.1.function_call.arguments": '{"id": 8}',
    }
    calls = (ToolCall("lookup", arguments={"id": 7}), ToolCall("lookup", arguments={"id": 8}))
    assert step("litellm", COMPLETION | called).output == (Message("assistant", tool_calls=calls),)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("litellm_request", {"llm.request.type": "aembedding", "gen_ai.request.model": "e"}),
        ("raw_gen_ai_request", {"llm.openai.messages": "[]"}),
        ("Received Proxy Server Request", {}),
        ("redis", {"service": "redis", "call_type": "async_get_cache"}),
    ],
)
def test_what_else_litellm_does_is_known_and_no_model_call(name: str, attributes: dict[str, Any]) -> None:
    found = step("litellm", attributes, name=name)
    assert (found.kind, found.dialect, found.flags) == (StepKind.OTHER, "litellm", ())


def test_a_guardrail_of_litellm_does_not_speak_for_the_run() -> None:
    assert step("litellm", {"openinference.span.kind": "GUARDRAIL"}, name="guardrail").flags == ("guardrail",)


# OpenLIT


def test_openlit_has_older_names() -> None:
    executed = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.args": '{"id": 7}'}
    assert step("openlit.otel.tracing", executed).tool == ToolCall("lookup", arguments={"id": 7})
    agent = {
        "gen_ai.operation.name": "agent",
        "gen_ai.agent.role": "desk",
        "gen_ai.agent.task": "Where is it?",
        "gen_ai.agent.actual_output": "At the door.",
    }
    found = step("openlit.otel.tracing", agent)
    assert (found.kind, found.agent) == (StepKind.AGENT, "desk")
    assert (found.input, found.output) == ((Message("user", "Where is it?"),), (Message("assistant", "At the door."),))
    assert step("openlit.otel.tracing", {"gen_ai.operation.name": "framework"}).kind is StepKind.CHAIN


def test_openlits_content_may_be_a_text_on_two_events() -> None:
    events = (
        Event("gen_ai.content.prompt", attributes={"gen_ai.prompt": "user: Where is it?"}),
        Event("gen_ai.content.completion", attributes={"gen_ai.completion": "At the door."}),
    )
    found = step("openlit.otel.tracing", {"gen_ai.operation.name": "chat"}, events=events)
    assert (found.input, found.output) == ((Message("user", "user: Where is it?"),), (Message("assistant", "At the door."),))
