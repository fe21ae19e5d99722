"""Rows expire when their retention says so, by the same rules in every engine, and what is left of a run says nothing wrong of it."""

import re
import time

import pytest
from builders import a_log_record, a_span
from msgspec.structs import replace
from unit.clickhouse.records import a_result, a_run, a_run_version, a_version, retire, stored

from pipeline.config.retention import RUNS_LONGER, RetentionSettings
from pipeline.judges.votes import Vote, VoteKey, VoteState
from pipeline.model.evidence import Found, Question, answered
from pipeline.model.result import Feedback, Judgment, Outcome
from pipeline.model.time import DAY, SECOND
from pipeline.model.version import TraceVersion
from sinks.clickhouse.board import accounting
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.facts import insert_evidence, insert_feedback, insert_judgments, insert_log_records, insert_spans
from sinks.clickhouse.migrate import shipped
from sinks.clickhouse.result_rows import results_of_trace
from sinks.clickhouse.retention import FACTS, FOLDS, expressions, retain
from sinks.clickhouse.rows import insert, instant
from sinks.clickhouse.run_detail import run_detail
from sinks.clickhouse.run_rows import place_rows, run_rows, trace_row, transcript_rows
from sinks.clickhouse.traces import load, remember
from sinks.clickhouse.votes import VoteBuffer

NOW = time.time_ns()
"""The engines' own clock decides what has expired."""
TRACE = "ab" * 16
SETTINGS = RetentionSettings.model_validate({"spans": "30d", "projects": {"shop": "7d", "it's \\odd": "8d"}})
YOUNG, OLD = 1, -1
"""Days that are left, or have passed since."""


def _facts(database: ClickHouse, project: str, received_ns: int) -> None:
    insert_spans(database, [a_span(project=project, received_ns=received_ns)])
    insert_log_records(database, [a_log_record(project=project, received_ns=received_ns)])
    insert_judgments(database, [Judgment(project, TRACE, "r", 4, "t", "c", "tone", Outcome.PASS, 4.0, judged_ns=received_ns)])
    insert_feedback(database, [Feedback(project, TRACE, "f", 1.0, received_ns=received_ns)])
    question = Question(project, TRACE, "r", "payments", "c", "{}", "d")
    insert_evidence(database, [answered(question, Found.ABSENT, received_ns)])
    votes = VoteBuffer()
    votes.add(Vote(VoteKey(project, "r", "t", "c", "tone", 0, 0), VoteState.INTENT, at_ns=received_ns))
    votes.flush(database)


def _folds(database: ClickHouse, version: TraceVersion, inserted_ns: int) -> None:
    """Write a version as if it had been stored at a time."""
    at = {"inserted_at": instant(inserted_ns)}
    trace = trace_row(version)
    assert trace is not None
    rows = {
        "places": place_rows(version),
        "results": results_of_trace(version),
        "transcripts": transcript_rows([version]),
        "runs": run_rows(version),
        "traces": [trace],
    }
    for table, some in rows.items():
        insert(database, table, [row | at for row in some])


