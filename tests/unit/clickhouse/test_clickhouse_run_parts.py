"""A run's agents, its cost, and the feedback that is about it: kept as they were, and read back for a person."""

from builders import T0
from unit.clickhouse.records import a_run, a_run_version, a_version

from pipeline.model.result import Feedback
from pipeline.model.run import Part
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
    assert (read.parts, read.tool_calls, read.cost_usd) == (parts, calls, 0.25)


def test_of_what_was_said_of_spans_a_run_shows_what_was_about_its_own(database: ClickHouse) -> None:
    of_span, of_another, of_trace = (
        Feedback("said", TRACE, name, -1.0, received_ns=T0, span_id=span_id)
        for name, span_id in (("a", "00000000000000a7"), ("b", "00000000000000b7"), ("c", ""))
    )
    write(database, [a_version(a_run_version(a_run("said"), feedback=("a", "c")))])
    insert_feedback(database, [of_span, of_another, of_trace])
    assert run_detail(database, "said", "").feedback == (of_span, of_trace)
