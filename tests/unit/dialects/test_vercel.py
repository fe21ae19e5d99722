"""Vercel AI SDK: the attributes of versions 3 to 6, and the conventions as 7 writes them (dialects reference, section 6)."""

import json
from typing import Any

import pytest
from builders import T0, a_span
from recordings import runs_of

from collectors.dialects import read
from pipeline.model.run import Ended
from pipeline.model.span import Event, Span
from pipeline.model.step import Message, Step, StepKind, ToolCall, Usage
from pipeline.model.time import SECOND

LOOKUP = ToolCall("lookup", "c1", {"id": "A-1"})
USER = {"role": "user", "content": [{"type": "text", "text": "Where is A-1?"}]}


def an_ai_span(operation: str, **attributes: Any) -> Span:
    named = {f"ai.{name.replace('__', '.')}": value for name, value in attributes.items()}
    return a_span(
        name=operation, scope_name="ai", attributes={"ai.operationId": operation} | named, resource={"service.name": "desk"}
    )


def said_to(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return read(an_ai_span("ai.generateText.doGenerate", prompt__messages=json.dumps(messages))).input


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("ai.generateText", StepKind.AGENT),
        ("ai.streamText", StepKind.AGENT),
        ("ai.generateObject", StepKind.AGENT),
        ("ai.streamObject", StepKind.AGENT),
        ("ai.generateText.doGenerate", StepKind.MODEL),
        ("ai.streamText.doStream", StepKind.MODEL),
        ("ai.streamObject.doStream", StepKind.MODEL),
        ("ai.toolCall", StepKind.TOOL),
        ("ai.rerank", StepKind.RETRIEVAL),
        ("ai.embed", StepKind.OTHER),
        ("ai.embedMany.doEmbed", StepKind.OTHER),
        ("ai.somethingNew", StepKind.OTHER),
    ],
)
def test_the_operation_tells_what_a_span_is(operation: str, kind: StepKind) -> None:
    step = read(an_ai_span(operation))
    assert (step.kind, step.dialect) == (kind, "vercel")


@pytest.mark.parametrize("attributes", [{"operation.name": "ai.toolCall my-agent"}, {"ai.operationId": "ai.toolCall"}, {}])
def test_the_operation_is_found_where_a_span_names_it(attributes: dict[str, Any]) -> None:
    assert read(a_span(name="ai.toolCall", scope_name="ai", attributes=attributes)).kind is StepKind.TOOL


def test_a_tracer_of_the_users_own_changes_nothing() -> None:
    span = a_span(name="x", scope_name="my-app", attributes={"ai.operationId": "ai.toolCall", "ai.toolCall.name": "lookup"})
    assert (read(span).dialect, read(span).tool) == ("vercel", ToolCall("lookup"))


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        ({"output": {"type": "text", "value": "at home"}}, "at home"),
        ({"output": {"type": "error-text", "value": "no such order"}}, "no such order"),
        ({"output": {"type": "json", "value": {"where": "home"}}}, '{"where":"home"}'),
        ({"output": {"type": "execution-denied", "reason": "not now"}}, "not now"),
        ({"output": {"type": "order", "where": "home"}}, '{"type":"order","where":"home"}'),
        ({"result": {"where": "home"}}, '{"where":"home"}'),
        ({"result": "at home"}, "at home"),
    ],
)
def test_what_the_model_was_told_of_a_call_since_version_5_and_before(part: dict[str, Any], answer: str) -> None:
    told = {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "lookup"} | part]}
    assert said_to(told) == (Message("tool", answer, tool_call_id="c1", name="lookup"),)


@pytest.mark.parametrize("arguments", ["input", "args"])
def test_a_conversation_is_read_with_its_calls_and_without_what_was_only_thought(arguments: str) -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "lookup", arguments: {"id": "A-1"}}
    thought = {"type": "reasoning", "text": "I should look it up."}
    system = {"role": "system", "content": "Be kind."}
    assert said_to(system, USER, {"role": "assistant", "content": [thought, call]}) == (
        Message("system", "Be kind."),
        Message("user", "Where is A-1?"),
        Message("assistant", tool_calls=(LOOKUP,)),
    )


@pytest.mark.parametrize("prefix", ["response", "result"])
@pytest.mark.parametrize("arguments", ["input", "args"])
def test_a_reply_has_text_and_calls_under_newer_and_older_names(prefix: str, arguments: str) -> None:
    calls = json.dumps([{"toolCallId": "c1", "toolName": "lookup", arguments: '{"id": "A-1"}'}])
    step = read(an_ai_span("ai.streamText.doStream", **{f"{prefix}__text": "One moment.", f"{prefix}__toolCalls": calls}))
    assert step.output == (Message("assistant", "One moment.", (LOOKUP,)),)
    assert step.flags == ()


