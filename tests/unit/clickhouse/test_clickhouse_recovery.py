"""What an owner has to take up again: open traces, pending runs, rows left behind at a former place."""

import re

import pytest
from builders import T0, a_log_record, a_span
from msgspec.structs import replace
from unit.clickhouse.records import COHORT, M0, Recorder, a_result, a_run, a_run_version, a_version, retire, retract

from pipeline.model import ids
from pipeline.model.result import Feedback, Judgment, Outcome
from pipeline.model.run import Cohort, Place, RunClass
from pipeline.model.time import DAY, MINUTE
from pipeline.model.version import Retired
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.facts import insert_feedback, insert_judgments, insert_log_records, insert_spans
from sinks.clickhouse.recovery import misplaced_traces, open_traces, open_traces_of, pending_traces, unfinished_traces
from sinks.clickhouse.result_rows import results_of_trace
from sinks.clickhouse.rows import insert
from sinks.clickhouse.run_rows import place_rows, run_rows, trace_row
from sinks.clickhouse.writer import write

TRACE = "ab" * 16


def open_now(database: ClickHouse, project: str) -> bool:
    found = (project, TRACE) in open_traces(database)
    assert found == ((project, TRACE) in open_traces_of(database, project))
    return found


def test_a_trace_is_open_while_it_has_more_distinct_facts_than_its_traces_row_says(database: ClickHouse) -> None:
    one, other = (a_span(span_id, project="open") for span_id in ("a1", "a2"))
    insert_spans(database, [one])
    assert open_now(database, "open")
    write(database, [a_version(a_run_version(a_run("open")), facts=1)])
    assert not open_now(database, "open")
    insert_spans(database, [replace(one, received_ns=one.received_ns + 1)])
    assert not open_now(database, "open"), "the same fact received again is no new fact"
    insert_spans(database, [other])
    assert open_now(database, "open")


def test_judgments_and_feedback_are_facts_too(database: ClickHouse) -> None:
    insert_spans(database, [a_span(project="facts")])
    write(database, [a_version(a_run_version(a_run("facts")), facts=1)])
    insert_judgments(database, [Judgment("facts", TRACE, "r", 4, "t", "c", "tone", Outcome.PASS, 4.0, judged_ns=T0)])
    assert open_now(database, "facts")
    write(database, [a_version(a_run_version(a_run("facts"), 8), facts=2)])
    assert not open_now(database, "facts")
    insert_feedback(database, [Feedback("facts", TRACE, "f", -1.0, received_ns=T0)])
    assert open_now(database, "facts")


def test_a_trace_without_runs_that_is_graded_is_not_open(database: ClickHouse) -> None:
    insert_spans(database, [a_span(project="no-run")])
    write(database, [a_version(project="no-run", not_an_agent_run=True)])
    assert not open_now(database, "no-run")


def test_closed_runs_whose_judgment_is_outstanding_are_pending_until_they_are_not(database: ClickHouse) -> None:
    run = a_run("pending")
    write(database, [a_version(a_run_version(run, 4, run_class=RunClass.PENDING))])
    assert ("pending", TRACE) in pending_traces(database)
    write(database, [a_version(a_run_version(run, 8), facts=2)])
    assert ("pending", TRACE) not in pending_traces(database)


def test_a_retracted_run_is_pending_no_more(database: ClickHouse) -> None:
    run, heir = a_run("gone", head="a1"), a_run("gone", head="a2")
    write(database, [a_version(a_run_version(run, 4, run_class=RunClass.PENDING))])
    write(database, [a_version(a_run_version(heir, 8), facts=2, retractions=(retract(run, heir, 8),))])
    assert ("gone", TRACE) not in pending_traces(database)


def test_a_move_that_retired_its_rows_leaves_nothing_misplaced(database: ClickHouse) -> None:
    run = a_run("clean")
    before = a_run_version(run, 4, a_result("x"), a_result("y"))
    write(database, [a_version(before)])
    moved = replace(run, place=Place(COHORT, M0 + DAY))
    write(database, [a_version(a_run_version(moved, 8, a_result("x"), a_result("y")), facts=2, retired=retire(before, 8))])
    assert ("clean", TRACE) not in misplaced_traces(database)


@pytest.mark.parametrize("place", [Place(COHORT, M0 + MINUTE), Place(COHORT, M0 + DAY), Place(Cohort("other"), M0)])
def test_rows_that_count_at_a_place_their_run_left_are_found(database: ClickHouse, place: Place) -> None:
    project = f"strays-{place.cohort.agent}-{place.minute_ns}"
    run = a_run(project)
    before = a_run_version(run, 4, a_result("x"), a_result("y"))
    after = a_run_version(replace(run, place=place), 8, a_result("x"), a_result("y"))
    write(database, [a_version(after, facts=2, retired=retire(before, 8))])
    assert (project, TRACE) not in misplaced_traces(database)
    # A former owner that does not know yet that it is one, and is stopped before it writes the run.
    zombie = a_version(replace(before, version=12), facts=3)
    insert(database, "places", place_rows(zombie))
    insert(database, "results", results_of_trace(zombie))
    assert (project, TRACE) in misplaced_traces(database)
    write(database, [a_version(replace(after, version=16), facts=4, retired=retire(before, 16))])
    assert (project, TRACE) not in misplaced_traces(database)


