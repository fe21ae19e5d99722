"""LangSmith's exporter: a run's inputs and outputs whole, in the shapes of LangChain and of wrapped clients (dialects reference, section 8)."""

import json
from typing import Any

import pytest
from builders import a_span
from recordings import runs_of

from collectors.dialects import read
from pipeline.model.run import Ended
from pipeline.model.span import Event, Span
from pipeline.model.step import Message, StepKind, ToolCall, Usage


def lc(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """A message as LangChain serialises it."""
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {"content": content, **more},
    }


def a_langsmith_span(
    kind: str, inputs: Any = None, outputs: Any = None, *, name: str = "run", parent: int = 0, **fields: Any
) -> Span:
    attributes = {"langsmith.span.kind": kind, "langsmith.trace.session_name": "my-project", **fields.pop("attributes", {})}
    attributes |= {"gen_ai.operation.name": {"llm": "chat", "tool": "execute_tool", "retriever": "embeddings"}.get(kind, kind)}
    for key, value in (("gen_ai.prompt", inputs), ("gen_ai.completion", outputs)):
        if value is not None:
            attributes[key] = value if isinstance(value, str) else json.dumps(value)
    number = fields.pop("number", 1)
    return a_span(
        f"{number:016x}", f"{parent:016x}" if parent else "", name=name, scope_name="langsmith", attributes=attributes, **fields
    )


ASKED = (Message("system", "Be kind."), Message("user", "Where is A-1?"))
LC_ASKED = {"messages": [[lc("SystemMessage", "Be kind.", type="system"), lc("HumanMessage", "Where is A-1?", type="human")]]}
LC_CALL = lc("AIMessage", "", type="ai", tool_calls=[{"name": "lookup", "args": {"id": "A-1"}, "id": "c1", "type": "tool_call"}])
LC_REPLY = {"generations": [[{"text": "", "type": "ChatGeneration", "message": LC_CALL}]], "llm_output": {}}
OPENAI_ASKED = {
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where is A-1?"}],
    "model": "gpt-x",
    "tools": [{"type": "function", "function": {"name": "lookup", "parameters": {}}}],
}
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": "A-1"}'}}
OPENAI_REPLY = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}}], "model": "gpt-x"}


@pytest.mark.parametrize(
    ("run_type", "kind"),
    [
        ("llm", StepKind.MODEL),
        ("tool", StepKind.TOOL),
        ("retriever", StepKind.RETRIEVAL),
        ("chain", StepKind.CHAIN),
        ("prompt", StepKind.OTHER),
        ("parser", StepKind.OTHER),
        ("embedding", StepKind.OTHER),
    ],
)
def test_the_type_of_the_run_tells_more_than_the_operation(run_type: str, kind: StepKind) -> None:
    step = read(a_langsmith_span(run_type))
    assert (step.kind, step.dialect) == (kind, "langsmith")


@pytest.mark.parametrize(
    ("inputs", "outputs", "tools"),
    [(LC_ASKED, LC_REPLY, []), (OPENAI_ASKED, OPENAI_REPLY, ["lookup"])],
    ids=["langchain", "openai"],
)
def test_a_model_call_is_read_out_of_the_whole(inputs: Any, outputs: Any, tools: list[str]) -> None:
    counts = {"gen_ai.usage.input_tokens": 120, "gen_ai.usage.output_tokens": 30, "gen_ai.request.model": "gpt-x"}
    step = read(a_langsmith_span("llm", inputs, outputs, attributes=counts | {"langsmith.metadata.ls_provider": "openai"}))
    assert step.input == ASKED
    assert step.output == (Message("assistant", "", (ToolCall("lookup", "c1", {"id": "A-1"}),)),)
    assert (step.model, step.provider, step.usage, step.flags) == ("gpt-x", "openai", Usage(120, 30), ())
    assert [tool.name for tool in step.tools] == tools


@pytest.mark.parametrize(
    "outputs",
    [
        {"generations": [[{"text": "At home."}]]},
        {"generations": [{"message": lc("AIMessage", "At home.", type="ai")}]},
        {"output": "At home."},
        {"role": "assistant", "content": "At home."},
    ],
)
def test_a_reply_of_text_has_many_wrappings(outputs: dict[str, Any]) -> None:
    assert read(a_langsmith_span("llm", LC_ASKED, outputs)).output == (Message("assistant", "At home."),)


@pytest.mark.parametrize(
    "outputs", [{"generations": []}, {"generations": [[]]}, {"choices": [None]}, {"generations": [[1]]}, [], None]
)
def test_a_reply_without_anything_in_it_is_none(outputs: Any) -> None:
    assert read(a_langsmith_span("llm", LC_ASKED, outputs)).output == ()


