"""Whatever text comes is stored and read back, and one row that nobody can read costs no other its reader (reliability R23, R82 to R86)."""

import pytest
from builders import a_log_record, a_span
from msgspec.structs import replace
from unit.clickhouse.records import a_run, a_run_version, a_version
from unit.otlp.wire_forms import request, text, wire_span

from collectors.otlp import json, protobuf
from pipeline.model.span import TRUNCATED_FIELDS, Event, Link, Span, seal
from sinks.clickhouse.board import scoreboard
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.fact_rows import log_record_row, span_row
from sinks.clickhouse.facts import insert_spans
from sinks.clickhouse.rows import insert
from sinks.clickhouse.run_detail import run_detail
from sinks.clickhouse.run_rows import run_rows
from sinks.clickhouse.traces import load

HOSTILE = {
    "nul": "a\x00b",
    "bidi": "\u202eevil\u202c",
    "controls": "\x1b[31m\x07\x9b\u2028",
    "noncharacter": "\ufffe\U0010ffff",
    "forms": "e\u0301 é \ufb01nd ｆｕｌｌ",
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "sql": "'; DROP TABLE spans; -- {x:String} \\' `%`",
    "json": '{"a": "\\ud83d"}',
    "": "empty key",
}


def _loaded(database: ClickHouse, span: Span) -> Span:
    key = span.project, span.trace_id
    return next(one for one in load(database, [key])[key].spans if one.span_id == span.span_id)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_back_as_it_was_sent(database: ClickHouse, name: str) -> None:
    said = HOSTILE[name]
    span = seal(
        replace(
            a_span(project=f"hostile {name}"),
            name=said,
            status_message=said,
            trace_state=said,
            attributes={said: said, "nested": [{said: [said]}]},
            events=(Event(said, 1, {said: said}),),
            links=(Link("", "", {said: said}),),
            resource={said: said},
            scope_name=said,
        )
    )
    insert_spans(database, [span])
    assert _loaded(database, span) == span


def test_what_is_no_text_at_all_is_stored_with_replacement_characters(database: ClickHouse) -> None:
    body = request(wire_span(attributes=[text("said", "five!")])).SerializeToString().replace(b"five!", b"fiv\xff\xfe")
    from_protobuf = protobuf.decode(body, "bytes", 1).spans
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","spanId":"%s","name":"\\ud83d \xff"}]}]}]}'
    from_json = json.decode(body % (b"ab" * 16, b"cd" * 8), "bytes", 1).spans
    insert_spans(database, [*from_protobuf, *from_json])
    (one,), (other,) = from_protobuf, from_json
    assert _loaded(database, one).attributes["said"] == "fiv\ufffd\ufffd"
    assert _loaded(database, other).name == "\ufffd \ufffd"


@pytest.mark.parametrize("broken", ["", "{", "[]", "null", '{"a": "\\ud83d"}', "[" * 5000, '"text"', "{}}"])
def test_a_row_that_nobody_can_read_costs_no_other_its_reader(database: ClickHouse, broken: str) -> None:
    project = f"broken {broken[:20]}"
    good, bad = a_span("00000000000000a1", project=project), a_span("00000000000000b2", project=project)
    rows = dict.fromkeys(("attributes", "events", "links", "resource"), broken)
    insert(database, "spans", [span_row(good), span_row(bad) | rows])
    insert(database, "log_records", [log_record_row(a_log_record(project=project)) | {"attributes": broken, "resource": broken}])
    runs = run_rows(a_version(a_run_version(a_run(project)), a_run_version(a_run(project, head="b7"))))
    insert(database, "runs", [runs[0], runs[1] | {"tool_calls": broken}])
    stored = load(database, [(project, good.trace_id)])[project, good.trace_id]
    assert stored.spans[0] == good
    kept = stored.spans[1]
    assert (kept.span_id, kept.name, kept.content_hash) == (bad.span_id, bad.name, bad.content_hash)
    if broken != "[]":
        assert (kept.events, kept.links) == ((), ())
    assert kept.attributes == {TRUNCATED_FIELDS: ["attributes"]}
    assert len(stored.log_records) == 1
    assert len(scoreboard(database, project)) == 2
    assert {len(run_detail(database, project, row["run_id"]).tool_calls) for row in runs} == {0, 1}
