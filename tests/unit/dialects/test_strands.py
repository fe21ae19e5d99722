"""AWS Strands in its three modes, and what AWS's distribution of OpenTelemetry makes of it."""

import json
from typing import Any

import pytest
from builders import a_log_record, a_span
from recordings import CORPORA, arrived, runs_of

from collectors.dialects import read
from collectors.dialects.log_records import is_kept
from pipeline.model.log_record import beside
from pipeline.model.span import STATUS_ERROR, Event
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition, Usage
from pipeline.scorers.calls import NOT_EXECUTED

SCOPE = "strands.telemetry.tracer"
USE = [{"toolUse": {"toolUseId": "c1", "name": "lookup", "input": {"id": 7}}}]
RESULT = [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "door"}]}}]
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.call.id": "c1"}
DETAILS = "gen_ai.client.inference.operation.details"


def step(operation: str, attributes: dict[str, Any] | None = None, **fields: Any) -> Step:
    named = {"gen_ai.operation.name": operation, "gen_ai.system": "strands-agents"}
    return read(a_span(attributes=named | (attributes or {}), scope_name=SCOPE, **fields))


def test_a_model_call_has_bedrocks_blocks_on_events() -> None:
    events = (
        Event("gen_ai.system.message", attributes={"content": '[{"text": "Be kind."}]'}),
        Event("gen_ai.user.message", attributes={"content": '[{"text": "Where is it?"}]'}),
        Event("gen_ai.assistant.message", attributes={"content": json.dumps(USE)}),
        Event("gen_ai.tool.message", attributes={"content": json.dumps(RESULT)}),
        Event("gen_ai.choice", attributes={"finish_reason": "end_turn", "message": '[{"text": "At the door."}]'}),
    )
    tokens = {"gen_ai.usage.prompt_tokens": 120, "gen_ai.usage.input_tokens": 120, "gen_ai.usage.cache_read_input_tokens": 20}
    found = step("chat", {"gen_ai.request.model": "m"} | tokens, events=events)
    assert (found.dialect, found.provider, found.usage) == ("strands", "", Usage(120, None, 20))
    assert found.input == (
        Message("system", "Be kind."),
        Message("user", "Where is it?"),
        Message("assistant", tool_calls=(ToolCall("lookup", "c1", {"id": 7}),)),
        Message("tool", "door", tool_call_id="c1"),
    )
    assert found.output == (Message("assistant", "At the door."),)


def messages(key: str, role: str, part: dict[str, Any]) -> Event:
    return Event(DETAILS, attributes={key: json.dumps([{"role": role, "parts": [part]}])})


LATEST = (
    messages("gen_ai.input.messages", "tool", {"type": "tool_call", "name": "lookup", "id": "c1", "arguments": {"id": 7}}),
    messages("gen_ai.output.messages", "tool", {"type": "tool_call_response", "id": "c1", "response": [{"text": "door"}]}),
)


@pytest.mark.parametrize(
    ("attributes", "events"),
    [
        (
            {},
            (
                Event("gen_ai.tool.message", attributes={"role": "tool", "content": '{"id": 7}', "id": "c1"}),
                Event("gen_ai.choice", attributes={"message": '[{"text": "door"}]', "id": "c1"}),
            ),
        ),
        ({}, LATEST),
        ({"gen_ai.tool.call.arguments": '{"id": 7}', "gen_ai.tool.call.result": '[{"text": "door"}]'}, ()),
        ({"gen_ai.tool.call.arguments": {"id": 7}, "gen_ai.tool.call.result": [{"text": "door"}]}, ()),
    ],
    ids=["events", "messages on events, their only place", "attributes", "structured attributes"],
)
def test_an_execution_in_every_mode(attributes: dict[str, Any], events: tuple[Event, ...]) -> None:
    found = step("execute_tool", TOOL | attributes, events=events)
    assert (found.tool, found.flags) == (ToolCall("lookup", "c1", {"id": 7}, result="door"), ())