def test_a_model_call_says_model_provider_tokens_and_tools() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    tools = [
        json.dumps({"type": "function", "name": "lookup", "inputSchema": schema}),
        json.dumps({"name": "old", "parameters": schema}),
    ]
    step = read(
        an_ai_span(
            "ai.generateText.doGenerate",
            model__id="gpt-x",
            response__model="gpt-x-2026",
            model__provider="openai.chat",
            prompt__tools=tools,
            usage__inputTokens=120,
            usage__outputTokens=30,
            usage__cachedInputTokens=20,
            usage__reasoningTokens=5,
        )
    )
    assert (step.model, step.provider, step.usage) == ("gpt-x-2026", "openai", Usage(120, 30, 20, 5))
    assert [(tool.name, tool.schema) for tool in step.tools] == [("lookup", schema), ("old", schema)]
    assert step.flags == ("no_content",)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"usage__promptTokens": 12, "usage__completionTokens": 3}, Usage(12, 3)),
        ({"usage__promptTokens": "NaN", "usage__completionTokens": "NaN"}, None),
        ({"usage__inputTokens": 7, "usage__outputTokens": 3, "usage__inputTokenDetails__cacheReadTokens": 2}, Usage(7, 3, 2)),
        ({}, None),
    ],
)
def test_tokens_have_other_names_before_version_5_and_are_no_number_in_a_stream(
    counts: dict[str, Any], usage: Usage | None
) -> None:
    assert read(an_ai_span("ai.streamText.doStream", **counts)).usage == usage


@pytest.mark.parametrize("text", ["[urgent] Where is A-1?", "{name}, where is A-1?"])
def test_a_text_that_begins_like_json_is_a_text_and_was_not_cut(text: str) -> None:
    step = read(an_ai_span("ai.generateText", prompt=json.dumps({"prompt": text})))
    assert (step.input, step.flags) == ((Message("user", text),), ())


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ({"system": "Be kind.", "prompt": "Where is A-1?"}, (Message("system", "Be kind."), Message("user", "Where is A-1?"))),
        ({"messages": [USER]}, (Message("user", "Where is A-1?"),)),
        ({"prompt": [USER]}, (Message("user", "Where is A-1?"),)),
        ({}, ()),
        ("Where is A-1?", (Message("user", "Where is A-1?"),)),
    ],
)
def test_an_agent_is_asked_in_a_prompt_or_in_messages(prompt: Any, asked: tuple[Message, ...]) -> None:
    text = prompt if isinstance(prompt, str) else json.dumps(prompt)
    assert read(an_ai_span("ai.generateText", prompt=text)).input == asked
    assert read(an_ai_span("ai.generateText", prompt=prompt)).input == asked


@pytest.mark.parametrize(("named", "agent"), [({"telemetry__functionId": "support"}, "support"), ({}, "desk")])
def test_an_agent_is_called_by_its_function_or_else_like_its_service(named: dict[str, Any], agent: str) -> None:
    step = read(an_ai_span("ai.generateText", response__text="At home.", **named))
    assert (step.agent, step.output) == (agent, (Message("assistant", "At home."),))


def test_an_object_is_an_answer() -> None:
    assert read(an_ai_span("ai.generateObject", response__object='{"where":"home"}')).output == (
        Message("assistant", '{"where":"home"}'),
    )


@pytest.mark.parametrize("name", ["sessionId", "threadId", "conversationId"])
def test_users_say_which_conversation_it_is(name: str) -> None:
    for operation in ("ai.generateText", "ai.generateText.doGenerate"):
        assert read(an_ai_span(operation, **{f"telemetry__metadata__{name}": "thread-1"})).conversation_id == "thread-1"


@pytest.mark.parametrize("name", ["prompt__messages", "response__toolCalls"])
def test_what_was_cut_is_flagged_and_not_told_as_text(name: str) -> None:
    step = read(an_ai_span("ai.generateText.doGenerate", **{name: '[{"role": "user", "content": "Whe'}))
    assert (step.input, step.output, step.flags) == ((), (), ("truncated",))


