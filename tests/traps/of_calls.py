"""Traps 7 to 10: calls that are told of several times or not at all, what is no call, and failures that only the result tells."""

import json
from typing import Any

from pipeline.scorers.calls import NOT_EXECUTED
from traps import CHAT, TOOL, Trap, alone, asks, calls, errors, outcomes, recorded, said, sent, span

REQUEST = {"gen_ai.output.messages": [asks("c1")]}
EXECUTED = TOOL | {
    "gen_ai.tool.call.id": "c1",
    "gen_ai.tool.call.arguments": '{"id": 7}',
    "gen_ai.tool.call.result": "at the door",
}
MCP = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "lookup", "mcp.session.id": "s"}
ARIZE = {
    "openinference.span.kind": "TOOL",
    "tool.name": "lookup",
    "tool.id": "c1",
    "input.value": '{"id": 7}',
    "output.value": "at the door",
}
ONCE = [("lookup", {"id": 7})]
DONE = [("at the door", None)]


def once(variant: str, stands: str, *others: Any) -> Trap:
    """A call that a message asks for and a span executes, and what else tells of it."""
    return Trap(7, variant, stands, sent(span(2, 1, CHAT | REQUEST), span(5, 1, EXECUTED, lasts=3), *others), calls, ONCE)


def joined(variant: str, stands: str, replies: list[Any], *executions: dict[str, Any], wanted: Any) -> Trap:
    """What a model asked for in one reply, and what was executed for it."""
    parts = [part for reply in replies for part in reply["parts"]]
    reply = {"gen_ai.output.messages": [{"role": "assistant", "parts": parts}]}
    spans = [span(3 + n, 1, TOOL | one) for n, one in enumerate(executions)]
    return Trap(
        8,
        variant,
        stands,
        sent(span(2, 1, CHAT | reply), *spans),
        lambda runs: [(call.name, call.id, call.arguments, call.error) for call in runs[0].tool_calls],
        wanted,
    )


def no_call(variant: str, stands: str, file: str, wanted: list[str]) -> Trap:
    return Trap(9, variant, stands, recorded(file), lambda runs: [call.name for call in runs[0].tool_calls], wanted)


def failure(variant: str, result: str, attributes: dict[str, Any] | None = None, *, status: int = 0, **fields: Any) -> Trap:
    """A result that says that the call failed, on a span that says nothing of it."""
    whole = attributes or TOOL | {"gen_ai.tool.call.result": result}
    return Trap(
        10,
        variant,
        f"result = {result!r}, status {'OK' if status else 'UNSET'}",
        sent(span(2, 1, whole, status_code=status, **fields)),
        lambda runs: [call.error is not None for call in runs[0].tool_calls],
        [True],
    )


def success(variant: str, result: str) -> Trap:
    return failure(variant, result)._replace(wanted=[False])