def test_a_result_may_have_blocks_of_json_or_be_none_of_strandss() -> None:
    for result, text in (
        ('[{"text": "a"}, {"json": {"b": 1}}]', 'a\n{"b":1}'),
        ('[{"id": 7}]', '[{"id": 7}]'),
        ("[{cut", "[{cut"),
    ):
        found = step("execute_tool", TOOL | {"gen_ai.tool.call.result": result})
        assert found.tool is not None
        assert found.tool.result == text


def test_redacted_content_is_none() -> None:
    events = (
        Event("gen_ai.tool.message", attributes={"content": "[REDACTED]"}),
        Event("gen_ai.choice", attributes={"message": "[REDACTED]"}),
    )
    assert step("execute_tool", TOOL, events=events).flags == ("no_content",)
    assert step("chat", events=events).flags == ("no_content",)


def test_the_line_break_after_an_agents_result_is_not_the_agents() -> None:
    event = Event("gen_ai.choice", attributes={"message": "At the door.\n", "finish_reason": "end_turn"})
    found = step("invoke_agent", {"gen_ai.agent.name": "desk", "gen_ai.agent.tools": '["lookup", "refund"]'}, events=(event,))
    assert (found.kind, found.agent, found.output) == (StepKind.AGENT, "desk", (Message("assistant", "At the door."),))
    assert found.tools == (ToolDefinition("lookup"), ToolDefinition("refund"))


def test_definitions_are_better_than_names() -> None:
    schema = {"type": "object", "properties": {}}
    attributes = {"gen_ai.agent.name": "desk", "gen_ai.agent.tools": '["lookup"]'}
    defined = {"gen_ai.tool.definitions": json.dumps([{"name": "lookup", "parameters": schema}])}
    assert step("invoke_agent", attributes | defined).tools == (ToolDefinition("lookup", schema),)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("execute_event_loop_cycle", StepKind.CHAIN),
        ("invoke_swarm", StepKind.ORCHESTRATION),
        ("invoke_graph", StepKind.ORCHESTRATION),
    ],
)
def test_wrappers(operation: str, kind: StepKind) -> None:
    assert step(operation).kind is kind


def test_the_hand_over_of_a_swarm_is_no_execution() -> None:
    found = step("execute_tool", TOOL | {"gen_ai.tool.name": "handoff_to_agent"})
    assert (found.kind, found.tool, found.flags) == (StepKind.OTHER, ToolCall("handoff_to_agent", "c1"), ("handoff",))


def test_a_tool_that_there_is_not_was_not_executed() -> None:
    events = (Event("gen_ai.choice", attributes={"message": '[{"text": "Unknown tool: lookup"}]'}),)
    failed = {"status_code": STATUS_ERROR, "status_message": "Unknown tool: lookup"}
    found = step("execute_tool", TOOL | {"gen_ai.tool.status": "error"}, events=events, **failed)
    assert found.tool is not None
    assert (found.tool.error, found.tool.result) == (NOT_EXECUTED, "Unknown tool: lookup")


@pytest.mark.parametrize(
    "mark", [{"gen_ai.system": "strands-agents"}, {"gen_ai.provider.name": "strands-agents"}, {"event_loop.cycle_id": "x"}]
)
def test_spans_without_their_scope_are_known_by_what_they_say(mark: dict[str, Any]) -> None:
    assert read(a_span(attributes=mark | {"gen_ai.operation.name": "execute_event_loop_cycle"})).dialect == "strands"


# AWS's distribution takes the events off the spans and logs them, one body a span.


def logged(body: dict[str, Any]) -> Any:
    record = a_log_record(event_name=SCOPE, scope_name=SCOPE, body=body)
    assert is_kept(record)
    return record


