"""OpenInference, span by span."""

import json
from typing import Any

import pytest
from builders import a_span

from collectors.dialects import read
from pipeline.model.span import STATUS_ERROR, Event, Link
from pipeline.model.step import Message, Step, StepKind, ToolCall, Usage

LANGCHAIN = "openinference.instrumentation.langchain"
OPENAI_AGENTS = "openinference.instrumentation.openai_agents"
SMOLAGENTS = "openinference.instrumentation.smolagents"


def step(kind: str, attributes: dict[str, Any] | None = None, **fields: Any) -> Step:
    return read(a_span(attributes={"openinference.span.kind": kind} | (attributes or {}), **fields))


def langchain(kind: str, name: str, parent_id: str = "", **metadata: Any) -> Step:
    attributes = {"metadata": json.dumps(metadata)}
    return step(kind, attributes, name=name, parent_id=parent_id, scope_name=LANGCHAIN)


def test_messages_may_start_at_any_index_and_have_gaps() -> None:
    call = "llm.output_messages.0.message.tool_calls.1.tool_call."
    found = step(
        "LLM",
        {
            "llm.input_messages.10.message.role": "user",
            "llm.input_messages.10.message.content": "second",
            "llm.input_messages.2.message.role": "system",
            "llm.input_messages.2.message.content": "first",
            "llm.input_messages.99999999999999999999.message.content": "nobody counts so far",
            "llm.input_messages.__proto__.message.content": "no index",
            "llm.output_messages.0.message.role": "assistant",
            f"{call}id": "call-1",
            f"{call}function.name": "lookup",
            f"{call}function.arguments": '{"id": 7}',
        },
    )
    assert found.input == (Message("system", "first"), Message("user", "second"))
    assert found.output == (Message("assistant", tool_calls=(ToolCall("lookup", "call-1", {"id": 7}),)),)