def test_a_tool_call_has_arguments_and_a_result_or_an_error() -> None:
    call = {"toolCall__name": "lookup", "toolCall__id": "c1", "toolCall__args": '{"id":"A-1"}'}
    good = read(an_ai_span("ai.toolCall", **call, toolCall__result='"at home"'))
    assert good.tool == ToolCall("lookup", "c1", {"id": "A-1"}, result="at home")
    raised = Event("exception", attributes={"exception.type": "Error", "exception.message": "no such order"})
    failed = read(
        a_span(scope_name="ai", attributes=an_ai_span("ai.toolCall", **call).attributes, events=(raised,), status_code=2)
    )
    assert failed.tool == ToolCall("lookup", "c1", {"id": "A-1"}, error="Error: no such order")
    assert read(an_ai_span("ai.toolCall", toolCall__name="lookup")).flags == ("no_content",)


def test_documents_that_were_ranked_are_a_retrieval() -> None:
    step = read(an_ai_span("ai.rerank", documents=['"first"', '{"text":"second"}']))
    assert step.output == (Message("tool", '"first"'), Message("tool", '{"text":"second"}'))


# Version 7


def v7(number: int, parent: int, name: str, **attributes: Any) -> Span:
    named = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    fields = {
        "start_ns": T0 + number * SECOND,
        "end_ns": T0 + (20 - number) * SECOND,
        "scope_name": "gen_ai",
        "attributes": named,
    }
    return a_span(f"{number:016x}", f"{parent:016x}" if parent else "", name=name, resource={"service.name": "desk"}, **fields)


def parts(role: str, *some: dict[str, Any]) -> str:
    return json.dumps([{"role": role, "parts": list(some)}])


CALL = {"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"id": "A-1"}}
ANSWER = {"type": "text", "content": "At home."}


def a_run_of_v7(**root: Any) -> list[Span]:
    """``invoke_agent`` around steps, each of them around a call of the model and of a tool."""
    told = {"type": "tool_call_response", "id": "c1", "response": {"where": "home"}}
    asked = parts("user", {"type": "text", "content": "Where is A-1?"})
    tools = json.dumps([{"type": "function", "name": "lookup", "inputSchema": {"type": "object"}}])
    usage: Any = {"usage__input_tokens": 120, "usage__output_tokens": 30}
    call = {"operation__name": "execute_tool", "tool__name": "lookup", "tool__call__id": "c1"}
    return [
        v7(1, 0, "invoke_agent gpt-x", operation__name="invoke_agent", request__model="gpt-x", usage__input_tokens=240, **root),
        v7(2, 1, "step 1", operation__name="agent_step"),
        v7(
            *(3, 2, "chat gpt-x"),
            operation__name="chat",
            input__messages=asked,
            output__messages=parts("assistant", CALL),
            tool__definitions=tools,
            request__model="gpt-x",
            **usage,
        ),
        v7(4, 2, "execute_tool lookup", tool__call__arguments='{"id":"A-1"}', tool__call__result='{"where":"home"}', **call),
        v7(5, 1, "step 2", operation__name="agent_step"),
        v7(
            *(6, 5, "chat gpt-x"),
            operation__name="chat",
            input__messages=json.dumps(json.loads(asked) + json.loads(parts("tool", told))),
            output__messages=parts("assistant", ANSWER),
            request__model="gpt-x",
            **usage,
        ),
    ]


@pytest.mark.parametrize(("root", "agent"), [({"agent__name": "support"}, "support"), ({}, "desk")])
def test_a_run_of_version_7_is_whole_and_its_agent_is_not_called_like_its_model(root: dict[str, Any], agent: str) -> None:
    (run,) = runs_of(a_run_of_v7(output__messages=parts("assistant", ANSWER), **root))
    assert (run.place.cohort.agent, run.request, run.answer, run.ended) == (agent, "Where is A-1?", "At home.", Ended.ANSWER)
    assert run.tool_calls == (ToolCall("lookup", "c1", {"id": "A-1"}, result='{"where":"home"}'),)
    assert (run.model_calls, run.usage) == (2, Usage(240, 60))
    assert [(tool.name, tool.schema) for tool in run.tools] == [("lookup", {"type": "object"})]
    assert run.dialects == ("vercel_v7",)


def test_a_tool_that_failed_says_so_on_its_span_alone() -> None:
    span = v7(4, 2, "execute_tool lookup", operation__name="execute_tool", tool__name="lookup")
    raised = Event("exception", attributes={"exception.type": "Error", "exception.message": "no such order"})
    step: Step = read(a_span(scope_name="gen_ai", attributes=span.attributes, events=(raised,), status_code=2))
    assert step.tool == ToolCall("lookup", error="Error: no such order")
