"""OpenAI Agents SDK by itself: its own export, made spans by replay, and what Logfire writes of it (dialects reference, section 9)."""

import json
from pathlib import Path
from typing import Any

import pytest
from builders import a_span
from recordings import runs_of

from collectors.dialects import read
from collectors.replay.arrived import arrived
from collectors.replay.shapes import shape_of
from pipeline.errors import ConfigurationError
from pipeline.model.run import Ended, Run
from pipeline.model.span import Span
from pipeline.model.step import Message, StepKind, ToolCall, Usage

TRACE = "trace_" + "0a" * 16


def an_item(number: int, parent: int | None, data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A span as the exporter posts it. The first digit of its number is how deep it is: the deeper, the shorter."""
    return {
        "object": "trace.span",
        "id": f"span_{number:024x}",
        "trace_id": TRACE,
        "parent_id": None if parent is None else f"span_{parent:024x}",
        "started_at": f"2026-09-01T10:00:{number:02}.000001+00:00",
        "ended_at": f"2026-09-01T10:01:{59 - number:02}.000002+00:00",
        "span_data": data,
        "error": None,
        **fields,
    }


HEAD = {"object": "trace", "id": TRACE, "workflow_name": "Support", "group_id": "thread-1", "metadata": {"customer": "C-7"}}
ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Refund A-1."}]
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"id": "A-1"}'}}],
}


def a_run() -> list[dict[str, Any]]:
    agent = {"type": "agent", "name": "support", "handoffs": ["refunds"], "tools": ["refund"], "output_type": "str"}
    generation = {"type": "generation", "model": "gpt-x", "input": ASKED, "output": [CALLED]}
    return [
        HEAD,
        an_item(
            3,
            2,
            generation | {"usage": {"input_tokens": 120, "output_tokens": 30, "input_tokens_details": {"cached_tokens": 20}}},
        ),
        an_item(4, 2, {"type": "function", "name": "refund", "input": '{"id": "A-1"}', "output": "done", "mcp_data": None}),
        an_item(5, 2, {"type": "handoff", "from_agent": "support", "to_agent": "Refunds Desk"}),
        an_item(6, 2, {"type": "guardrail", "name": "polite", "triggered": False}),
        an_item(2, 1, agent),
        an_item(8, 7, {"type": "response", "response_id": "resp_1", "usage": {"input_tokens": 50, "output_tokens": 5}}),
        an_item(7, 1, {"type": "agent", "name": "refunds", "handoffs": [], "tools": [], "output_type": "str"}),
        an_item(1, None, {"type": "custom", "name": "task", "data": {"sdk_span_type": "task", "name": "Support"}}),
    ]


def replayed(folder: Path, document: Any) -> list[Span]:
    path = folder / "export.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    spans, _ = arrived([path])
    return spans


def one_run(folder: Path, document: Any) -> Run:
    (run,) = runs_of(replayed(folder, document))
    return run


@pytest.mark.parametrize("form", ["as posted", "a list", "lines"])
def test_an_export_is_one_run_with_its_calls_tokens_and_conversation(form: str, tmp_path: Path) -> None:
    items = a_run()
    document = {"as posted": {"data": items}, "a list": items, "lines": "\n".join(map(json.dumps, items))}[form]
    run = one_run(tmp_path, document)
    assert (run.trace_id, run.conversation_id) == ("0a" * 16, "thread-1")
    assert (run.place.cohort.agent, run.agents) == ("support", ("refunds",))
    assert (run.system, run.request) == ("Be kind.", "Refund A-1.")
    assert run.tool_calls == (ToolCall("refund", "c1", {"id": "A-1"}, result="done"),)
    assert (run.model_calls, run.usage) == (2, Usage(170, 35, 20))
    assert run.dialects == ("openai_agents",)
    assert set(run.flags) == {"handoff", "guardrail", "no_content"}


def test_a_trace_becomes_the_root_that_its_spans_hang_below(tmp_path: Path) -> None:
    spans = {span.name: span for span in replayed(tmp_path, {"data": a_run()})}
    root, task = spans["Support"], spans["task"]
    assert (root.parent_id, task.parent_id) == ("", root.span_id)
    assert (root.start_ns, root.end_ns) == (task.start_ns, task.end_ns)
    assert root.start_ns == 1_788_256_801_000_001_000
    assert read(root).kind is StepKind.ORCHESTRATION
    assert {name: read(span).kind for name, span in spans.items() if span is not root} == {
        "generation": StepKind.MODEL,
        "refund": StepKind.TOOL,
        "handoff": StepKind.OTHER,
        "polite": StepKind.OTHER,
        "support": StepKind.AGENT,
        "response": StepKind.MODEL,
        "refunds": StepKind.AGENT,
        "task": StepKind.CHAIN,
    }


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            {"message": "Error running tool", "data": {"tool_name": "refund", "error": "no such order"}},
            "Error running tool: no such order",
        ),
        ({"message": "Max turns exceeded", "data": {"max_turns": 3}}, "Max turns exceeded"),
        ({"message": "It broke", "data": None}, "It broke"),
    ],
)
def test_an_error_says_what_was_raised(error: dict[str, Any], said: str, tmp_path: Path) -> None:
    function = {"type": "function", "name": "refund", "input": "{}", "output": None}
    (span,) = replayed(tmp_path, [an_item(1, None, function, error=error)])
    step = read(span)
    assert step.tool is not None
    assert (step.error, step.tool.error, step.tool.result) == (said, said, None)


def test_an_agent_that_never_answers_ends_in_silence(tmp_path: Path) -> None:
    assert one_run(tmp_path, {"data": a_run()}).ended is Ended.SILENCE


@pytest.mark.parametrize(
    "broken",
    [{"object": "trace.span"}, an_item(1, None, {"type": "agent"}, started_at="yesterday"), an_item(1, None, {}, error="no")],
)
def test_an_export_that_is_broken_is_a_sentence(broken: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"export\.json, line 1 looks like OpenAI Agents export, but cannot be read as such"
    ):
        replayed(tmp_path, {"data": [broken]})


@pytest.mark.parametrize(
    "other", [{"data": []}, {"data": [{"object": "chat.completion"}]}, {"object": "list"}, {"data": "x"}, [], 1]
)
def test_other_documents_are_none(other: Any) -> None:
    shape = shape_of(other)
    assert shape is None or shape.name != "OpenAI Agents export"


# The same spans as Logfire writes them: the SDK's fields are attributes, and the type stands in the span's name.


def by_logfire(name: str, /, **attributes: Any) -> Span:
    return a_span(name=name, scope_name="logfire.openai_agents", attributes={"gen_ai.system": "openai"} | attributes)


@pytest.mark.parametrize(
    ("name", "attributes", "kind"),
    [
        ("OpenAI Agents trace: {name}", {"name": "Support", "group_id": "thread-1"}, StepKind.ORCHESTRATION),
        ("Agent run: {name!r}", {"name": "support", "tools": '["refund"]'}, StepKind.AGENT),
        ("Function: {name}", {"name": "refund", "input": '{"id": "A-1"}', "output": "done"}, StepKind.TOOL),
        ("Turn {turn} for agent support", {"type": "custom", "name": "turn", "sdk_span_type": "turn"}, StepKind.CHAIN),
        ("Handoff: {from_agent} -> {to_agent}", {"from_agent": "support", "to_agent": "refunds"}, StepKind.OTHER),
        ("Guardrail {name!r} {triggered=}", {"name": "polite", "triggered": False}, StepKind.OTHER),
        ("Responses API with {gen_ai.request.model!r}", {}, StepKind.MODEL),
        ("Chat completion with {gen_ai.request.model!r}", {}, StepKind.MODEL),
        ("Custom span: {name}", {"name": "mine"}, StepKind.CHAIN),
        ("x", {"type": "speech"}, StepKind.OTHER),
    ],
)
def test_logfires_names_tell_the_type(name: str, attributes: dict[str, Any], kind: StepKind) -> None:
    step = read(by_logfire(name, **attributes))
    assert (step.kind, step.dialect) == (kind, "openai_agents")


def test_logfire_has_the_response_whole() -> None:
    response = {
        "object": "response",
        "model": "gpt-x-2026",
        "instructions": "Be kind.",
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
            {"type": "function_call", "call_id": "c1", "name": "refund", "arguments": '{"id":"A-1"}'},
        ],
        "tools": [{"type": "function", "name": "refund", "parameters": {"type": "object"}}],
        "usage": {"input_tokens": 120, "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 5}},
    }
    asked = [{"role": "user", "content": "Refund A-1."}, {"type": "function_call_output", "call_id": "c0", "output": "at home"}]
    for encode in (json.dumps, lambda value: value):
        step = read(by_logfire("Responses API with x", raw_input=encode(asked), response=encode(response)))
        assert step.input == (
            Message("system", "Be kind."),
            Message("user", "Refund A-1."),
            Message("tool", "at home", tool_call_id="c0"),
        )
        assert [message.text for message in step.output] == ["One moment.", ""]
        assert step.output[1].tool_calls == (ToolCall("refund", "c1", {"id": "A-1"}),)
        assert (step.model, step.usage) == ("gpt-x-2026", Usage(120, 30, None, 5))
        assert [tool.name for tool in step.tools] == ["refund"]


def test_a_response_that_was_cut_is_flagged() -> None:
    step = read(by_logfire("Responses API with x", raw_input='[{"role": "user", "con'))
    assert (step.input, step.flags) == ((), ("truncated",))
