"""Pydantic AI: formats 1 to 6, outputs that are no tools, deferrals that are no errors, histories of earlier runs (dialects reference, section 7)."""

import json
from typing import Any

import pytest
from builders import T0, a_span
from recordings import runs_of

from collectors.dialects import read
from pipeline.model.run import Ended
from pipeline.model.span import Event, Span
from pipeline.model.step import Message, StepKind, ToolCall
from pipeline.model.time import SECOND

OUTPUTS = json.dumps({"function_tools": [{"name": "lookup"}], "output_tools": [{"name": "final_result"}]})
OLD_OUTPUTS = json.dumps({"function_tools": [], "result_tools": [{"name": "final_result"}]})


def a_pydantic_span(name: str, number: int = 1, parent: int = 0, **fields: Any) -> Span:
    times = {"start_ns": T0 + number * SECOND, "end_ns": T0 + (20 - number) * SECOND, "scope_name": "pydantic-ai"}
    return a_span(f"{number:016x}", f"{parent:016x}" if parent else "", name=name, **times, **fields)


def text(role: str, said: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": said}]}


def calls(*made: tuple[str, Any]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": f"c-{name}", "name": name, "arguments": given} for name, given in made],
    }


def told(role: str, call_id: str, result: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "tool_call_response", "id": call_id, "result": result}]}


def an_agent(*messages: dict[str, Any], **attributes: Any) -> Span:
    known = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "pydantic_ai.all_messages": json.dumps(messages),
    }
    return a_pydantic_span("invoke_agent support", attributes=known | attributes)


FORMATS = [
    ("invoke_agent support", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}, "execute_tool lookup"),
    ("agent run", {"agent_name": "support", "model_name": "gpt-x", "final_result": "At home."}, "running tool"),
    ("support run", {"agent_name": "support", "all_messages_events": "[]"}, "running tool: lookup"),
]


@pytest.mark.parametrize(("name", "attributes", "tool"), FORMATS)
def test_agents_and_tools_have_other_names_before_format_3(name: str, attributes: dict[str, Any], tool: str) -> None:
    agent = read(a_pydantic_span(name, attributes=attributes))
    assert (agent.kind, agent.agent, agent.dialect) == (StepKind.AGENT, "support", "pydantic_ai")
    older = {"tool_arguments": '{"id": "A-1"}', "tool_response": "at home"}
    newer = {"gen_ai.tool.call.arguments": '{"id": "A-1"}', "gen_ai.tool.call.result": "at home"}
    named = {"gen_ai.tool.name": "lookup", "gen_ai.tool.call.id": "c1"}
    for content in (older, newer):
        assert read(a_pydantic_span(tool, attributes=named | content)).tool == ToolCall(
            "lookup", "c1", {"id": "A-1"}, result="at home"
        )


def test_the_wrapper_of_parallel_calls_is_none_itself() -> None:
    assert read(a_pydantic_span("running 2 tools", attributes={"tools": ["lookup", "refund"]})).kind is StepKind.CHAIN


@pytest.mark.parametrize("role", ["user", "tool"])
def test_results_stand_in_a_users_message_until_format_5(role: str) -> None:
    messages = json.dumps([text("user", "Where?"), told(role, "c1", {"where": "home"})])
    step = read(a_pydantic_span("chat gpt-x", attributes={"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages}))
    assert step.input == (Message("user", "Where?"), Message("tool", '{"where":"home"}', tool_call_id="c1"))


def test_an_agent_without_content_is_still_asked_and_answers_nothing() -> None:
    bare = {"role": "user", "parts": [{"type": "text"}]}
    step = read(an_agent(bare, {"role": "assistant", "parts": [{"type": "text"}]}))
    assert (step.kind, step.agent, step.input, step.output) == (StepKind.AGENT, "support", (), ())


def test_messages_before_the_new_ones_are_history_and_were_said_in_earlier_runs() -> None:
    history = [text("user", "Hello."), calls(("lookup", {})), told("user", "c-lookup", "at home"), text("assistant", "Hi.")]
    own = [
        text("user", "Where is A-1?"),
        calls(("refund", {"id": "A-1"})),
        told("user", "c-refund", "done"),
        text("assistant", "Done."),
    ]
    span = an_agent(*history, *own, **{"pydantic_ai.new_message_index": 4, "final_result": "Done."})
    step = read(span)
    assert [message.text for message in step.input if message.role == "user"] == ["Hello.", "Where is A-1?"]
    assert step.output == (
        Message("assistant", "", (ToolCall("refund", "c-refund", {"id": "A-1"}),)),
        Message("assistant", "Done."),
    )
    (run,) = runs_of([span])
    assert (run.request, run.answer) == ("Where is A-1?", "Done.")
    assert [call.name for call in run.tool_calls] == ["refund"]


@pytest.mark.parametrize("index", [99, -1, "4.5", None, "x", [1]])
def test_an_index_that_points_nowhere_loses_nothing_and_raises_nothing(index: Any) -> None:
    step = read(an_agent(text("user", "Hello."), **{"pydantic_ai.new_message_index": index, "final_result": "Hi."}))
    assert [message.text for message in (*step.input, *step.output)] == ["Hello.", "Hi."]


@pytest.mark.parametrize("parameters", [OUTPUTS, OLD_OUTPUTS])
def test_a_tool_that_carries_the_output_is_the_answer_and_no_call(parameters: str) -> None:
    answer = json.dumps([calls(("final_result", {"quality": "good"}))])
    definitions = json.dumps([{"name": "lookup"}, {"name": "final_result"}])
    step = read(
        a_pydantic_span(
            "chat gpt-x",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.output.messages": answer,
                "gen_ai.tool.definitions": definitions,
                "model_request_parameters": parameters,
            },
        )
    )
    assert step.output == (Message("assistant", '{"quality":"good"}'),)
    assert [tool.name for tool in step.tools] == ["lookup"]


@pytest.mark.parametrize(
    ("name", "said"), [("running output function", None), ("execute_tool final_result", "running output function: final_result")]
)
def test_an_output_function_gives_the_answer_and_is_no_call_of_a_tool(name: str, said: str | None) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "final_result",
        "gen_ai.tool.call.result": "At home.",
    }
    step = read(a_pydantic_span(name, attributes=attributes | ({"logfire.msg": said} if said else {})))
    assert (step.kind, step.tool, step.output) == (StepKind.OTHER, None, (Message("assistant", "At home."),))


def test_a_run_with_an_output_tool_answers_and_asked_for_nothing_that_was_not_executed() -> None:
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([text("user", "Rate it.")]),
        "gen_ai.output.messages": json.dumps([calls(("final_result", {"quality": "good"}))]),
        "model_request_parameters": OUTPUTS,
    }
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "critic", "final_result": '{"quality":"good"}'}
    (run,) = runs_of([a_pydantic_span("invoke_agent critic", 1, attributes=root), a_pydantic_span("chat", 2, 1, attributes=chat)])
    assert (run.tool_calls, run.answer, run.ended) == ((), '{"quality":"good"}', Ended.ANSWER)


