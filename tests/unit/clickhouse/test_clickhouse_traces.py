"""Versions of traces in, in the order of effects; everything of a trace back, in a fixed number of queries."""

import pytest
from builders import T0, a_span
from msgspec.structs import replace
from unit.clickhouse.records import (
    COHORT,
    M0,
    PLACE,
    UNSAMPLED,
    Recorder,
    a_result,
    a_run,
    a_run_version,
    a_version,
    retire,
    retract,
    stored,
)

from pipeline.model.evidence import Found, Question, answered
from pipeline.model.result import Feedback, Judgment, Kind, Outcome
from pipeline.model.run import Cohort, Place, RunClass
from pipeline.model.time import DAY, MINUTE
from pipeline.model.version import Sampling, StoredRun, StoredTrace, TraceKey
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.facts import insert_evidence, insert_feedback, insert_judgments, insert_spans
from sinks.clickhouse.traces import BATCH, load, written
from sinks.clickhouse.writer import write

TRACE = "ab" * 16


def test_effects_come_in_order_with_one_insert_a_table_for_any_number_of_traces(database: ClickHouse) -> None:
    recorder = Recorder(database)
    versions = []
    for number in range(20):
        run, gone = (a_run("order", f"{number:032x}", head) for head in ("a1", "a2"))
        version = a_run_version(run, 8, a_result("one"), a_result("two"))
        versions.append(
            a_version(
                version, facts=2, retractions=(retract(gone, run, 8),), retired=retire(a_run_version(gone, 4, a_result("one")), 8)
            )
        )
    write(recorder, versions)
    assert recorder.inserts == [("places", 20), ("results", 60), ("transcripts", 20), ("runs", 40), ("traces", 20)]


def test_nothing_is_inserted_where_there_is_nothing_to_say(database: ClickHouse) -> None:
    recorder = Recorder(database)
    write(recorder, [])
    write(recorder, [a_version(project="silent", not_an_agent_run=True)])
    assert recorder.inserts == [("traces", 1)]


def test_a_trace_with_open_runs_has_no_traces_row_yet(database: ClickHouse) -> None:
    run = a_run("half")
    write(database, [a_version(a_run_version(run), close_reason=None)])
    assert stored(database, "traces", "half") == []
    assert written(database, [("half", TRACE), ("half", "00" * 16)]) == {("half", TRACE)}


def test_writing_a_version_twice_changes_nothing_that_a_reader_sees(database: ClickHouse) -> None:
    version = a_version(a_run_version(a_run("twice")))
    seen = []
    for _ in range(2):
        write(database, [version])
        tables = ("places", "results", "transcripts", "runs", "traces")
        rows = {table: database.query(f"SELECT * FROM {table} FINAL WHERE project = 'twice'") for table in tables}  # noqa: S608
        for row in (row for table in tables for row in rows[table]):
            del row["inserted_at"]
        seen.append(rows)
    assert seen[0] == seen[1]
    assert [len(rows) for rows in seen[1].values()] == [1, 1, 1, 1, 1]


def test_a_version_written_again_after_one_that_differs_is_the_row_again(database: ClickHouse) -> None:
    """Equal versions that differ come from a changed configuration; changing it back must not be taken for a repetition."""
    one = a_version(a_run_version(a_run("back"), 4, a_result(outcome=Outcome.PASS)))
    other = a_version(a_run_version(a_run("back"), 4, a_result(outcome=Outcome.FAIL)))
    for version in (one, other, one):
        write(database, [version])
    assert database.query("SELECT outcome FROM results FINAL WHERE project = 'back'") == [{"outcome": "pass"}]


def test_more_knowledge_wins_in_whatever_order_it_is_written(database: ClickHouse) -> None:
    run = a_run("knows")
    late = a_version(a_run_version(replace(run, answer="later"), 12, a_result(outcome=Outcome.FAIL)), facts=3)
    early = a_version(a_run_version(run, 4))
    write(database, [late])
    write(database, [early])
    assert database.query("SELECT answer FROM runs FINAL WHERE project = 'knows'") == [{"answer": "later"}]
    assert database.query("SELECT outcome FROM results FINAL WHERE project = 'knows'") == [{"outcome": "fail"}]
    assert load(database, [("knows", TRACE)])["knows", TRACE].graded_facts == 3


@pytest.mark.parametrize(
    ("kind", "sampling", "weight"),
    [
        (Kind.CODE, UNSAMPLED, 1.0),
        (Kind.JUDGED, Sampling("rate:0.25:1", sampled=True, inclusion_probability=0.25), 4.0),
        (Kind.COMPOSITE, Sampling("rate:0.25:1", sampled=True, inclusion_probability=0.25), 4.0),
        (Kind.VERDICT, UNSAMPLED, 0.0),
    ],
)
def test_weights_are_one_for_code_and_one_over_the_probability_for_what_was_sampled(
    database: ClickHouse, kind: Kind, sampling: Sampling, weight: float
) -> None:
    project = f"weight-{kind}-{weight}"
    write(database, [a_version(a_run_version(a_run(project), 4, a_result("d", kind), sampling=sampling))])
    assert [row["weight"] for row in stored(database, "results", project)] == [weight]


