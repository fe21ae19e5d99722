"""What users of such systems reported of tokens, costs and tool calls (reliability, sections 2.5 and 2.6): each fault with its whole kind.

With ``-s`` the table is printed: the number in the register, what stands in the spans, and what must come out.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from builders import T0, a_span
from recordings import runs_of
from run_builders import REFUND, a_call, a_run
from traps import AGENT, CHAT, TOOL, span

from collectors.dialects import read
from pipeline.model.reference import Reference, ReferenceCall
from pipeline.model.result import Outcome
from pipeline.model.run import Ended, Run
from pipeline.model.span import Event, Span
from pipeline.model.step import StepKind, ToolDefinition, Usage
from pipeline.scorers.answer import answer_present
from pipeline.scorers.arguments import invalid_arguments
from pipeline.scorers.cost import cost_of
from pipeline.scorers.hallucination import argument_hallucination_rate
from pipeline.scorers.loops import loops
from pipeline.scorers.prices import PricesSettings, PriceTable
from pipeline.scorers.reference.matching import tool_call_accuracy
from pipeline.scorers.reference.selection import plan_adherence, tool_selection_f1
from pipeline.scorers.tool_errors import tool_errors

PRICES = PriceTable(
    PricesSettings.model_validate({"models": {"m": {"input": 1, "output": 2, "cached_input": "0.1", "cache_write": "1.25"}}})
)
GIVEN, PRODUCED = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
READ, WRITTEN, REASONED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.reasoning.output_tokens",
)
TOTAL = "gen_ai.usage.total_tokens"
OUTER, INNER = {"openinference.span.kind": "LLM", "llm.model_name": "m"}, CHAT


class Fault(NamedTuple):
    """One variant of a reported fault: what is found where it stands, and what must be."""

    item: str
    variant: str
    found: Callable[[], Any]
    wanted: Any

    def __str__(self) -> str:
        """As a line of the table."""
        return f"{self.item:<5} {self.variant:<76} {self.wanted!r}"


def said(given: int, produced: int) -> dict[str, Any]:
    return {GIVEN: given, PRODUCED: produced}


def desk(*spans: Span, **attributes: Any) -> Run:
    """The run of an agent with these spans below it."""
    (run,) = runs_of([span(1, 0, AGENT | attributes, lasts=500), *spans])
    return run


def tokens(*spans: Span, **attributes: Any) -> tuple[int | None, int | None]:
    usage = desk(*spans, **attributes).usage
    return usage.input, usage.output


def usage_of(attributes: dict[str, Any], scope: str = "", name: str = "span") -> Usage | None:
    return read(a_span(attributes=attributes, scope_name=scope, name=name)).usage


def cost(*spans: Span) -> Decimal | str | None:
    found = cost_of(desk(*spans).billed, PRICES)
    return found.unknown.partition(":")[0] if found.usd is None else found.usd * 1_000_000


def attempts(*spans: Span) -> tuple[int, int, tuple[int | None, int | None], Any]:
    """How many model calls, how many of them only again, the tokens of all, and what they cost in millionths."""
    run = desk(*spans)
    return run.model_calls, run.retries, (run.usage.input, run.usage.output), cost(*spans)


def failed(number: int, why: str, attributes: dict[str, Any] | None = None, under: int = 1) -> Span:
    return span(number, under, CHAT | {"error.type": why} | (attributes or {}), status_code=2)


def executed(**attributes: Any) -> Any:
    """What is known of the one call of a tool with these attributes on its span, and of the run."""
    events = attributes.pop("events", ())
    status = attributes.pop("status", 0)
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return desk(span(2, 1, TOOL | named, events=events, status_code=status)).tool_calls[0]


def exception(name: str, message: str = "boom") -> tuple[Event, ...]:
    return (Event("exception", T0, {"exception.type": f"lib.errors.{name}", "exception.message": message}),)


def asked(arguments: Any, *, parameters: Any = None, answer: str = "Done.") -> Run:
    """A run whose model asked for a call with this in the place of its arguments, and then answered."""
    call = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": arguments}]}
    tool = {"type": "function", "name": "lookup", "parameters": parameters or {"type": "object", "properties": {}}}
    first = {"gen_ai.output.messages": json.dumps([call]), "gen_ai.tool.definitions": json.dumps([tool])}
    last = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}])}
    return desk(
        span(2, 1, CHAT | first),
        span(3, 1, TOOL | {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "ok"}),
        span(5, 1, CHAT | last),
    )


def call_of(run: Run) -> tuple[Any, str]:
    return run.tool_calls[0].arguments, run.tool_calls[0].raw_arguments


def validity(run: Run) -> tuple[Any, Any]:
    """What is said of the arguments, and that the rest of the run is scored all the same."""
    found = invalid_arguments(run)
    return (None if found is None else found.outcome), answer_present(run).outcome


def repeats(one: str, other: str) -> float | None:
    calls = (
        span(number, 1, TOOL | {"gen_ai.tool.call.arguments": text, "gen_ai.tool.call.result": "ok"})
        for number, text in ((2, one), (3, other))
    )
    found = loops(desk(*calls))
    return None if found is None else found.value


def f1(wanted: str, called: str) -> float | None:
    reference = Reference(calls=tuple(ReferenceCall(name) for name in wanted))
    return tool_selection_f1(a_run(*(a_call(name, {"x": 1}) for name in called)), reference).value


def of_tool(parameters: str) -> tuple[StepKind, str, Any]:
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "lookup", "tool.parameters": parameters}
    step = read(a_span(attributes=attributes))
    return step.kind, step.tool.name if step.tool else "", step.tool.arguments if step.tool else None


def cut(size: int, name: str, attributes: dict[str, Any]) -> tuple[bool, StepKind]:
    """A structure that its sender cut after so many characters: whether that is said, and what the step is all the same."""
    text = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 2 * size}]}])[:size]
    step = read(a_span(attributes=attributes | {name: text}))
    return "truncated" in step.flags, step.kind


CACHED = {
    "OpenTelemetry": ({**CHAT, GIVEN: 17903, PRODUCED: 1, READ: 17817}, "", ""),
    "OpenTelemetry, flat": ({**CHAT, GIVEN: 17903, PRODUCED: 1, "gen_ai.usage.cache_read_input_tokens": 17817}, "", ""),
    "OpenInference": ({"openinference.span.kind": "LLM", "llm.token_count.prompt": 17903, "llm.token_count.completion": 1, "llm.token_count.total": 17904, "llm.token_count.prompt_details.cache_read": 17817}, "", ""),
    "Vercel AI SDK": ({"ai.operationId": "ai.generateText.doGenerate", "ai.usage.inputTokens": 17903, "ai.usage.outputTokens": 1, "ai.usage.cachedInputTokens": 17817}, "ai", "ai.generateText.doGenerate"),
    "Langfuse": ({"langfuse.observation.type": "generation", "langfuse.observation.usage_details": json.dumps({"input": 17903, "output": 1, "total": 17904, "input_cached_tokens": 17817})}, "langfuse-sdk", ""),
    "MLflow": ({"mlflow.spanType": '"CHAT_MODEL"', "mlflow.chat.tokenUsage": json.dumps({"input_tokens": 17903, "output_tokens": 1, "cache_read_input_tokens": 17817})}, "", ""),
    "OpenAI Agents SDK": ({"type": "generation", "usage": json.dumps({"input_tokens": 17903, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 17817}})}, "openai-agents", ""),
}  # fmt: skip
COUNTS: list[tuple[str, str, dict[str, int], Usage]] = [
    ("R98", "both kinds of cache in input", {GIVEN: 100, PRODUCED: 10, READ: 60, WRITTEN: 30}, Usage(100, 10, 60, cache_written=30)),
    ("R98", "the same, with a total that says so", {GIVEN: 100, PRODUCED: 10, READ: 60, WRITTEN: 30, TOTAL: 110}, Usage(100, 10, 60, cache_written=30)),
    ("R98", "both kinds beside input, more than it", {GIVEN: 10, PRODUCED: 10, READ: 60, WRITTEN: 30}, Usage(100, 10, 60, cache_written=30)),
    ("R98", "only written, beside input: the first call", {GIVEN: 3, PRODUCED: 10, READ: 0, WRITTEN: 5000}, Usage(5003, 10, 0, cache_written=5000)),
    ("R98", "written under the old name", {GIVEN: 100, PRODUCED: 1, "gen_ai.usage.cache_creation.input_tokens": 30}, Usage(100, 1, cache_written=30)),
    ("R98", "less than input, and a total that counts it apart", {GIVEN: 100, PRODUCED: 10, READ: 60, TOTAL: 170}, Usage(160, 10, 60)),
    ("R98", "reasoning in output", {GIVEN: 5, PRODUCED: 100, REASONED: 90}, Usage(5, 100, reasoning=90)),
    ("R98", "reasoning beside output, more than it", {GIVEN: 5, PRODUCED: 10, REASONED: 90}, Usage(5, 100, reasoning=90)),
    ("R98", "reasoning beside output by the total", {GIVEN: 5, PRODUCED: 50, REASONED: 20, TOTAL: 75}, Usage(5, 70, reasoning=20)),
    ("R98", "cache and reasoning apart by the total", {GIVEN: 100, PRODUCED: 50, READ: 60, REASONED: 20, TOTAL: 230}, Usage(160, 70, 60, 20)),
    ("R101", "0 that is reported is 0", {GIVEN: 0, PRODUCED: 0}, Usage(0, 0)),
    ("R103", "both spellings, equal", {GIVEN: 7, PRODUCED: 3, "gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.completion_tokens": 3}, Usage(7, 3)),
    ("R103", "both spellings, and the old one says something else", {GIVEN: 7, PRODUCED: 3, "gen_ai.usage.prompt_tokens": 70}, Usage(7, 3)),
    ("R103", "only the old spelling", {"gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.completion_tokens": 3}, Usage(7, 3)),
    ("R103", "both spellings of what was read from a cache", {GIVEN: 9, PRODUCED: 1, READ: 4, "gen_ai.usage.cache_read_input_tokens": 4}, Usage(9, 1, 4)),
]  # fmt: skip
TEN, TWENTY = CHAT | said(10, 1), CHAT | said(20, 2)
FAULTS = [
    Fault("R94", "an agent's total over calls that say", lambda: tokens(span(2, 1, TEN), span(3, 1, TWENTY), **said(99, 99)), (30, 3)),
    Fault("R94", "an agent's total over calls that do not", lambda: tokens(span(2, 1, CHAT), span(3, 1, CHAT), **said(99, 9)), (99, 9)),
    Fault("R94", "totals of nested agents, no calls", lambda: tokens(span(2, 1, AGENT | {"gen_ai.agent.name": "sub"} | said(40, 4)), **said(99, 9)), (99, 9)),
    Fault("R94", "the total of a sub-agent alone, beside calls of the agent's own", lambda: tokens(span(2, 1, TEN), span(3, 1, AGENT | {"gen_ai.agent.name": "sub"} | said(40, 4)), **said(99, 9)), (50, 5)),
    Fault("R94", "a total over some calls that say and one that does not: the sum, said to be too small", lambda: (tokens(span(2, 1, TEN), span(3, 1, CHAT), **said(99, 9)), "usage_incomplete" in desk(span(2, 1, TEN), span(3, 1, CHAT)).flags), ((10, 1), True)),
    Fault("R94", "OpenInference's totals on the agent", lambda: tokens(span(2, 1, TEN), **{"llm.token_count.prompt": 99, "openinference.span.kind": "AGENT"}), (10, 1)),
    Fault("R95", "one call, 14,000 outside and 6,500 inside", lambda: tokens(span(2, 1, OUTER | said(14000, 10), lasts=5), span(3, 2, INNER | said(6500, 5))), (14000, 10)),
    Fault("R95", "one call that only the inner span counts", lambda: tokens(span(2, 1, OUTER, lasts=5), span(3, 2, INNER | said(6500, 5))), (6500, 5)),
    Fault("R95", "one call in three spans", lambda: tokens(span(2, 1, OUTER, lasts=9), span(3, 2, INNER | said(7, 1), lasts=5), span(4, 3, OUTER | said(6, 1))), (7, 1)),
    Fault("R95", "one call, two inner spans side by side", lambda: tokens(span(2, 1, OUTER, lasts=9), span(3, 2, INNER | said(7, 1), lasts=5), span(4, 2, OUTER | said(7, 1), lasts=3)), (7, 1)),
    *(Fault("R97", f"17,903 with 17,817 of them cached, {name}", lambda a=a, s=s, n=n: (u := usage_of(a, s, n)) and (u.input, u.cached, (u.input or 0) - (u.cached or 0)), (17903, 17817, 86)) for name, (a, s, n) in CACHED.items()),  # type: ignore[misc]
    *(Fault(item, variant, lambda a=a: usage_of(CHAT | a), wanted) for item, variant, a, wanted in COUNTS),  # type: ignore[misc]
    Fault("R100", "turned away with 429, then done", lambda: attempts(failed(2, "429"), span(3, 1, TEN)), (2, 1, (10, 1), 12)),
    Fault("R100", "turned away three times, then done", lambda: attempts(*(failed(n, "RateLimitError") for n in (2, 3, 4)), span(5, 1, TEN)), (4, 3, (10, 1), 12)),
    Fault("R100", "failed after it had been paid, then done", lambda: attempts(failed(2, "APIError", said(20, 2)), span(3, 1, TEN)), (2, 1, (30, 3), 36)),
    Fault("R100", "failed, and nobody knows whether it was paid", lambda: attempts(failed(2, "TimeoutError"), span(3, 1, TEN)), (2, 1, (10, 1), "usage_not_captured")),
    Fault("R100", "a gateway's two attempts inside of one call", lambda: attempts(span(2, 1, OUTER, lasts=9), failed(3, "APIError", said(20, 2), under=2), span(5, 2, TEN)), (1, 0, (30, 3), 36)),
    Fault("R100", "the same, and the gateway says what both took", lambda: attempts(span(2, 1, OUTER | said(30, 3), lasts=9), failed(3, "APIError", said(20, 2), under=2), span(5, 2, TEN)), (1, 0, (30, 3), 36)),
    Fault("R100", "two calls that both came through are two operations", lambda: attempts(span(2, 1, TEN), span(3, 1, TEN)), (2, 0, (20, 2), 24)),
    Fault("R101", "a stream without counts", lambda: (usage_of(CHAT), cost(span(2, 1, CHAT))), (None, "usage_not_captured")),
    Fault("R101", "a stream without counts beside a call with them", lambda: (tokens(span(2, 1, TEN), span(3, 1, CHAT)), cost(span(2, 1, TEN), span(3, 1, CHAT))), ((10, 1), "usage_not_captured")),
    Fault("R101", "only one of the counts", lambda: (tokens(span(2, 1, CHAT | {GIVEN: 7})), cost(span(2, 1, CHAT | {GIVEN: 7}))), ((7, None), "usage_not_captured")),
    Fault("R103", "system and provider.name, both", lambda: read(a_span(attributes=CHAT | {"gen_ai.system": "openai", "gen_ai.provider.name": "openai"})).provider, "openai"),
    Fault("R103", "system in capitals, provider.name beside it", lambda: read(a_span(attributes=CHAT | {"gen_ai.system": "OpenAI", "gen_ai.provider.name": "openai"})).provider, "openai"),
    Fault("R104", "wanted twice, called twice", lambda: (f1("aa", "aa"), tool_call_accuracy(a_run(a_call("a", {"x": 1}), a_call("a", {"x": 1})), Reference(calls=(ReferenceCall("a", {"x": 1}),) * 2)).value), (1.0, 1.0)),
    Fault("R104", "wanted twice, called once: half of it", lambda: (f1("aa", "a"), tool_call_accuracy(a_run(a_call("a", {"x": 1})), Reference(calls=(ReferenceCall("a", {"x": 1}),) * 2)).value), (0.667, 0.0)),
    Fault("R104", "how much of what was wanted was called, then", lambda: (found := plan_adherence(a_run(a_call("a")), Reference(calls=(ReferenceCall("a"),) * 2))) and found.value, 0.5),
    Fault("R104", "wanted twice among others", lambda: f1("aab", "aab"), 1.0),
    Fault("R106", "no arguments wanted, none given", lambda: tool_call_accuracy(a_run(a_call("a", {})), Reference(calls=(ReferenceCall("a", {}),))).value, 1.0),
    Fault("R106", "no arguments wanted, some given", lambda: tool_call_accuracy(a_run(a_call("a", {"x": 1})), Reference(calls=(ReferenceCall("a", {}),))).value, 0.0),
    Fault("R106", "no arguments are equal to no arguments", lambda: (found := loops(a_run(a_call("a", {}), a_call("a", {})))) and found.value, 1.0),
    *(Fault("R107", f"without calls there is nothing for {name}", lambda measure=measure: measure(a_run(tools=(REFUND,))), None) for name, measure in (("invalid_arguments", invalid_arguments), ("argument_hallucination_rate", argument_hallucination_rate), ("tool_errors", tool_errors), ("loops", loops))),  # type: ignore[misc]
    Fault("R107", "nor for plan_adherence without a plan", lambda: plan_adherence(a_run(), Reference(calls=())), None),
    Fault("R109", "tool.parameters is a list", lambda: of_tool("[1,2,3]"), (StepKind.TOOL, "lookup", [1, 2, 3])),
    Fault("R109", "tool.parameters is null", lambda: of_tool("null"), (StepKind.TOOL, "lookup", None)),
    Fault("R109", "tool.parameters is a number", lambda: of_tool("7")[:2], (StepKind.TOOL, "lookup")),
    Fault("R109", "tool.parameters is no JSON", lambda: of_tool("{x")[:2], (StepKind.TOOL, "lookup")),
    Fault("R110", "the same JSON, spaced otherwise", lambda: repeats('{"command":"pwd"}', '{ "command" : "pwd" }'), 1.0),
    Fault("R110", "the same JSON in another order", lambda: repeats('{"a":1,"b":[2]}', '{"b": [2.0], "a": 1}'), 1.0),
    Fault("R110", "two numbers that are one as floats", lambda: repeats('{"id":9007199254740993}', '{"id":9007199254740992}'), 0.0),
    Fault("R110", "two numbers of more than 64 bits", lambda: repeats('{"id":123456789012345678901234567890}', '{"id":123456789012345678901234567891}'), 0.0),
    Fault("R112", 'arguments: "" of a tool that takes none', lambda: (call_of(asked("")), validity(asked(""))), (({}, ""), (Outcome.PASS, Outcome.PASS))),
    Fault("R112", "arguments: white space", lambda: call_of(asked(" \n")), ({}, "")),
    Fault("R112", 'arguments: "" of a tool that takes one: none was given', lambda: validity(asked("", parameters=REFUND.schema)), (Outcome.FAIL, Outcome.PASS)),
    Fault("R112", "arguments: {}", lambda: call_of(asked({})), ({}, "")),
    Fault("R113", "arguments that end too early", lambda: (call_of(asked('{"a":')), validity(asked('{"a":'))), ((None, '{"a":'), (Outcome.FAIL, Outcome.PASS))),
    Fault("R113", "the same on the span of the tool: they may have been cut on the way", lambda: (executed(**{"gen_ai.tool.call.arguments": '{"a":'}).raw_arguments, "truncated" in desk(span(2, 1, TOOL | {"gen_ai.tool.call.arguments": '{"a":'})).flags), ('{"a":', True)),
    Fault("R115", "two objects, one behind the other", lambda: (call_of(asked('{"x":3}{"x":3}')), validity(asked('{"x":3}{"x":3}'))), ((None, '{"x":3}{"x":3}'), (Outcome.FAIL, Outcome.PASS))),
    Fault("R115", "two calls' arguments run together", lambda: (call_of(asked('{"x":3},{"y":4}')), validity(asked('{"x":3},{"y":4}'))), ((None, '{"x":3},{"y":4}'), (Outcome.FAIL, Outcome.PASS))),
    Fault("R115", "an object and words", lambda: call_of(asked('{"x":3} and so on')), (None, '{"x":3} and so on')),
    Fault("R116", "gen_ai.tool.status = error", lambda: executed(gen_ai__tool__status="error").error, "error"),
    Fault("R116", "gen_ai.task.status = failure", lambda: executed(gen_ai__task__status="failure").error, "error"),
    Fault("R116", "the result says isError", lambda: executed(gen_ai__tool__call__result='{"isError": true, "content": [{"type": "text", "text": "gone"}]}').error, "gone"),
    Fault("R116", "the result begins with Error:", lambda: executed(gen_ai__tool__call__result="Error: gone").error, "Error: gone"),
    Fault("R116", "a message with status error", lambda: executed(gen_ai__tool__call__result='{"content": "gone", "tool_call_id": "c1", "status": "error"}').error, "gone"),
    Fault("R116", "an exception event, and no result", lambda: executed(events=exception("KeyError")).error, "KeyError: boom"),
    Fault("R116", "an exception event, and its words for a result", lambda: executed(events=exception("KeyError"), gen_ai__tool__call__result="it went boom").error, "KeyError: boom"),
    Fault("R116", "an exception that was caught, and a result", lambda: executed(events=exception("KeyError"), gen_ai__tool__call__result="42").error, None),
    Fault("R116", "an exception that only waits for a person", lambda: executed(events=exception("GraphInterrupt")).error, None),
    Fault("R116", "an error type alone", lambda: executed(error__type="ValueError").error, "ValueError"),
    Fault("R116", "a result that speaks of errors", lambda: executed(gen_ai__tool__call__result="0 errors found").error, None),
    Fault("R118", "status OK and an error type on a tool", lambda: executed(status=1, error__type="ValueError").error, "ValueError"),
    Fault("R118", "status OK and an exception event on a tool", lambda: executed(status=1, events=exception("KeyError")).error, "KeyError: boom"),
    Fault("R118", "status OK and an exception event on a model call without a reply", lambda: (run := desk(span(2, 1, CHAT, status_code=1, events=exception("APIError")))) and (run.ended, run.error), (Ended.ERROR, "APIError: boom")),
    Fault("R118", "status OK and an exception event on the agent", lambda: (run := runs_of([span(1, 0, AGENT, status_code=1, events=exception("APIError"))])[0]) and (run.ended, run.error), (Ended.ERROR, "APIError: boom")),
    Fault("R119", "nothing but an operation: a tool", lambda: read(a_span(attributes={"gen_ai.operation.name": "execute_tool"})).kind, StepKind.TOOL),
    Fault("R119", "nothing but an operation: a model", lambda: read(a_span(attributes={"gen_ai.operation.name": "chat"})).kind, StepKind.MODEL),
    Fault("R119", "nothing but an operation: an agent", lambda: read(a_span(attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})).kind, StepKind.AGENT),
    Fault("R119", "an empty type beside the operation", lambda: read(a_span(attributes={"mlflow.spanType": '""', "gen_ai.operation.name": "chat"})).kind, StepKind.MODEL),
    *(Fault("R119", f"{name} cut after {size:,} characters", lambda size=size, name=name, a=a: cut(size, name, a), (True, kind)) for size in (1028, 65536) for name, a, kind in (("gen_ai.input.messages", CHAT, StepKind.MODEL), ("gen_ai.output.messages", CHAT, StepKind.MODEL), ("gen_ai.tool.call.arguments", TOOL, StepKind.TOOL), ("gen_ai.tool.call.result", TOOL, StepKind.TOOL))),  # type: ignore[misc]
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.item} {fault.variant}")
def test_fault(fault: Fault) -> None:
    print(fault)  # noqa: T201 - with -s the table is read
    assert fault.found() == fault.wanted


def test_each_item_of_the_register_is_tried_in_several_forms() -> None:
    items = [
        "R94",
        "R95",
        "R97",
        "R98",
        "R100",
        "R101",
        "R103",
        "R104",
        "R106",
        "R107",
        "R109",
        "R110",
        "R112",
        "R113",
        "R115",
        "R116",
        "R118",
        "R119",
    ]
    counts = {item: sum(one.item == item for one in FAULTS) for item in items}
    assert {item: count for item, count in counts.items() if count < 2} == {}
    assert {one.item for one in FAULTS} == set(items)


def test_a_tool_that_takes_nothing_is_offered_as_one() -> None:
    assert asked("").tools == (ToolDefinition("lookup", {"type": "object", "properties": {}}),)