@pytest.mark.parametrize("status", [0, 2])
def test_a_call_that_waits_for_approval_did_not_fail(status: int) -> None:
    raised = Event("exception", attributes={"exception.type": "ApprovalRequired", "exception.message": ""})
    attributes = {"gen_ai.tool.name": "refund", "pydantic_ai.tool.deferral.name": "ApprovalRequired"}
    step = read(a_pydantic_span("execute_tool refund", attributes=attributes, events=(raised,), status_code=status))
    assert (step.kind, step.error, step.tool) == (StepKind.TOOL, None, ToolCall("refund"))


def test_a_call_that_is_tried_again_failed_and_the_model_was_told_why() -> None:
    raised = Event("exception", attributes={"exception.type": "pydantic_ai.ToolRetryError", "exception.message": "no such order"})
    attributes = {"gen_ai.tool.name": "lookup", "gen_ai.tool.call.result": "no such order\n\nFix it and try again."}
    step = read(a_pydantic_span("execute_tool lookup", attributes=attributes, events=(raised,), status_code=2))
    assert step.tool == ToolCall("lookup", result="no such order\n\nFix it and try again.", error="ToolRetryError: no such order")


EVENTS = [
    {"event.name": "gen_ai.system.message", "content": "Be kind.", "role": "system"},
    {"event.name": "gen_ai.user.message", "content": "Where is A-1?", "role": "user", "gen_ai.message.index": 0},
    {
        "event.name": "gen_ai.assistant.message",
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": "A-1"}'}}],
    },
    {"event.name": "gen_ai.tool.message", "content": {"where": "home"}, "role": "tool", "id": "c1", "name": "lookup"},
]
CHOICE = {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "At home."}}
CONVERSATION = (
    Message("system", "Be kind."),
    Message("user", "Where is A-1?"),
    Message("assistant", "", (ToolCall("lookup", "c1", {"id": "A-1"}),)),
)


@pytest.mark.parametrize("encode", [json.dumps, lambda value: value])
def test_format_1_has_one_attribute_of_events(encode: Any) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-x", "events": encode([*EVENTS, CHOICE])}
    step = read(a_pydantic_span("chat gpt-x", attributes=attributes))
    assert step.input[:3] == CONVERSATION
    assert [(message.role, message.tool_call_id) for message in step.input[3:]] == [("tool", "c1")]
    assert step.output == (Message("assistant", "At home."),)
    assert step.flags == ()


def test_an_agent_of_format_1_lists_events_too() -> None:
    last = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "At home."}
    attributes = {"agent_name": "support", "all_messages_events": json.dumps([*EVENTS, last]), "final_result": "At home."}
    step = read(a_pydantic_span("agent run", attributes=attributes))
    assert step.input == CONVERSATION[:2]
    assert step.output == (CONVERSATION[2], Message("assistant", "At home."))


@pytest.mark.parametrize("name", ["pydantic_ai.all_messages", "all_messages_events"])
def test_messages_that_were_cut_are_flagged(name: str) -> None:
    step = read(a_pydantic_span("agent run", attributes={"agent_name": "support", name: '[{"role": "user", "par'}))
    assert (step.kind, step.flags, step.input) == (StepKind.AGENT, ("truncated",), ())