def test_a_retired_row_counts_for_nothing_and_keeps_the_kind_of_its_series(database: ClickHouse) -> None:
    run = a_run("retired")
    before = a_run_version(run, 4, a_result("d", Kind.JUDGED, value=4.0))
    moved = replace(run, place=Place(COHORT, M0 + MINUTE))
    write(database, [a_version(before)])
    write(
        database, [a_version(a_run_version(moved, 8, a_result("d", Kind.JUDGED, value=4.0)), facts=2, retired=retire(before, 8))]
    )
    rows = database.query(
        "SELECT toUnixTimestamp(minute) AS minute, weight, outcome, value, kind FROM results FINAL WHERE project = 'retired' ORDER BY minute"
    )
    second = M0 // 10**9
    assert rows == [
        {"minute": second, "weight": 0.0, "outcome": None, "value": None, "kind": "judged"},
        {"minute": second + 60, "weight": 1.0, "outcome": "pass", "value": 4.0, "kind": "judged"},
    ]


def everything(database: ClickHouse, project: str, trace_id: str) -> StoredTrace:
    """Store a trace with something in every field, and return what must come back."""
    spans = tuple(a_span(f"{number:016x}", project=project, trace_id=trace_id) for number in range(3))
    run, gone = a_run(project, trace_id, "a1"), a_run(project, trace_id, "a2", place=Place(Cohort("other"), M0 + DAY))
    judgment = Judgment(project, trace_id, run.run_id, 12, "t", "c2", "tone", Outcome.PASS, 4.0, judged_ns=T0)
    thumb = Feedback(project, trace_id, "f", 1.0, received_ns=T0)
    insert_spans(database, spans)
    insert_judgments(database, [judgment])
    read = answered(Question(project, trace_id, run.run_id, "payments", "c", "{}", "d"), Found.RECORD, T0, body="[]")
    insert_feedback(database, [thumb])
    insert_evidence(database, [read])
    first = a_run_version(run, 4, a_result("x"), a_result("y"))
    wrong = a_run_version(gone, 4, a_result("x"))
    write(database, [a_version(first, wrong)])
    moved = replace(run, place=Place(COHORT, M0 + MINUTE))
    second = a_run_version(
        moved, 20, a_result("x"), a_result("x", contract="c9"), run_class=RunClass.PENDING, requested_ns=T0, deadline_ns=T0 + DAY
    )
    retired = (*retire(first, 20), *retire(wrong, 20))
    write(database, [a_version(second, facts=5, retractions=(retract(gone, run, 20),), retired=retired)])
    transcript = second.transcript
    assert transcript is not None
    return StoredTrace(
        project=project,
        trace_id=trace_id,
        spans=spans,
        judgments=(judgment,),
        feedback=(thumb,),
        evidence=(read,),
        graded_facts=5,
        version=20,
        runs=tuple(
            sorted(
                (
                    StoredRun(
                        run.run_id,
                        20,
                        live=True,
                        transcript_hash=transcript.hash,
                        requested_ns=T0,
                        deadline_ns=T0 + DAY,
                        run_class="pending",
                    ),
                    StoredRun(gone.run_id, 20, live=False),
                ),
                key=lambda one: one.run_id,
            )
        ),
        result_keys=frozenset(one.key for one in (*retire(first, 0), *retire(wrong, 0), *retire(second, 0))),
    )


def test_a_trace_comes_back_with_all_that_was_ever_stored_of_it(database: ClickHouse) -> None:
    expected = everything(database, "whole", TRACE)
    assert load(database, [("whole", TRACE)]) == {("whole", TRACE): expected}


def test_a_trace_that_nobody_heard_of_comes_back_empty(database: ClickHouse) -> None:
    key = ("nobody", TRACE)
    assert load(database, [key]) == {key: StoredTrace(*key)}


def test_the_number_of_queries_does_not_grow_with_the_batch(database: ClickHouse) -> None:
    expected = {}
    for number in range(12):
        key: TraceKey = (f"batch-{number % 3}", f"{number:032x}")
        expected[key] = everything(database, *key)
    recorder = Recorder(database)
    assert load(recorder, [*expected, *expected]) == expected
    assert len(recorder.queries) == 9


def test_a_batch_greater_than_one_query_takes_is_split(database: ClickHouse) -> None:
    keys = [("many", f"{number:032x}") for number in range(BATCH + 1)]
    assert len(load(database, keys)) == BATCH + 1
    assert written(database, keys) == set()


def test_the_same_ids_in_two_projects_never_meet(database: ClickHouse) -> None:
    ours, theirs = everything(database, "ours", TRACE), everything(database, "theirs", TRACE)
    insert_spans(database, [a_span("00000000000000ff", project="theirs")])
    assert load(database, [("ours", TRACE)]) == {("ours", TRACE): ours}
    both = load(database, [("ours", TRACE), ("theirs", TRACE)])
    assert both["ours", TRACE] == ours
    assert both["theirs", TRACE] == replace(theirs, spans=(*theirs.spans, a_span("00000000000000ff", project="theirs")))


def test_results_are_looked_up_by_the_prefix_of_their_key(database: ClickHouse) -> None:
    """Reading whole parts for a few traces would make every late span cost more as history grows."""
    for number in range(30):
        run = a_run("prefix", f"{number:032x}", place=Place(PLACE.cohort, M0 + number * DAY))
        write(database, [a_version(a_run_version(run))])
    database.command("OPTIMIZE TABLE results FINAL")
    recorder = Recorder(database)
    load(recorder, [("prefix", f"{3:032x}")])
    (sql,) = (one for one in recorder.queries if "FROM results" in one)
    parameters = {
        "runs": [a_run("prefix", f"{3:032x}").run_id],
        "places": [("prefix", COHORT.id, (M0 + 3 * DAY) // 10**9)],
    }
    plan = "\n".join(row["explain"] for row in database.query(f"EXPLAIN indexes = 1 {sql}", parameters))
    assert "(project, cohort_id, minute) in 1-element set" in plan
