"""Traps 1 to 6: the same value in many forms, cut, hidden, or written where nobody would look for it."""

import json
from typing import Any

from pipeline.model.run import Run
from pipeline.scorers.calls import NOT_EXECUTED
from traps import CHAT, TOOL, Trap, asks, calls, outcomes, recorded, said, sent, span

QUESTION = "Where is it?"
ASKED = [said("user", QUESTION)]
REPLY = [asks()]
ONCE = [("lookup", {"id": 7})]
CONVENTIONS: dict[str, Any] = {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": REPLY}
IN_JSON: dict[str, Any] = {key: json.dumps(value) for key, value in CONVENTIONS.items()}
TWICE: dict[str, Any] = {key: json.dumps(value) for key, value in IN_JSON.items()}
OF_OPENLLMETRY: dict[str, Any] = {
    "llm.request.type": "chat",
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": QUESTION,
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.tool_calls.0.id": "c1",
    "gen_ai.completion.0.tool_calls.0.name": "lookup",
    "gen_ai.completion.0.tool_calls.0.arguments": '{"id": 7}',
}
OF_OPENINFERENCE: dict[str, Any] = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": QUESTION,
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "lookup",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"id": 7}',
}


def conversation(runs: list[Run]) -> tuple[list[str], list[tuple[str, Any]]]:
    """What was asked, and the calls."""
    return [run.request for run in runs], calls(runs)


def what_was_cut(runs: list[Run]) -> tuple[bool, Any]:
    """Whether the run says that it was cut, and its calls as they are known."""
    (run,) = runs
    return "truncated" in run.flags, [(call.arguments, call.raw_arguments, call.result) for call in run.tool_calls]


def form(variant: str, stands: str, attributes: dict[str, Any]) -> Trap:
    return Trap(1, variant, stands, sent(span(2, 1, CHAT | attributes)), conversation, ([QUESTION], ONCE))


def given(variant: str, stands: str, attributes: dict[str, Any], *, number: int = 1) -> Trap:
    return Trap(number, variant, stands, sent(span(2, 1, attributes)), calls, ONCE)


def indexed(variant: str, *names: str) -> Trap:
    """Messages of OpenInference under these indices."""
    messages: dict[str, Any] = {"openinference.span.kind": "LLM"}
    for place, name in enumerate(names):
        messages[f"llm.input_messages.{name}.message.role"] = "user"
        messages[f"llm.input_messages.{name}.message.content"] = f"{place}"
    last = str(len([name for name in names if name.isascii() and name.isdigit() and len(name) < 10]) - 1)
    stands = "llm.input_messages." + ", ".join(names)
    return Trap(4, variant, stands, sent(span(2, 1, messages)), lambda runs: [run.request for run in runs], [last])


def nothing(word: str) -> Trap:
    """A word in the place of arguments."""
    executed = span(2, 1, TOOL | {"gen_ai.tool.call.arguments": word})
    return Trap(
        5,
        f"arguments {word!r}",
        f"gen_ai.tool.call.arguments = {word!r}",
        sent(executed),
        lambda runs: [(call.arguments, call.raw_arguments) for run in runs for call in run.tool_calls],
        [(None, word if word == "{}" else "")],
    )


