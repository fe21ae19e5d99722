"""A run's agents, its cost, and the feedback that is about it: kept as they were, and read back for a person."""

from decimal import Decimal

from builders import T0
from msgspec.structs import replace
from unit.clickhouse.records import a_run, a_run_version, a_version

from pipeline.model.result import Feedback
from pipeline.model.run import Part
from pipeline.model.spending import Cost, HandOff
from pipeline.model.step import ToolCall, Usage
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.facts import insert_feedback
from sinks.clickhouse.run_detail import run_detail
from sinks.clickhouse.writer import write

TRACE = "ab" * 16


def test_each_agent_of_a_run_is_read_with_what_it_did_and_spent(database: ClickHouse) -> None:
    parts = (
        Part("", "desk", steps=3, model_calls=1, tool_calls=1, failed_calls=0, usage=Usage(10, 1, cost_usd=0.25)),
        Part("a%2Fb", "a/b", steps=2, model_calls=1, tool_calls=1, failed_calls=1, usage=Usage()),
    )
    calls = (ToolCall("lookup", "c1"), ToolCall("refund", "c2", error="no", agent="a%2Fb"))
    write(database, [a_version(a_run_version(a_run("parts", parts=parts, tool_calls=calls, usage=Usage(10, 1, cost_usd=0.25))))])
    read = run_detail(database, "parts", "")
    assert (read.parts, read.tool_calls, read.reported_cost_usd) == (parts, calls, 0.25)


def test_a_runs_cost_is_read_to_the_last_digit_with_the_prices_it_is_by(database: ClickHouse) -> None:
    one = a_run("cost", task_kind="refund", retries=2, hand_offs=(HandOff("desk", "refunds"), HandOff("refunds", "desk → 2")))
    for usd in ("0.003015", "0", "1200", "0.000000000001"):
        write(database, [a_version(a_run_version(one, cost=Cost(Decimal(usd), prices="2026-11-30-0badcafe")))])
        read = run_detail(database, "cost", "")
        assert (f"{read.cost_usd:f}", read.cost_unknown, read.cost_prices) == (usd, "", "2026-11-30-0badcafe")
        one = replace(one, end_ns=one.end_ns + 1)
    assert (read.task_kind, read.retries, read.hand_offs, read.reported_cost_usd) == ("refund", 2, one.hand_offs, None)


def test_a_cost_that_is_not_known_is_read_with_its_reason(database: ClickHouse) -> None:
    unknown = Cost(unknown="price_unknown: the price table has no model-a", prices="2026-11-30-0badcafe")
    write(
        database, [a_version(a_run_version(a_run("costs"), cost=unknown), a_run_version(a_run("costs", head="b2"), cost=Cost()))]
    )
    runs = {
        one.line.run_id: one
        for one in (run_detail(database, "costs", a_run("costs", head=head).run_id) for head in ("00000000000000a1", "b2"))
    }
    told = {(one.cost_usd, one.cost_unknown, one.cost_prices) for one in runs.values()}
    assert told == {
        (None, unknown.unknown, unknown.prices),
        (None, "price_unknown: graded before there were prices", ""),
    }


def test_of_what_was_said_of_spans_a_run_shows_what_was_about_its_own(database: ClickHouse) -> None:
    of_span, of_another, of_trace = (
        Feedback("said", TRACE, name, -1.0, received_ns=T0, span_id=span_id)
        for name, span_id in (("a", "00000000000000a7"), ("b", "00000000000000b7"), ("c", ""))
    )
    write(database, [a_version(a_run_version(a_run("said"), feedback=("a", "c")))])
    insert_feedback(database, [of_span, of_another, of_trace])
    assert run_detail(database, "said", "").feedback == (of_span, of_trace)
