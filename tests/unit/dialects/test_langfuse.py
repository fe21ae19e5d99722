"""Langfuse's SDK: the observation's type, its input and output, counts as JSON, failures as a level (dialects reference, section 5)."""

import json
from typing import Any

import pytest
from builders import a_span
from recordings import runs_of

from collectors.dialects import read
from pipeline.model.run import Ended
from pipeline.model.span import Span
from pipeline.model.step import Message, StepKind, ToolCall, Usage

ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where is A-1?"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": "A-1"}'}}


def an_observation(kind: str, number: int = 1, parent: int = 0, **fields: Any) -> Span:
    given = {f"langfuse.observation.{name.replace('__', '.')}": value for name, value in fields.pop("said", {}).items()}
    attributes = {"langfuse.observation.type": kind, **given, **fields.pop("attributes", {})}
    known = {"name": f"a {kind}", "scope_name": "langfuse-sdk"} | fields
    return a_span(f"{number:016x}", f"{parent:016x}" if parent else "", attributes=attributes, **known)


@pytest.mark.parametrize(
    ("observed", "kind"),
    [
        ("generation", StepKind.MODEL),
        ("agent", StepKind.AGENT),
        ("tool", StepKind.TOOL),
        ("chain", StepKind.CHAIN),
        ("span", StepKind.CHAIN),
        ("retriever", StepKind.RETRIEVAL),
        ("evaluator", StepKind.IGNORED),
        ("guardrail", StepKind.OTHER),
        ("embedding", StepKind.OTHER),
        ("event", StepKind.OTHER),
        ("GENERATION", StepKind.MODEL),
    ],
)
@pytest.mark.parametrize("scope", ["langfuse-sdk", "my-app"])
def test_the_type_tells_what_a_span_is_whatever_else_is_on_it(observed: str, kind: StepKind, scope: str) -> None:
    step = read(
        an_observation(observed, scope_name=scope, attributes={"openinference.span.kind": "LLM"} if observed != "span" else {})
    )
    assert (step.kind, step.dialect) == (kind, "langfuse")
    assert ("guardrail" in step.flags) == (observed == "guardrail")


@pytest.mark.parametrize("sign", ["model__name", "usage_details"])
def test_sdks_up_to_3_3_called_a_generation_a_span(sign: str) -> None:
    said = {sign: "gpt-x" if sign == "model__name" else '{"input": 1}'}
    assert read(an_observation("span", said=said)).kind is StepKind.MODEL


def test_what_another_dialect_says_of_a_mere_span_is_more() -> None:
    chat = read(an_observation("span", scope_name="other", attributes={"gen_ai.operation.name": "chat"}))
    agent = read(
        an_observation("span", scope_name="other", attributes={"openinference.span.kind": "AGENT", "input.value": "Go."})
    )
    assert (chat.kind, chat.dialect) == (StepKind.MODEL, "langfuse")
    assert (agent.kind, agent.dialect) == (StepKind.AGENT, "openinference")


@pytest.mark.parametrize("encode", [json.dumps, lambda value: value])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_generation_has_messages_tokens_and_what_it_was_offered(encode: Any, wrapped: bool) -> None:
    request = {"messages": ASKED, "tools": [{"type": "function", "function": {"name": "lookup"}}]} if wrapped else ASKED
    counts = {"input": 120, "output": 30, "total": 150, "input_cached_tokens": 20, "output_reasoning_tokens": 5}
    said = {"input": encode(request), "output": encode({"role": "assistant", "content": None, "tool_calls": [CALL]})}
    step = read(an_observation("generation", said=said | {"model__name": "gpt-x", "usage_details": encode(counts)}))
    assert step.input == (Message("system", "Be kind."), Message("user", "Where is A-1?"))
    assert step.output == (Message("assistant", "", (ToolCall("lookup", "c1", {"id": "A-1"}),)),)
    assert (step.model, step.usage, step.flags) == ("gpt-x", Usage(120, 30, 20, 5), ())
    assert [tool.name for tool in step.tools] == (["lookup"] if wrapped else [])


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 3}, Usage(12, 3)),
        ({"input": 20, "output": 3, "cache_read_input_tokens": 5}, Usage(20, 3, 5)),
        ({}, None),
        ([1], None),
    ],
)
def test_counts_go_by_several_names(counts: Any, usage: Usage | None) -> None:
    assert read(an_observation("generation", said={"usage_details": json.dumps(counts)})).usage == usage