OFFERS_NOTHING: dict[str, Any] = {
    "gen_ai.tool.definitions": [{"name": "lookup", "parameters": {"type": "object", "properties": {}}}]
}
WRITTEN = f"ResponseFunctionToolCall(arguments={json.dumps({'note': chr(10).join(['it' + chr(39) + 's', 'here'])})!r}, call_id='c1', name='lookup')"
CUT = '{"id": 7, "note": "it is in the'
TRAPS = [
    form("messages as a JSON text", "gen_ai.input.messages = '[{…}]'", IN_JSON),
    form("messages as OTLP's own values", "gen_ai.input.messages = kvlist in an array", CONVENTIONS),
    form("messages indexed, OpenLLMetry", "gen_ai.prompt.0.content, gen_ai.completion.0.tool_calls.0.name", OF_OPENLLMETRY),
    form("messages indexed, OpenInference", "llm.input_messages.0.message.content …", OF_OPENINFERENCE),
    Trap(
        1,
        "all four in one trace",
        "one form on each of four model calls",
        sent(*(span(2 + n, 1, CHAT | one) for n, one in enumerate((IN_JSON, CONVENTIONS, OF_OPENLLMETRY, OF_OPENINFERENCE)))),
        conversation,
        ([QUESTION], 4 * ONCE),
    ),
    given("arguments as a JSON text", "gen_ai.tool.call.arguments = '{…}'", TOOL | {"gen_ai.tool.call.arguments": '{"id": 7}'}),
    given(
        "arguments as OTLP's own values", "gen_ai.tool.call.arguments = kvlist", TOOL | {"gen_ai.tool.call.arguments": {"id": 7}}
    ),
    given(
        "arguments under a decorator's kwargs",
        'traceloop.entity.input = \'{"args": [], "kwargs": {…}}\'',
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "lookup",
            "traceloop.entity.input": '{"args": [], "kwargs": {"id": 7}}',
        },
    ),
    Trap(
        1,
        "content on spans here and in log records there (ADK)",
        "live/adk: refund_ok and refund_ok_true",
        lambda: [*recorded("live/adk/refund_ok.jsonl")(), *recorded("live/adk/refund_ok_true.jsonl")()],
        lambda runs: (
            len(runs),
            runs[0].answer == runs[1].answer,
            runs[0].request == runs[1].request,
            calls(runs[:1]) == calls(runs[1:]),
        ),
        (2, True, True, True),
    ),
    Trap(
        2,
        "messages encoded twice",
        'gen_ai.input.messages = \'"[{\\\\"role\\\\"…\'',
        sent(span(2, 1, CHAT | TWICE)),
        conversation,
        ([QUESTION], ONCE),
    ),
    given(
        "arguments encoded twice",
        'gen_ai.tool.call.arguments = \'"{\\\\"id\\\\": 7}"\'',
        TOOL | {"gen_ai.tool.call.arguments": json.dumps('{"id": 7}')},
        number=2,
    ),
    Trap(
        2,
        "a type in quotes (MLflow)",
        "mlflow.spanType = '\"TOOL\"', mlflow.spanInputs = '{…}'",
        sent(span(2, 1, {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"id": 7}'}, name="lookup")),
        calls,
        ONCE,
    ),
    Trap(
        2,
        "a result encoded twice",
        "gen_ai.tool.call.result = '\"at the door\"'",
        sent(span(2, 1, TOOL | {"gen_ai.tool.call.result": '"at the door"'})),
        outcomes,
        [("at the door", None)],
    ),
    Trap(
        3,
        "messages cut",
        'gen_ai.output.messages = \'[{"role": "assist\'',
        sent(span(2, 1, CHAT | {key: text[:-9] for key, text in IN_JSON.items()})),
        what_was_cut,
        (True, []),
    ),
    Trap(
        3,
        "arguments cut",
        f"gen_ai.tool.call.arguments = {CUT!r}",
        sent(span(2, 1, TOOL | {"gen_ai.tool.call.arguments": CUT})),
        what_was_cut,
        (True, [(None, CUT, None)]),
    ),
    Trap(
        3,
        "arguments cut in the middle of an escape",
        'input.value = \'{"id": "\\\\u00\'',
        sent(span(2, 1, {"openinference.span.kind": "TOOL", "tool.name": "lookup", "input.value": '{"id": "\\u00'})),
        what_was_cut,
        (True, [(None, '{"id": "\\u00', None)]),
    ),
    Trap(
        3,
        "a result cut",
        f"gen_ai.tool.call.result = {CUT!r}",
        sent(span(2, 1, TOOL | {"gen_ai.tool.call.result": CUT})),
        what_was_cut,
        (True, [(None, "", CUT)]),
    ),
    Trap(
        3,
        "a request cut (ADK)",
        'gcp.vertex.agent.llm_request = \'{"model": "gem\'',
        sent(span(2, 1, {"gcp.vertex.agent.llm_request": '{"model": "gem'}, name="call_llm", scope_name="gcp.vertex.agent")),
        what_was_cut,
        (True, []),
    ),
    Trap(
        3,
        "an entity cut (OpenLLMetry)",
        'traceloop.entity.output = \'{"outputs": {"mess\'',
        sent(
            span(
                2,
                1,
                {"traceloop.span.kind": "agent", "traceloop.entity.name": "a", "traceloop.entity.output": '{"outputs": {"mess'},
            )
        ),
        what_was_cut,
        (True, []),
    ),
    indexed("indices that start at 1", "1"),
    indexed("indices with a gap", "0", "3"),
    indexed("indices out of order", "2", "10"),
    indexed("a huge index", "0", "999999999"),
    indexed("an index beyond any number", "0", "9999999999999999999"),
    indexed("names that are no index", "0", "__proto__", "-1", "²"),
    *map(nothing, ("None", "", "N/A", "{}", "<not specified>", "<not serializable>", "__REDACTED__", "[REDACTED]", "  ")),
    Trap(
        5,
        "'{}' for a tool that takes nothing",
        "gen_ai.tool.call.arguments = '{}', its schema has no properties",
        sent(span(2, 1, CHAT | OFFERS_NOTHING), span(3, 1, TOOL | {"gen_ai.tool.call.arguments": "{}"})),
        calls,
        [("lookup", {})],
    ),
    Trap(
        5,
        "an id that is none (ADK)",
        "live/adk/bad_arguments: gen_ai.tool.call.id = '<not specified>'",
        recorded("live/adk/bad_arguments.jsonl"),
        lambda runs: [(call.name, call.id) for call in runs[0].tool_calls],
        [("issue_refund", "call_bad_arguments_0_0")],
    ),
    Trap(
        6,
        "calls as texts (ADOT, openai-agents)",
        "strands-evals-fixtures/openai_agents_genai_adot: 'ResponseFunctionToolCall(…'",
        recorded("strands-evals-fixtures/openai_agents_genai_adot_spans.json"),
        lambda runs: [(call.name, call.arguments, call.error) for call in runs[0].tool_calls],
        [("transfer_to_research_specialist", {}, NOT_EXECUTED), ("multiply_numbers", {"a": 42, "b": 7}, None)],
    ),
    Trap(
        6,
        "a call as a text, with quotes and line breaks in it",
        r"ResponseFunctionToolCall(arguments='{\"note\": \"it\'s\\nhere\"}', …",
        sent(span(2, 1, CHAT | {"gen_ai.output.messages": [said("assistant", WRITTEN)]})),
        calls,
        [("lookup", {"note": "it's\nhere"})],
    ),
    Trap(
        6,
        "a text that only speaks of one",
        "content = 'I would call ResponseFunctionToolCall(…'",
        sent(
            span(
                2,
                1,
                CHAT | {"gen_ai.output.messages": [said("assistant", "I would call ResponseFunctionToolCall(arguments='{}'…")]},
            )
        ),
        lambda runs: (calls(runs), runs[0].answer),
        ([], "I would call ResponseFunctionToolCall(arguments='{}'…"),
    ),
]