def test_rows_that_count_for_a_retracted_run_are_found(database: ClickHouse) -> None:
    run, heir = a_run("heir", head="a1"), a_run("heir", head="a2")
    before = a_run_version(run, 4)
    write(database, [a_version(before)])
    write(database, [a_version(a_run_version(heir, 8), facts=2, retractions=(retract(run, heir, 8),))])
    assert ("heir", TRACE) in misplaced_traces(database)
    retired = tuple(Retired(one.key, 12) for one in retire(before, 12))
    write(database, [a_version(a_run_version(heir, 12), facts=3, retractions=(retract(run, heir, 12),), retired=retired)])
    assert ("heir", TRACE) not in misplaced_traces(database)


def test_rows_at_a_former_place_are_looked_for_among_runs_with_rows_inserted_since(database: ClickHouse) -> None:
    def stray(project: str, results_at: int, runs_at: int) -> bool:
        before = a_version(a_run_version(a_run(project), 4, a_result("x")))
        moved = a_run_version(replace(before.runs[0].run, place=Place(COHORT, M0 + DAY)), 8, a_result("x"))
        after = a_version(moved, facts=2)
        for version, results, runs in ((before, results_at, T0), (after, T0, runs_at)):
            insert(database, "places", place_rows(version))
            insert(database, "results", [row | {"inserted_at": results} for row in results_of_trace(version)])
            insert(database, "runs", [row | {"inserted_at": runs} for row in run_rows(version)])
        assert (project, TRACE) in misplaced_traces(database)
        return (project, TRACE) in misplaced_traces(database, since_ns=T0 + 1)

    assert not stray("swept", T0, T0)
    assert stray("late-row", T0 + 1, T0)
    assert stray("late-move", T0, T0 + 1)


def test_a_run_that_never_was_is_looked_for_in_traces_with_a_run_or_a_last_word_inserted_since(database: ClickHouse) -> None:
    def found(project: str, ghost_at: int, word_at: int) -> bool:
        half = a_version(a_run_version(a_run(project, head="a2"), 4), facts=1)
        whole = a_version(a_run_version(a_run(project), 12), facts=3)
        for version, at in ((half, ghost_at), (whole, word_at)):
            insert(database, "runs", [row | {"inserted_at": T0 if version is whole else at} for row in run_rows(version)])
            row = trace_row(version)
            assert row is not None
            insert(database, "traces", [row | {"inserted_at": at if version is whole else T0}])
        assert (project, TRACE) in misplaced_traces(database)
        return (project, TRACE) in misplaced_traces(database, since_ns=T0 + 1)

    assert not found("swept-ghost", T0, T0)
    assert found("late-ghost", T0 + 1, T0)
    assert found("late-word", T0, T0 + 1)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("spans", "received_at"),
        ("log_records", "received_at"),
        ("judgments", "judged_at"),
        ("feedback", "received_at"),
        ("runs", "inserted_at"),
        ("traces", "inserted_at"),
    ],
)
def test_what_is_new_is_found_by_an_index(database: ClickHouse, table: str, column: str) -> None:
    """Reading every part there is would make a start cost more as history grows."""
    insert_spans(database, [a_span(project="index")])
    insert_log_records(database, [a_log_record(project="index")])
    insert_judgments(database, [Judgment("index", TRACE, "r", 4, "t", "c", "tone", Outcome.PASS, 4.0, judged_ns=T0)])
    insert_feedback(database, [Feedback("index", TRACE, "f", -1.0, received_ns=T0)])
    write(database, [a_version(a_run_version(a_run("index")))])
    recorder = Recorder(database)
    unfinished_traces(recorder, since_ns=T0)
    condition = rf"FROM {table}\s+WHERE ({column} >= fromUnixTimestamp64Nano\({{since:Int64}}, 'UTC'\))"
    (asked,) = {found[1] for sql in recorder.queries if (found := re.search(condition, sql))}
    plan = database.query(f"EXPLAIN indexes = 1 SELECT * FROM {table} WHERE {asked}", {"since": T0})  # noqa: S608 - of our own SQL
    assert any(f"Name: {column}_range" in row["explain"] for row in plan)


def test_an_owner_is_told_of_its_own_buckets_only(database: ClickHouse) -> None:
    keys = [("buckets", f"{number:032x}") for number in range(8)]
    insert_spans(database, [a_span(project=project, trace_id=trace_id) for project, trace_id in keys])
    for key in keys:
        mine = {ids.bucket(*key)}
        found = [one for one in unfinished_traces(database, mine) if one[0] == "buckets"]
        assert found == sorted(one for one in keys if ids.bucket(*one) in mine)
    assert [one for one in unfinished_traces(database) if one[0] == "buckets"] == keys
    assert unfinished_traces(database, set()) == []


def test_the_same_trace_id_in_another_project_opens_nothing(database: ClickHouse) -> None:
    insert_spans(database, [a_span(project="mine"), a_span(project="yours"), a_span("a2", project="yours")])
    write(database, [a_version(a_run_version(a_run("mine")), facts=1)])
    assert not open_now(database, "mine")
    assert open_now(database, "yours")


def test_results_that_count_for_a_run_that_was_never_written_are_found(database: ClickHouse) -> None:
    known, unwritten = a_run("orphans", head="a1"), a_run("orphans", head="a2")
    write(database, [a_version(a_run_version(known, 4, a_result("x")))])
    orphan = a_run_version(unwritten, 4, a_result("x"))
    assert ("orphans", TRACE) not in misplaced_traces(database)
    # Its owner died between two inserts.
    insert(database, "places", place_rows(a_version(orphan)))
    insert(database, "results", results_of_trace(a_version(orphan)))
    for since in (0, T0):
        assert ("orphans", TRACE) in misplaced_traces(database, since_ns=since)
    write(database, [a_version(a_run_version(known, 8, a_result("x")), facts=2, retired=retire(orphan, 8))])
    assert ("orphans", TRACE) not in misplaced_traces(database)