def test_a_generation_without_content_says_so() -> None:
    assert read(an_observation("generation", said={"model__name": "gpt-x"})).flags == ("no_content",)


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ('{"id": "A-1"}', {"id": "A-1"}),
        ('{"args": [], "kwargs": {"id": "A-1"}}', {"id": "A-1"}),
        ('{"args": ["A-1"], "kwargs": {}}', ["A-1"]),
        ("{'id': 'A-1'}", {"id": "A-1"}),
    ],
)
def test_a_tool_is_called_like_its_span_with_what_its_function_took(given: str, arguments: Any) -> None:
    step = read(an_observation("tool", name="lookup", said={"input": given, "output": '{"where": "home"}'}))
    assert step.tool == ToolCall("lookup", arguments=arguments, result='{"where": "home"}')


@pytest.mark.parametrize(("message", "error"), [({"status_message": "no such order"}, "no such order"), ({}, "error")])
def test_a_level_of_error_is_a_failure(message: dict[str, str], error: str) -> None:
    step = read(an_observation("tool", name="lookup", said={"level": "ERROR", **message}))
    assert step.tool is not None
    assert (step.error, step.tool.error) == (error, error)
    assert read(an_observation("tool", name="lookup", said={"level": "WARNING", **message})).error is None


def test_a_retriever_found_documents() -> None:
    found = json.dumps([{"page_content": "first", "metadata": {}}, {"content": "second"}, "third", 4])
    step = read(an_observation("retriever", said={"input": "Where?", "output": found}))
    assert step.input == (Message("user", "Where?"),)
    assert [message.text for message in step.output] == ["first", "second", "third"]


@pytest.mark.parametrize("as_root", ["true", True])
def test_an_observation_that_is_a_root_is_one_whatever_is_above_it(as_root: Any) -> None:
    step = read(an_observation("agent", parent=7, name="support", attributes={"langfuse.internal.as_root": as_root}))
    assert (step.parent_id, step.agent) == ("", "support")
    assert read(an_observation("agent", parent=7)).parent_id == f"{7:016x}"


def test_an_observation_says_its_session_release_and_environment() -> None:
    said = {"session.id": "thread-1", "langfuse.release": "v7", "langfuse.environment": "production"}
    step = read(an_observation("agent", attributes=said))
    assert (step.conversation_id, step.agent_version, step.environment) == ("thread-1", "v7", "production")


def test_a_root_may_say_what_the_trace_was_given_and_gave() -> None:
    said = {"langfuse.trace.input": "Where is A-1?", "langfuse.trace.output": "At home."}
    root, below = read(an_observation("span", attributes=said)), read(an_observation("span", 2, 1, attributes=said))
    assert (root.input, root.output) == ((Message("user", "Where is A-1?"),), (Message("assistant", "At home."),))
    assert (below.input, below.output) == ((), ())


def test_a_run_of_a_decorated_function_around_an_agent() -> None:
    spans = [
        an_observation(
            "span", 1, name="handle", said={"input": '{"args": ["Where is A-1?"], "kwargs": {}}', "output": '"At home."'}
        ),
        an_observation("agent", 2, 1, name="support", said={"input": "Where is A-1?", "output": "At home."}),
        an_observation(
            "generation",
            3,
            2,
            said={"input": json.dumps(ASKED), "output": json.dumps({"role": "assistant", "tool_calls": [CALL]})},
        ),
        an_observation("tool", 4, 2, name="lookup", said={"input": '{"id": "A-1"}', "output": "home"}),
        an_observation("evaluator", 5, 1, name="judge", said={"output": "0.2"}),
    ]
    (run,) = runs_of(spans)
    assert (run.place.cohort.agent, run.request, run.answer, run.ended) == ("support", "Where is A-1?", "At home.", Ended.ANSWER)
    assert run.tool_calls == (ToolCall("lookup", "c1", {"id": "A-1"}, result="home"),)
    assert len(run.steps) == 4