def test_a_model_calls_events_come_back_from_one_body() -> None:
    body = {
        "input": {
            "messages": [
                {"role": "system", "content": {"content": '[{"text": "Be kind."}]'}},
                {"role": "user", "content": {"content": '[{"text": "Where is it?"}]'}},
                {"role": "assistant", "content": {"content": json.dumps(USE)}},
                {"role": "tool", "content": {"content": json.dumps(RESULT)}},
            ]
        },
        "output": {
            "messages": [{"role": "assistant", "content": {"message": '[{"text": "At the door."}]', "finish_reason": "end_turn"}}]
        },
    }
    span = a_span(attributes={"gen_ai.operation.name": "chat"}, scope_name=SCOPE)
    found = read(beside(span, [logged(body)]))
    assert [message.role for message in found.input] == ["system", "user", "assistant", "tool"]
    assert found.input[2].tool_calls == (ToolCall("lookup", "c1", {"id": 7}),)
    assert found.input[3] == Message("tool", "door", tool_call_id="c1")
    assert found.output == (Message("assistant", "At the door."),)
    assert found.flags == ()


def test_an_executions_events_come_back_from_one_body() -> None:
    body = {
        "input": {"messages": [{"role": "tool", "content": {"content": '{"id": 7}', "role": "tool", "id": "c1"}}]},
        "output": {"messages": [{"role": "assistant", "content": {"message": '[{"text": "door"}]', "id": "c1"}}]},
    }
    found = read(beside(a_span(attributes=TOOL, scope_name=SCOPE), [logged(body)]))
    assert found.tool == ToolCall("lookup", "c1", {"id": 7}, result="door")


@pytest.mark.parametrize(
    ("kind", "wanted"), [("LLM", StepKind.MODEL), ("TOOL", StepKind.TOOL), ("AGENT", StepKind.AGENT), ("x", StepKind.OTHER)]
)
def test_what_only_agentcore_tells_is_told(kind: str, wanted: StepKind) -> None:
    span = a_span(name="desk", attributes={"aws.genai.span_kind": kind, "session.id": "s-1"})
    body = {"input": {"messages": [{"role": "user", "content": "hi"}]}, "output": {"messages": []}}
    found = read(beside(span, [logged(body)]))
    assert (found.kind, found.dialect, found.conversation_id) == (wanted, "agentcore", "s-1")
    if wanted is StepKind.MODEL:
        assert found.input == (Message("user", "hi"),)


def test_agentcore_leaves_spans_of_known_instrumentations_to_their_dialects() -> None:
    marks = {"aws.genai.span_kind": "LLM", "gen_ai.operation.name": "chat"}
    assert read(a_span(attributes=marks)).dialect == "genai"
    assert read(a_span(attributes=marks | {"openinference.span.kind": "LLM"})).dialect == "openinference"
    assert read(a_span(attributes=marks, scope_name=SCOPE)).dialect == "strands"


@pytest.mark.parametrize("mode", ["refund_ok", "refund_ok_latest", "refund_ok_attrs", "refund_ok_stream"])
def test_every_mode_gives_the_same_run(mode: str) -> None:
    (run,) = runs_of(arrived(CORPORA / "live" / "strands" / f"{mode}.jsonl"))
    assert run.dialects == ("strands",)
    assert [(call.name, call.arguments, call.result) for call in run.tool_calls] == [
        ("lookup_order", {"order_id": "A-1001"}, '{"order_id": "A-1001", "item": "lamp", "amount": 42.5}'),
        ("issue_refund", {"order_id": "A-1001", "amount": 42.5}, '{"refund_id": "R-1", "order_id": "A-1001", "amount": 42.5}'),
    ]
    assert run.answer == "I refunded 42.50 USD for order A-1001."
    assert (run.model_calls, run.usage.input, run.usage.output) == (3, 360, 90), "the agent's totals repeat those of its calls"


def test_totals_that_grow_over_the_turns_of_a_session_count_for_nothing() -> None:
    first, second = runs_of(arrived(CORPORA / "live" / "strands" / "session.jsonl"))
    assert (first.usage.input, second.usage.input) == (360, 120), "the second agent span says 480"


def test_the_last_agent_of_a_swarm_answers() -> None:
    (run,) = runs_of(arrived(CORPORA / "live" / "strands" / "handoff.jsonl"))
    assert (run.place.cohort.agent, run.agents, run.answer) == (
        "support-agent",
        ("refunds-desk",),
        "Refunded 42.50 USD for A-1001.",
    )
    assert [call.name for call in run.tool_calls] == ["issue_refund"]
    assert "handoff" in run.flags
