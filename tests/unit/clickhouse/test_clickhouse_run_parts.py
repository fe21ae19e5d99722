"""A run's agents, its cost, and the feedback that is about it: kept as they were, and read back for a person."""

from decimal import Decimal

import pytest
from builders import T0
from msgspec.structs import replace
from unit.clickhouse.records import a_run, a_run_version, a_version, retract

from pipeline.model.result import Feedback
from pipeline.model.run import Part
from pipeline.model.spending import Cost, HandOff
from pipeline.model.step import ToolCall, Usage
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.facts import insert_feedback
from sinks.clickhouse.run_detail import AmbiguousRunError, UnknownRunError, run_detail
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


def test_a_trace_is_named_for_the_one_run_in_it_and_of_several_all_are_listed(database: ClickHouse) -> None:
    alone, one, another = "a1" * 16, "b2" * 16, "c3" * 16
    single = a_run("by-trace", trace_id=alone)
    both = [a_run("by-trace", trace_id=one, head=head) for head in ("00000000000000a1", "00000000000000b2")]
    gone = a_run_version(a_run("by-trace", trace_id=another))
    write(database, [a_version(a_run_version(single), trace_id=alone, project="by-trace")])
    write(database, [a_version(*map(a_run_version, both), trace_id=one, project="by-trace")])
    write(database, [a_version(gone, trace_id=another, project="by-trace")])
    write(database, [a_version(facts=2, retractions=(retract(gone.run, single, 8),), trace_id=another, project="by-trace")])
    assert run_detail(database, "by-trace", alone.upper()).line.run_id == single.run_id
    with pytest.raises(AmbiguousRunError, match=f"trace {one} has several runs") as refused:
        run_detail(database, "by-trace", one)
    assert refused.value.candidates == tuple(sorted(run.run_id for run in both))
    for nothing in (another, alone[:8], "d4" * 16):
        with pytest.raises(UnknownRunError, match=f"no run '{nothing}'"):
            run_detail(database, "by-trace", nothing)