TOOL_MESSAGE = {"name": "lookup", "type": "tool", "content": "no such id", "tool_call_id": "c1", "status": "error"}
HOSTED = {
    "role": "assistant",
    "parts": [
        {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"query": "x"}},
        {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": "found"},
        {"type": "text", "content": "Found."},
    ],
}
HOSTED_ITEMS = {
    "object": "response",
    "output": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "mcp_call", "id": "mcp_1", "name": "lookup", "arguments": '{"id": 7}', "output": "door", "error": None},
        {"type": "mcp_call", "id": "mcp_2", "name": "lookup", "arguments": '{"id": 8}', "output": "", "error": "gone"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Found."}]},
    ],
}
HOSTED_BLOCKS = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]},
    {"type": "text", "text": "Found."},
]
KERNEL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "chat-prompt"}
OUTPUT_TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "final_result",
    "logfire.msg": "running output function: final_result",
}
TRAPS = [
    once("a message and its execution", "tool_call part, execute_tool span"),
    once("… and the client of an MCP server below it", "tools/call span below execute_tool", span(6, 5, MCP, at=-0.5)),
    once("… and the client of an MCP server beside it", "tools/call span within execute_tool's time", span(6, 1, MCP, at=-0.5)),
    once(
        "… and client and server",
        "two tools/call spans, one below the other",
        span(6, 1, MCP, at=-0.5),
        span(7, 6, MCP, at=-1.4, lasts=0.2),
    ),
    once(
        "… and another instrumentation's span beside it",
        "TOOL span with the same id, same time",
        span(6, 1, ARIZE, at=-1, lasts=3),
    ),
    once(
        "… and another instrumentation's span around it",
        "TOOL span above execute_tool",
        span(4, 1, ARIZE, lasts=9),
        span(6, 4, EXECUTED),
    ),
    Trap(
        7,
        "an MCP client without any other span of the call",
        "tools/call span alone",
        sent(span(2, 1, CHAT | REQUEST), span(5, 1, MCP)),
        lambda runs: [(call.name, call.arguments, call.error) for call in runs[0].tool_calls],
        [("lookup", {"id": 7}, None)],
    ),
    Trap(
        7,
        "without ids: joined by name and arguments",
        "tool_call part and execute_tool span, no id on either",
        sent(
            span(2, 1, CHAT | {"gen_ai.output.messages": [asks("")]}),
            span(3, 1, TOOL | {"gen_ai.tool.call.arguments": {"id": 7}, "gen_ai.tool.call.result": "at the door"}),
        ),
        outcomes,
        DONE,
    ),
    Trap(
        7,
        "one id for all calls of a run is not one call",
        "three execute_tool spans with id c1, one after the other and two at once",
        sent(
            *(span(2 + n, 1, EXECUTED) for n in range(2)),
            span(4, 1, EXECUTED | {"gen_ai.tool.call.arguments": '{"id": 8}'}, at=-1),
        ),
        lambda runs: len(runs[0].tool_calls),
        3,
    ),
    joined(
        "asked for and run by the provider",
        "server_tool_call and its response",
        [HOSTED],
        wanted=[("web_search", "s1", {"query": "x"}, None)],
    ),
    Trap(
        8,
        "run by the provider, OpenAI's responses",
        "items web_search_call, mcp_call",
        sent(span(2, 1, CHAT | {"gen_ai.output.messages": [HOSTED_ITEMS]})),
        lambda runs: [(call.name, call.arguments, call.result, call.error) for call in runs[0].tool_calls],
        [
            ("web_search", {"action": {"type": "search", "query": "x"}}, "completed", None),
            ("lookup", {"id": 7}, "door", None),
            ("lookup", {"id": 8}, "", "gone"),
        ],
    ),
    Trap(
        8,
        "run by the provider, Anthropic",
        "blocks server_tool_use, web_search_tool_result",
        sent(span(2, 1, CHAT | {"gen_ai.output.messages": [{"role": "assistant", "content": HOSTED_BLOCKS}]})),
        lambda runs: [(call.name, call.arguments, call.error) for call in runs[0].tool_calls],
        [("web_search", {"query": "x"}, None)],
    ),
    joined("asked for and never executed", "tool_call part alone", [asks()], wanted=[("lookup", "c1", {"id": 7}, NOT_EXECUTED)]),
    joined(
        "executed without an id, in another order",
        "two calls of a tool, spans without gen_ai.tool.call.id",
        [asks("a", {"id": 1}), asks("b", {"id": 2})],
        {"gen_ai.tool.call.arguments": '{"id": 2}'},
        {"gen_ai.tool.call.arguments": '{"id": 1.0}'},
        wanted=[("lookup", "b", {"id": 2}, None), ("lookup", "a", {"id": 1.0}, None)],
    ),
    joined(
        "executed without id and arguments",
        "two calls of a tool, spans with its name alone",
        [asks("a", {"id": 1}), asks("b", {"id": 2})],
        {},
        {},
        wanted=[("lookup", "a", {"id": 1}, None), ("lookup", "b", {"id": 2}, None)],
    ),
    joined(
        "a hand-over asked for by a call",
        "tool_call transfer_to_math, agent_handoff span",
        [asks("h1", {}, "transfer_to_math")],
        {"gen_ai.operation.name": "agent_handoff", "gen_ai.handoff.to_agent": "math"},
        wanted=[],
    ),
    Trap(
        8,
        "no ids, and wrappers that are literally unknown (ADOT)",
        "strands-evals-fixtures/openai_agents_genai_adot",
        recorded("strands-evals-fixtures/openai_agents_genai_adot_spans.json"),
        lambda runs: (len(runs), runs[0].place.cohort.agent, errors(runs)),
        (1, "coordinator", [("transfer_to_research_specialist", NOT_EXECUTED), ("multiply_numbers", None)]),
    ),
    no_call(
        "(merged tools)",
        "live/adk/parallel_calls: execute_tool (merged)",
        "live/adk/parallel_calls.jsonl",
        ["lookup_order", "lookup_order"],
    ),
    no_call(
        "final_answer (smolagents)",
        "live/smolagents/refund_ok: FinalAnswerTool",
        "live/smolagents/refund_ok.jsonl",
        ["lookup_order", "issue_refund"],
    ),
    no_call(
        "final_output (any-agent)", "any-agent/GOOGLE_trace", "any-agent/GOOGLE_trace.json", ["get_current_time", "write_file"]
    ),
    no_call("Step N (smolagents)", "live/smolagents/no_tools: Step 1", "live/smolagents/no_tools.jsonl", []),
    no_call("turn (openai-agents)", "live/openai-agents/no_tools: turn", "live/openai-agents/no_tools.jsonl", []),
    no_call("execute_event_loop_cycle (Strands)", "live/strands/no_tools", "live/strands/no_tools.jsonl", []),
    Trap(
        9,
        "an output tool (Pydantic AI)",
        "execute_tool final_result, 'running output function'",
        sent(span(2, 1, OUTPUT_TOOL, name="running output function", scope_name="pydantic-ai")),
        calls,
        [],
    ),
    Trap(
        9,
        "a prompt of a kernel (Semantic Kernel)",
        "execute_tool chat-prompt without the id of a call",
        sent(span(2, 1, KERNEL, scope_name="semantic_kernel.functions.kernel_function")),
        calls,
        [],
    ),
    failure("isError", '{"content": [{"type": "text", "text": "no such id"}], "isError": true}'),
    failure("isError, status OK", '{"content": [{"type": "text", "text": "no such id"}], "isError": true}', status=1),
    failure("a text that begins with Error:", "Error: no such id"),
    failure("a text that begins with Error:, status OK", "Error: no such id", status=1),
    failure("a field that is the status", '{"status": "error", "reason": "no such id"}'),
    failure("a field that is the status, as OTLP's own value", "kvlist", TOOL | {"gen_ai.tool.call.result": {"status": "error"}}),
    failure(
        "a message with a status (LangChain)",
        json.dumps(TOOL_MESSAGE),
        ARIZE | {"output.value": json.dumps(TOOL_MESSAGE)},
        status=1,
    ),
    failure("an object with an error (ADK)", '{"error": "no such id"}', scope_name="gcp.vertex.agent"),
    failure("the framework's own word (Strands)", "gen_ai.tool.status = 'error'", TOOL | {"gen_ai.tool.status": "error"}),
    failure("the framework's own word (OpenLLMetry)", "gen_ai.task.status = 'failure'", TOOL | {"gen_ai.task.status": "failure"}),
    Trap(
        10,
        "the text that the model was told, in a bare loop",
        "role tool, 'Error: no such id'",
        alone(
            span(1, 0, {}, name="main", lasts=9),
            span(2, 1, CHAT | {"gen_ai.output.messages": [asks()]}),
            span(
                3,
                1,
                CHAT
                | {
                    "gen_ai.input.messages": [
                        asks(),
                        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "Error: no such id"}]},
                    ],
                    "gen_ai.output.messages": [said("assistant", "It is gone.")],
                },
            ),
        ),
        errors,
        [("lookup", "Error: no such id")],
    ),
    success("a text about errors is none", "No errors found"),
    success("a list of errors that is empty is none", '{"errors": [], "isError": false}'),
]