def _version(project: str, version: int = 4, outcome: Outcome = Outcome.PASS) -> TraceVersion:
    run = a_run(project)
    return a_version(a_run_version(run, version, a_result(outcome=outcome)), facts=version // 4, version=version)


def _merge(database: ClickHouse, *tables: str) -> None:
    for table in tables or [*FACTS, *FOLDS]:
        database.command(f"OPTIMIZE TABLE {table} FINAL")


def _counts(database: ClickHouse, project: str, tables: dict[str, str]) -> dict[str, int]:
    return {table: len(stored(database, table, project)) for table in tables}


@pytest.mark.parametrize(("project", "days"), [("default", 30), ("shop", 7), ("it's \\odd", 8)])
def test_facts_expire_by_when_they_came_and_folds_thirty_days_later(database: ClickHouse, project: str, days: int) -> None:
    retain(database, SETTINGS)
    kept, longer = days * DAY, days * DAY + RUNS_LONGER
    for name, left in (("young", YOUNG), ("old", OLD)):
        whose = f"{project}"
        trace = TRACE if name == "young" else "cd" * 16
        received = NOW - kept + left * DAY
        insert_spans(database, [a_span(project=whose, trace_id=trace, received_ns=received)])
        version = _version(whose)
        run = replace(a_run(whose, trace), run_id=f"{name}-{days}")
        version = replace(version, trace_id=trace, runs=(a_run_version(run, 4),))
        _folds(database, version, NOW - longer + left * DAY)
    _merge(database)
    assert [row["trace_id"] for row in stored(database, "spans", project)] == [TRACE]
    for table in FOLDS:
        assert {row["trace_id"] for row in stored(database, table, project)} == {TRACE}, table
    assert stored(database, "transcripts", project) == [], "they go with the spans"


def test_every_kind_of_fact_expires(database: ClickHouse) -> None:
    retain(database, SETTINGS)
    _facts(database, "kinds-young", NOW - 29 * DAY)
    _facts(database, "kinds-old", NOW - 31 * DAY)
    facts = {table: column for table, column in FACTS.items() if table != "transcripts"}
    _merge(database)
    assert _counts(database, "kinds-young", facts) == dict.fromkeys(facts, 1)
    assert _counts(database, "kinds-old", facts) == dict.fromkeys(facts, 0)


def test_what_is_known_is_not_told_again_and_what_changes_holds_for_what_is_there(database: ClickHouse) -> None:
    retain(database, SETTINGS)
    assert retain(database, SETTINGS) == []
    insert_spans(database, [a_span(project="changed", received_ns=NOW - 10 * DAY)])
    _merge(database, "spans")
    assert len(stored(database, "spans", "changed")) == 1
    shorter = RetentionSettings.model_validate({"spans": "9d"})
    assert sorted(retain(database, shorter)) == sorted([*FACTS, *FOLDS])
    _merge(database, "spans")
    assert stored(database, "spans", "changed") == []
    assert sorted(retain(database, SETTINGS)) == sorted([*FACTS, *FOLDS])


def test_no_version_outlives_the_one_that_superseded_it(database: ClickHouse) -> None:
    retain(database, SETTINGS)
    first, second = _version("versions", 4, Outcome.FAIL), _version("versions", 8, Outcome.PASS)
    # The second heard of an earlier span, and retires what the first said under another contract.
    before = a_run_version(a_run("versions"), 4, a_result(contract="former"))
    second = replace(second, runs=tuple(replace(one, run=replace(one.run, first_received_ns=1)) for one in second.runs))
    second = replace(second, retired=retire(before, 8))
    _folds(database, replace(first, runs=(*first.runs, before)), NOW - 61 * DAY)
    _folds(database, second, NOW - 59 * DAY)
    _merge(database)
    assert {row["version"] for table in ("runs", "results", "traces") for row in stored(database, table, "versions")} == {8}
    assert {row["contract"]: row["weight"] for row in stored(database, "results", "versions")} == {"c1": 1.0, "former": 0.0}
    assert accounting(database, "versions").judged == 1


def test_a_run_whose_spans_and_transcript_expired_is_still_shown(database: ClickHouse) -> None:
    retain(database, SETTINGS)
    _facts(database, "shown", NOW - 31 * DAY)
    version = _version("shown")
    _folds(database, version, NOW - 31 * DAY)
    _merge(database)
    run_id = version.runs[0].run.run_id
    detail = run_detail(database, "shown", run_id)
    assert (detail.line.run_id, detail.live, detail.request) == (run_id, True, version.runs[0].run.request)


def test_a_trace_that_is_remembered_is_kept_as_if_it_were_stored_now(database: ClickHouse) -> None:
    retain(database, SETTINGS)
    version = replace(_version("remembered"), first_received_ns=NOW - 59 * DAY)
    _folds(database, version, NOW - 59 * DAY)
    key = ("remembered", TRACE)
    before = load(database, [key])[key]
    remember(database, [key, ("remembered", "unheard-of")])
    assert load(database, [key])[key] == before
    _merge(database, "traces")
    (row,) = stored(database, "traces", "remembered")
    assert row["inserted_at"] > NOW - SECOND
    assert before.first_received_ns == NOW - 59 * DAY


def test_what_runs_add_up_to_and_what_people_decided_stays(database: ClickHouse) -> None:
    retain(database, SETTINGS)
    rows = database.query("SELECT name, engine_full FROM system.tables WHERE database = currentDatabase()")
    expiring = {row["name"] for row in rows if " TTL " in row["engine_full"]}
    assert expiring == {*FACTS, *FOLDS, "dead_letters", "dead_letter_replays"}


def test_every_table_that_expires_has_the_column_that_says_since_when() -> None:
    for table, column in {**FACTS, **FOLDS}.items():
        statements = [one for migration in shipped() for one in migration.statements if re.search(rf"\b{table}\b", one)]
        assert any(re.search(rf"\b{column}\b", one) for one in statements), table
    assert expressions(RetentionSettings())["runs"] == "toDateTime(inserted_at) + toIntervalSecond(5184000)"