def test_a_model_call_without_content_or_with_half_of_it_says_so() -> None:
    assert read(a_langsmith_span("llm")).flags == ("no_content",)
    assert read(a_langsmith_span("llm", '{"messages": [[{"lc": 1, "kwa')).flags == ("truncated",)


TOLD = lc("ToolMessage", "home", type="tool", tool_call_id="c1", status="success")


@pytest.mark.parametrize(
    ("inputs", "outputs", "tool"),
    [
        ({"input": "{'id': 'A-1'}"}, {"output": TOLD}, ToolCall("lookup", "c1", {"id": "A-1"}, result="home")),
        ({"id": "A-1"}, {"output": "home"}, ToolCall("lookup", "", {"id": "A-1"}, result="home")),
        ({"id": "A-1"}, {"output": {"where": "home"}}, ToolCall("lookup", "", {"id": "A-1"}, result='{"where":"home"}')),
        (None, None, ToolCall("lookup")),
    ],
)
def test_a_tool_is_called_like_its_span(inputs: Any, outputs: Any, tool: ToolCall) -> None:
    assert read(a_langsmith_span("tool", inputs, outputs, name="lookup")).tool == tool


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ValueError('no such order')Traceback (most recent call last):\n\n  File", "ValueError: no such order"),
        ('KeyError("it\'s gone")', "KeyError: it's gone"),
        ("something else", "Exception: something else"),
    ],
)
def test_an_error_is_what_was_raised_and_not_its_traceback(text: str, error: str) -> None:
    raised = Event("exception", attributes={"exception.type": "Exception", "exception.message": text})
    step = read(a_langsmith_span("tool", {"id": "A-404"}, name="lookup", events=(raised,), status_code=2))
    assert step.tool is not None
    assert (step.error, step.tool.error) == (error, error)


def test_a_retriever_found_documents() -> None:
    found = {"documents": [{"page_content": "first"}, {"lc": 1, "kwargs": {"page_content": "second"}}, 3]}
    step = read(a_langsmith_span("retriever", {"query": "Where?"}, found))
    assert step.input == (Message("user", "Where?"),)
    assert [message.text for message in step.output] == ["first", "second"]


@pytest.mark.parametrize("name", ["thread_id", "session_id", "conversation_id"])
def test_the_conversation_is_in_the_metadata_and_the_session_is_a_project(name: str) -> None:
    step = read(
        a_langsmith_span("chain", attributes={f"langsmith.metadata.{name}": "thread-1", "langsmith.trace.session_id": "p"})
    )
    assert step.conversation_id == "thread-1"
    assert read(a_langsmith_span("chain", attributes={"langsmith.trace.session_id": "p"})).conversation_id == ""


@pytest.mark.parametrize(("name", "agent"), [("my_agent", "my_agent"), ("LangGraph", ""), ("RunnableSequence", "")])
def test_a_root_stands_for_its_run_and_a_class_is_nobody(name: str, agent: str) -> None:
    step = read(a_langsmith_span("chain", {"input": "Where?"}, {"output": "At home."}, name=name))
    assert (step.kind, step.agent) == (StepKind.CHAIN, agent)
    assert (step.input, step.output) == ((Message("user", "Where?"),), (Message("assistant", "At home."),))
    assert read(a_langsmith_span("chain", {"input": "x"}, {"output": "y"}, name=name, parent=7)).output == ()


def test_a_run_of_langchains_agent() -> None:
    named = {"langsmith.metadata.lc_agent_name": "support", "gen_ai.request.model": "gpt-x"}
    answer = lc("AIMessage", "At home.", type="ai")
    history = [*LC_ASKED["messages"][0], LC_CALL, TOLD]
    spans = [
        a_langsmith_span("chain", {"messages": [{"type": "human", "content": "Where is A-1?"}]}, {"messages": [*history, answer]},
                         name="support", attributes=named),
        a_langsmith_span("chain", name="model", number=2, parent=1, attributes=named),
        a_langsmith_span("llm", LC_ASKED, LC_REPLY, name="ChatOpenAI", number=3, parent=2, attributes=named),
        a_langsmith_span("tool", {"input": "{'id': 'A-1'}"}, {"output": TOLD}, name="lookup", number=4, parent=1, attributes=named),
    ]  # fmt: skip
    (run,) = runs_of(spans)
    assert (run.place.cohort.agent, run.request, run.answer, run.ended) == ("support", "Where is A-1?", "At home.", Ended.ANSWER)
    assert run.tool_calls == (ToolCall("lookup", "c1", {"id": "A-1"}, result="home"),)
    assert run.model_calls == 1
