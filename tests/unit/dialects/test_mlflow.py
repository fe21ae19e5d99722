"""MLflow: a type in quotes, and inputs and outputs in the shapes of whatever was traced."""

import json
from typing import Any

import pytest
from builders import a_span
from recordings import runs_of

from collectors.dialects import read
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition, Usage


def step(kind: str, inputs: Any = None, outputs: Any = None, more: dict[str, Any] | None = None, **fields: Any) -> Step:
    attributes = {"mlflow.traceRequestId": '"tr-1"', "mlflow.spanType": json.dumps(kind)} | (more or {})
    for key, value in (("mlflow.spanInputs", inputs), ("mlflow.spanOutputs", outputs)):
        if value is not None:
            attributes[key] = json.dumps(value)
    return read(a_span(attributes=attributes, **fields))


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("CHAT_MODEL", StepKind.MODEL),
        ("LLM", StepKind.MODEL),
        ("TOOL", StepKind.TOOL),
        ("AGENT", StepKind.AGENT),
        ("CHAIN", StepKind.CHAIN),
        ("UNKNOWN", StepKind.CHAIN),
        ("RETRIEVER", StepKind.RETRIEVAL),
        ("EVALUATOR", StepKind.IGNORED),
        ("GUARDRAIL", StepKind.OTHER),
        ("EMBEDDING", StepKind.OTHER),
    ],
)
def test_the_type_says_what_a_span_is(kind: str, wanted: StepKind) -> None:
    found = step(kind)
    assert (found.kind, found.dialect) == (wanted, "mlflow")
    assert read(a_span(attributes={"mlflow.spanType": kind})).kind is wanted, "also without quotes"


CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": 7}'}}
ASKED = (ToolCall("lookup", "c1", {"id": 7}),)


@pytest.mark.parametrize(
    ("inputs", "outputs", "wanted"),
    [
        (
            {"model": "gpt", "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]},
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}]},
            Message("assistant", tool_calls=ASKED),
        ),
        (
            {"model": "claude", "system": "Be kind.", "messages": [{"role": "user", "content": "hi"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "lookup", "input": {"id": 7}}]},
            Message("assistant", tool_calls=ASKED),
        ),
        (
            {"model": "gpt", "instructions": "Be kind.", "input": [{"role": "user", "content": "hi"}]},
            {
                "object": "response",
                "output": [{"type": "function_call", "call_id": "c1", "name": "lookup", "arguments": '{"id": 7}'}],
            },
            Message("assistant", tool_calls=ASKED),
        ),
        (
            {"model": "gpt", "instructions": "Be kind.", "input": "hi"},
            {
                "object": "response",
                "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}],
            },
            Message("assistant", "Hello."),
        ),
        (
            {"modelId": "nova", "system": [{"text": "Be kind."}], "messages": [{"role": "user", "content": [{"text": "hi"}]}]},
            {"output": {"message": {"role": "assistant", "content": [{"text": "Hello."}]}}, "stopReason": "end_turn"},
            Message("assistant", "Hello."),
        ),
        (
            {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "system": "Be kind."},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}}]},
            Message("assistant", "Hello."),
        ),
        (
            [[{"type": "system", "content": "Be kind."}, {"type": "human", "content": "hi"}]],
            {"generations": [[{"text": "Hello.", "message": {"type": "ai", "content": "Hello."}}]]},
            Message("assistant", "Hello."),
        ),
    ],
    ids=["OpenAI chat", "Anthropic", "OpenAI responses", "OpenAI responses, a text", "Bedrock", "Gemini", "LangChain"],
)
def test_a_model_call_in_the_shape_of_each_api(inputs: Any, outputs: Any, wanted: Message) -> None:
    found = step("CHAT_MODEL", inputs, outputs)
    assert found.input == (Message("system", "Be kind."), Message("user", "hi"))
    assert [(message.role, message.text, message.tool_calls) for message in found.output] == [
        ("assistant", wanted.text, wanted.tool_calls)
    ]
    assert found.flags == ()


def test_what_a_model_call_says_beside_its_messages() -> None:
    schema = {"type": "object", "properties": {}}
    more = {
        "mlflow.llm.model": '"gpt"',
        "mlflow.llm.provider": '"openai"',
        "mlflow.chat.tools": json.dumps([{"type": "function", "function": {"name": "lookup", "parameters": schema}}]),
        "mlflow.chat.tokenUsage": json.dumps(
            {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "cache_read_input_tokens": 4}
        ),
        "mlflow.trace.session": '"s-1"',
    }
    found = step("CHAT_MODEL", {"messages": [{"role": "user", "content": "hi"}]}, None, more)
    assert (found.model, found.provider, found.usage) == ("gpt", "openai", Usage(10, 5, 4))
    assert (found.tools, found.conversation_id) == ((ToolDefinition("lookup", schema),), "s-1")
    assert step("CHAT_MODEL").flags == ("no_content",)


def test_a_tool_takes_its_name_from_the_span() -> None:
    assert step("TOOL", {"id": 7}, {"at": "door"}, name="lookup").tool == ToolCall(
        "lookup", arguments={"id": 7}, result='{"at":"door"}'
    )
    assert step("TOOL", {"id": 7}, "door", name="lookup").tool == ToolCall("lookup", arguments={"id": 7}, result="door")
    assert step("TOOL", None, None, name="lookup").flags == ("no_content",)


def test_an_agent_takes_its_name_from_the_span() -> None:
    found = step("AGENT", {"question": "Where is it?"}, {"answer": "At the door."}, name="desk")
    assert (found.agent, found.input, found.output) == (
        "desk",
        (Message("user", "Where is it?"),),
        (Message("assistant", "At the door."),),
    )


def test_what_was_cut_is_flagged() -> None:
    cut = {"mlflow.spanInputs": '{"messages": [{"role": "us'}
    for kind in ("CHAT_MODEL", "AGENT"):
        assert step(kind, more=cut).flags == ("truncated",)


def test_an_autologged_agent_is_a_run() -> None:
    def a_part(number: int, under: int, kind: str, name: str, inputs: Any, outputs: Any) -> Any:
        attributes = {
            "mlflow.spanType": json.dumps(kind),
            "mlflow.spanInputs": json.dumps(inputs),
            "mlflow.spanOutputs": json.dumps(outputs),
        }
        return a_span(f"{number:016x}", f"{under:016x}" if under else "", name=name, attributes=attributes)

    question = [{"role": "user", "content": "Where is it?"}]
    (run,) = runs_of(
        [
            a_part(1, 0, "AGENT", "desk", {"input": "Where is it?"}, "At the door."),
            a_part(
                2,
                1,
                "CHAT_MODEL",
                "Completions",
                {"messages": question},
                {"choices": [{"message": {"role": "assistant", "tool_calls": [CALL]}}]},
            ),
            a_part(3, 1, "TOOL", "lookup", {"id": 7}, "door"),
        ]
    )
    assert (run.place.cohort.agent, run.request, run.answer) == ("desk", "Where is it?", "At the door.")
    assert run.tool_calls == (ToolCall("lookup", "c1", {"id": 7}, result="door"),)