def test_arguments_that_a_message_leaves_out_are_empty_unless_attributes_were_dropped() -> None:
    name = {"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "transfer"}
    (message,) = step("LLM", name).output
    assert message.tool_calls[0].arguments == {}
    dropped = step("LLM", name, dropped=3)
    assert dropped.output[0].tool_calls[0].arguments is None
    assert "dropped" in dropped.flags


def test_a_role_without_a_text_is_no_message() -> None:
    assert step("LLM", {"llm.input_messages.0.message.role": "user"}).flags == ("no_content",)


def test_texts_in_parts_are_one_text_and_reasoning_is_none_of_it() -> None:
    part = "llm.output_messages.0.message.contents."
    found = step(
        "LLM",
        {
            "llm.output_messages.0.message.role": "assistant",
            f"{part}0.message_content.type": "reasoning",
            f"{part}0.message_content.text": "hm",
            f"{part}1.message_content.type": "text",
            f"{part}1.message_content.text": "Yes.",
            f"{part}2.message_content.type": "image",
        },
    )
    assert found.output == (Message("assistant", "Yes.\n[image]"),)


def test_tokens_of_a_model_call() -> None:
    counts = {
        "llm.token_count.prompt": 120,
        "llm.token_count.completion": "30",
        "llm.token_count.prompt_details.cache_read": 20.0,
        "llm.token_count.completion_details.reasoning": 5,
    }
    assert step("LLM", counts).usage == Usage(120, 30, 20, 5)


def test_redacted_values_are_no_content() -> None:
    hidden = {"input.value": "__REDACTED__", "output.value": "__REDACTED__"}
    assert step("LLM", hidden).flags == ("no_content",)
    tool = step("TOOL", hidden | {"tool.name": "lookup"})
    assert (tool.tool, tool.flags) == (ToolCall("lookup"), ("no_content",))


@pytest.mark.parametrize(
    ("given", "arguments", "raw"),
    [
        ('{"order_id": "A-1"}', {"order_id": "A-1"}, ""),
        ('"{\\"order_id\\": \\"A-1\\"}"', {"order_id": "A-1"}, ""),
        ('"A-1"', None, "A-1"),
        ("A-1", None, "A-1"),
        ("[scenario:1] do it", None, "[scenario:1] do it"),
        ("{'order_id': 'A-1'}", {"order_id": "A-1"}, ""),
        ('{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"order_id": "A-1"}}', {"order_id": "A-1"}, ""),
        ('{"args": ["A-1"], "kwargs": {}}', {"order_id": "A-1"}, ""),
        ("None", None, ""),
        ("", None, ""),
        ("N/A", None, ""),
        ("<not specified>", None, ""),
        ("__REDACTED__", None, ""),
        ("{}", None, "{}"),
        ('{"order_id": "A-', None, '{"order_id": "A-'),
    ],
)
def test_what_counts_as_arguments(given: str, arguments: Any, raw: str) -> None:
    schema = '{"properties": {"order_id": {"type": "string"}}, "required": ["order_id"], "type": "object"}'
    found = step("TOOL", {"tool.name": "lookup", "input.value": given, "tool.parameters": schema})
    assert found.tool is not None
    assert (found.tool.arguments, found.tool.raw_arguments) == (arguments, raw)


def test_an_empty_object_is_the_arguments_of_a_tool_that_takes_none() -> None:
    found = step("TOOL", {"tool.name": "now", "input.value": "{}", "tool.parameters": '{"type": "object", "properties": {}}'})
    assert found.tool == ToolCall("now", arguments={})


def test_a_schema_in_the_place_of_arguments_is_none() -> None:
    schema = '{"properties": {"order_id": {"type": "string"}}, "required": ["order_id"], "type": "object"}'
    of_smolagents = '{"order_id": {"type": "string", "description": "Which."}}'
    for parameters in (schema, of_smolagents):
        found = step("TOOL", {"tool.name": "lookup", "tool.parameters": parameters})
        assert found.tool == ToolCall("lookup")


def test_json_that_was_cut_is_flagged_and_kept() -> None:
    found = step("TOOL", {"tool.name": "lookup", "input.value": '{"order_id": "A-', "input.mime_type": "application/json"})
    assert found.flags == ("truncated",)
    assert found.tool == ToolCall("lookup", raw_arguments='{"order_id": "A-')


def test_a_serialised_tool_message_is_the_text_that_was_told_with_its_call_id() -> None:
    data = {"type": "tool", "data": {"content": '{"amount": 1}', "tool_call_id": "call-1", "status": "success"}}
    found = step("TOOL", {"tool.name": "lookup", "output.value": json.dumps(data)})
    assert found.tool == ToolCall("lookup", "call-1", result='{"amount": 1}')


@pytest.mark.parametrize(
    "output",
    [
        {"lc": 1, "kwargs": {"content": "no such order", "tool_call_id": "call-1", "status": "error"}},
        {"content": [{"type": "text", "text": "no such order"}], "isError": True},
    ],
)
def test_a_failure_may_be_told_by_the_result_alone(output: dict[str, Any]) -> None:
    found = step("TOOL", {"tool.name": "lookup", "output.value": json.dumps(output)})
    assert found.tool is not None
    assert (found.tool.result, found.tool.error, found.error) == ("no such order",) * 3


def test_an_exception_on_a_span_that_is_fine_is_how_control_goes_elsewhere() -> None:
    event = Event("exception", attributes={"exception.type": "langgraph.errors.ParentCommand", "exception.message": "Command(…)"})
    assert step("AGENT", name="support-agent", status_code=1, events=(event,)).error is None


def test_an_error_is_its_exception_else_its_status_without_the_stack() -> None:
    event = Event("exception", attributes={"exception.type": "x.y.KeyError", "exception.message": "A-404"})
    assert step("TOOL", status_code=STATUS_ERROR, status_message="long", events=(event,)).error == "KeyError: A-404"
    message = "ValueError('A-404')Traceback (most recent call last):\n\n File …"
    assert step("TOOL", status_code=STATUS_ERROR, status_message=message).error == "ValueError('A-404')"
    assert step("TOOL", status_code=STATUS_ERROR).error == "error"


def test_a_nameless_agent_span_without_content_only_wraps() -> None:
    wrapper = step("AGENT", name="Agent workflow", scope_name=OPENAI_AGENTS)
    assert (wrapper.kind, wrapper.agent) == (StepKind.ORCHESTRATION, "")
    agent = step("AGENT", {"graph.node.id": "coordinator"}, name="coordinator", scope_name=OPENAI_AGENTS)
    assert (agent.kind, agent.agent) == (StepKind.AGENT, "coordinator")


def test_an_agent_that_nobody_named_is_its_services() -> None:
    scope = "openinference.instrumentation.claude_agent_sdk"
    service = {"service.name": "helpdesk"}
    found = step("AGENT", {"input.value": "hi"}, name="ClaudeAgentSDK.query", scope_name=scope, resource=service)
    assert (found.kind, found.agent) == (StepKind.AGENT, "helpdesk")


def test_names_are_in_the_span_name_where_frameworks_put_them() -> None:
    assert step("AGENT", name="support_agent.run", scope_name=SMOLAGENTS).agent == "support_agent"
    assert step("AGENT", {"agent.name": "desk"}, name="whatever").agent == "desk"


def test_a_langgraph_agent_is_who_its_metadata_says_and_not_whose_name_says_agent() -> None:
    assert langchain("CHAIN", "refunds-desk", lc_agent_name="refunds-desk").kind is StepKind.AGENT
    assert langchain("CHAIN", "model", "1", lc_agent_name="refunds-desk").kind is StepKind.CHAIN
    assert langchain("AGENT", "agent", "1", ls_integration="langgraph", langgraph_node="agent").kind is StepKind.CHAIN
    assert (
        langchain("CHAIN", "refunds-desk", "1", ls_integration="langgraph", langgraph_node="refunds-desk").kind is StepKind.CHAIN
    )
    graph = langchain("CHAIN", "LangGraph", ls_integration="langgraph")
    assert (graph.kind, graph.agent) == (StepKind.ORCHESTRATION, "")


def test_hand_overs_are_no_tool_calls() -> None:
    of_sdk = step("TOOL", {"input.value": "a", "output.value": "b"}, name="handoff to Refunds Desk", scope_name=OPENAI_AGENTS)
    command: dict[str, Any] = {"graph": "__parent__", "update": {"messages": []}, "goto": "refunds-desk"}
    of_langgraph = step("TOOL", {"tool.name": "transfer", "output.value": json.dumps(command)}, scope_name=LANGCHAIN)
    assert (of_sdk.kind, of_sdk.tool, of_sdk.flags) == (StepKind.OTHER, ToolCall("transfer_to_refunds_desk"), ("handoff",))
    assert (of_langgraph.kind, of_langgraph.tool, of_langgraph.flags) == (StepKind.OTHER, ToolCall("transfer"), ("handoff",))


def test_a_command_that_only_updates_the_state_is_a_tool_call_with_the_message_as_result() -> None:
    message = {"type": "tool", "data": {"content": "noted", "tool_call_id": "call-1"}}
    command: dict[str, Any] = {"graph": None, "update": {"messages": [message]}, "goto": []}
    found = step("TOOL", {"tool.name": "note", "output.value": json.dumps(command)}, scope_name=LANGCHAIN)
    assert (found.kind, found.tool) == (StepKind.TOOL, ToolCall("note", "call-1", result="noted"))


def test_final_answer_carries_the_answer_and_is_no_tool_call() -> None:
    value = {"tool.name": "final_answer", "input.value": '{"args": [], "kwargs": {"answer": "42"}}', "output.value": "42"}
    found = step("TOOL", value, name="FinalAnswerTool", scope_name=SMOLAGENTS)
    assert (found.kind, found.output) == (StepKind.OTHER, (Message("assistant", "42"),))


def test_an_agent_that_gave_up_says_that_there_is_no_answer() -> None:
    found = step("AGENT", {"output.value": "None"}, name="a.run", scope_name=SMOLAGENTS)
    assert found.output == (Message("assistant"),)


def test_only_a_roots_chain_is_read_for_what_it_was_given_and_gave() -> None:
    state = {"input.value": '{"question": "why?"}', "output.value": '{"answer": "so"}', "input.mime_type": "application/json"}
    root = step("CHAIN", state)
    assert (root.input, root.output) == ((Message("user", "why?"),), (Message("assistant", "so"),))
    below = step("CHAIN", state, parent_id="00000000000000b2")
    assert (below.input, below.output) == ((), ())


def test_a_state_that_holds_no_message_is_an_opaque_output_and_no_input() -> None:
    found = step("AGENT", {"input.value": '{"budget": 3}', "output.value": '{"score": 0.5}'}, name="judge")
    assert found.input == ()
    assert found.output == (Message("assistant", '{"score":0.5}'),)
    assert found.flags == ("opaque",)


def test_documents_that_were_found_are_what_a_retrieval_gave() -> None:
    found = step("RETRIEVER", {"input.value": "refunds?", "retrieval.documents.0.document.content": "30 days."})
    assert (found.kind, found.output) == (StepKind.RETRIEVAL, (Message("tool", "30 days."),))


def test_graders_and_feedback_carriers_are_no_part_of_any_run() -> None:
    assert step("EVALUATOR").kind is StepKind.IGNORED
    feedback = {"annotations.0.annotation.name": "thumbs"}
    assert step("CHAIN", feedback, links=(Link("ab" * 16, "00000000000000c3"),)).kind is StepKind.IGNORED
    assert step("CHAIN", feedback).kind is StepKind.CHAIN


def test_an_id_that_agno_makes_up_for_each_run_names_nobody() -> None:
    agno = "openinference.instrumentation.agno"
    found = step("AGENT", {"graph.node.id": "3f9a", "input.value": "hi"}, name="Agent.run", scope_name=agno)
    assert found.agent == "Agent"
    named = {"graph.node.id": "3f9a", "graph.node.name": "support", "input.value": "hi"}
    assert step("AGENT", named, name="support.run", scope_name=agno).agent == "support"


def test_autogens_replies_and_results_are_read_where_its_instrumentation_leaves_them() -> None:
    call = {"id": "call-1", "arguments": '{"id": 7}', "name": "lookup"}
    told = {"name": "lookup", "content": "a lamp", "call_id": "call-1", "is_error": False}
    reply = {"finish_reason": "function_calls", "content": [call], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}
    found = step(
        "LLM",
        {
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "What is order 7?",
            "llm.input_messages.1.message.role": "function",
            "llm.input_messages.1.function.0": json.dumps(told),
            "output.value": json.dumps(reply),
        },
        scope_name="openinference.instrumentation.autogen_agentchat",
    )
    assert found.input[1:] == (Message("tool", "a lamp", tool_call_id="call-1", name="lookup"),)
    assert found.output == (Message("assistant", tool_calls=(ToolCall("lookup", "call-1", {"id": 7}),)),)
    assert found.usage == Usage(input=12, output=3)


def test_a_log_record_without_its_span_is_what_langchain_serialised_in_it() -> None:
    reply = {
        "generations": [[{"text": "Let me see.", "message": {"tool_calls": [{"name": "lookup", "args": {"id": 7}, "id": "c1"}]}}]]
    }
    result = {"name": "lookup", "type": "tool", "content": "a lamp", "tool_call_id": "c1", "status": "success"}

    def logged(asked: str, said: Any) -> Step:
        body = {
            "input": {"messages": [{"role": "user", "content": asked}]},
            "output": {"messages": [{"content": json.dumps(said)}]},
        }
        return read(a_span(name=LANGCHAIN, scope_name=LANGCHAIN, events=(Event(LANGCHAIN, attributes={"body": body}),)))

    model, tool, chain = logged("What is order 7?", reply), logged("{'id': 7}", result), logged("{}", {"messages": []})
    assert (model.kind, tool.kind, chain.kind) == (StepKind.MODEL, StepKind.TOOL, StepKind.CHAIN)
    assert model.output == (Message("assistant", "Let me see.", tool_calls=(ToolCall("lookup", "c1", {"id": 7}),)),)
    assert tool.tool == ToolCall("lookup", "c1", {"id": 7}, result="a lamp")


def test_llamaindex_runs_agents_in_chains_and_wraps_what_tools_return() -> None:
    llama = "openinference.instrumentation.llama_index"
    run = step("CHAIN", {"output.value": "StopEvent(result=AgentOutput(…"}, name="FunctionAgent.run", scope_name=llama)
    assert run.kind is StepKind.AGENT
    assert "opaque" in run.flags
    assert step("LLM", {"output.value": "{}"}, name="OpenAI._prepare_chat_with_tools", scope_name=llama).kind is StepKind.CHAIN
    result = {"blocks": [{"text": "a lamp"}], "tool_name": "lookup", "raw_output": {"item": "lamp"}, "is_error": False}
    found = step(
        "TOOL",
        {"tool.name": "lookup", "input.value": '{"kwargs": {"id": 7}}', "output.value": json.dumps(result)},
        scope_name=llama,
    )
    assert found.tool == ToolCall("lookup", arguments={"id": 7}, result="a lamp")


def test_a_guardrail_and_an_embedding_are_other_things() -> None:
    assert (step("GUARDRAIL").kind, step("GUARDRAIL").flags) == (StepKind.OTHER, ("guardrail",))
    assert (step("EMBEDDING").kind, step("EMBEDDING").flags) == (StepKind.OTHER, ())
