"""unknown_tools and invalid_arguments."""

import socket
from typing import Any

import pytest
from run_builders import REFUND, a_call, a_run, a_wish

from pipeline.model.result import Outcome
from pipeline.model.step import ToolCall, ToolDefinition
from pipeline.scorers.arguments import invalid_arguments
from pipeline.scorers.check import Finding
from pipeline.scorers.unknown_tools import unknown_tools

LOOKUP = ToolDefinition("lookup")


def test_calls_of_tools_that_were_not_offered_are_counted_executed_or_not() -> None:
    finding = unknown_tools(a_run(a_call("lookup"), a_wish("delete_customer"), a_call("delete_customer"), tools=(LOOKUP,)))
    assert finding is not None
    assert (finding.outcome, finding.value, finding.reason) == (Outcome.FAIL, 2.0, "called but not offered: delete_customer")


def test_without_an_offer_nobody_can_say_what_is_unknown() -> None:
    finding = unknown_tools(a_run(a_call("lookup"), a_call("refund")))
    assert finding is not None
    assert (finding.outcome, finding.value, finding.upper) == (Outcome.INSUFFICIENT_EVIDENCE, None, 2.0)
    assert finding.reason.startswith("tools_not_captured: ")


def test_offered_tools_pass_and_runs_without_calls_have_none() -> None:
    finding = unknown_tools(a_run(a_call("lookup"), tools=(LOOKUP,)))
    assert finding is not None
    assert (finding.outcome, finding.value) == (Outcome.PASS, 0.0)
    assert unknown_tools(a_run(tools=(LOOKUP,))) is None


def test_a_sub_agent_that_ran_was_there_to_be_called() -> None:
    finding = unknown_tools(a_run(a_call("refunds_desk"), tools=(LOOKUP,), agents=("refunds_desk",)))
    assert finding is not None
    assert finding.outcome is Outcome.PASS


def against(schema: dict[str, Any] | None, arguments: Any) -> Finding | None:
    return invalid_arguments(a_run(a_call("refund", arguments), tools=(ToolDefinition("refund", schema=schema),)))


@pytest.mark.parametrize(
    "arguments", [{"order_id": "A-1"}, {"order_id": "A-1", "amount": 42.5}, {"order_id": "A-1", "amount": 0.07}]
)
def test_arguments_that_validate_pass(arguments: dict[str, Any]) -> None:
    finding = against(REFUND.schema, arguments)
    assert finding is not None
    assert (finding.outcome, finding.value) == (Outcome.PASS, 0.0)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "'order_id' is a required property"),
        ({"order_id": 7}, "$.order_id: 7 is not of type 'string'"),
        ({"order_id": "A-1", "amount": 0.075}, "0.075 is not a multiple of 0.01"),
        ({"order_id": "A-1", "all": True}, "Additional properties are not allowed"),
        ([1, 2, 3], "is not of type 'object'"),
    ],
)
def test_arguments_that_do_not_validate_fail_and_say_why(arguments: Any, why: str) -> None:
    finding = against(REFUND.schema, arguments)
    assert finding is not None
    assert (finding.outcome, finding.value) == (Outcome.FAIL, 1.0)
    assert why in finding.reason
    assert finding.evidence.startswith("refund(")


@pytest.mark.parametrize("raw", ['{"a":', '{"x":3}{"x":3}', "order A-1"])
def test_arguments_that_do_not_parse_are_invalid_with_or_without_a_schema(raw: str) -> None:
    finding = invalid_arguments(a_run(ToolCall("refund", raw_arguments=raw)))
    assert finding is not None
    assert (finding.outcome, finding.evidence) == (Outcome.FAIL, f"refund({raw})")


def test_arguments_that_were_cut_on_the_way_prove_nothing() -> None:
    finding = invalid_arguments(a_run(ToolCall("refund", raw_arguments='{"a":'), flags=("truncated",)))
    assert finding is not None
    assert (finding.outcome, finding.value) == (Outcome.INSUFFICIENT_EVIDENCE, None)


def test_null_is_an_argument_that_was_captured() -> None:
    call = ToolCall("refund", raw_arguments="null")
    finding = invalid_arguments(a_run(call, tools=(REFUND,)))
    assert finding is not None
    assert finding.outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("call", "tools", "word"),
    [
        (a_call("refund"), (REFUND,), "arguments_not_captured"),
        (a_call("refund", {}), (), "tools_not_captured"),
        (a_call("refund", {}), (ToolDefinition("refund"),), "schema_not_captured"),
        (a_call("refund", {}), (ToolDefinition("refund", schema={"type": "str"}),), "schema_unusable"),
        (a_call("refund", {}), (ToolDefinition("refund", schema={"$ref": "#/nowhere"}),), "schema_unusable"),
        (a_call("refund", {}), (ToolDefinition("refund", schema={"$ref": "#"}),), "schema_unusable"),
        (a_call("refund", {}), (ToolDefinition("refund", schema={"$schema": []}),), "schema_unusable"),
        (a_call("refund", {"a": "x"}), (ToolDefinition("refund", schema={"patternProperties": {"(": {}}}),), "schema_unusable"),
    ],
)
def test_what_is_missing_is_named_and_no_number_is_made_of_it(
    call: ToolCall, tools: tuple[ToolDefinition, ...], word: str
) -> None:
    finding = invalid_arguments(a_run(call, tools=tools))
    assert finding is not None
    assert (finding.outcome, finding.value, finding.lower, finding.upper) == (Outcome.INSUFFICIENT_EVIDENCE, None, 0.0, 1.0)
    assert finding.reason.startswith(f"{word}: ")


def test_one_invalid_call_decides_whatever_is_unknown_of_the_others() -> None:
    finding = invalid_arguments(a_run(a_call("refund"), ToolCall("refund", raw_arguments="{"), tools=(REFUND,)))
    assert finding is not None
    assert finding.outcome is Outcome.FAIL


def test_tools_that_were_not_offered_have_no_schema_to_break() -> None:
    assert invalid_arguments(a_run(a_call("fly", {}), tools=(REFUND,))) is None
    assert invalid_arguments(a_run(tools=(REFUND,))) is None


def test_a_tool_offered_twice_accepts_what_either_offer_accepts() -> None:
    tools = (REFUND, ToolDefinition("refund", schema={"type": "object"}))
    finding = invalid_arguments(a_run(a_call("refund", {"all": True}), tools=tools))
    assert finding is not None
    assert finding.outcome is Outcome.PASS


def test_a_schema_that_points_elsewhere_makes_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        finding = against({"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"}, {})
        with pytest.raises(BlockingIOError):
            server.accept()
    assert finding is not None
    assert finding.outcome is Outcome.INSUFFICIENT_EVIDENCE
