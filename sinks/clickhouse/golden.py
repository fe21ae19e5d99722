"""Golden candidates: the failing runs they are made of, cases and members, as promotion reads and writes them (spec section 9)."""

from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.window import Touched
from pipeline.stages.promote import FailingRun
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.gate_rows import golden_case_of, golden_case_row, golden_member_of, golden_member_row
from sinks.clickhouse.rows import insert, minute, minute_ns
from sinks.clickhouse.run_rows import LIVE, tool_calls_of

_TOUCHED: Final = """
WITH seen AS (
    SELECT DISTINCT project, trace_id, run_id
    FROM results
    WHERE (project, cohort_id, minute) IN {places:Array(Tuple(String, String, DateTime64(0, 'UTC')))}
)
SELECT project, agent, run_id, trace_id, version, state, failing, failing_reasons, request, answer, tool_calls, minute
FROM runs FINAL
WHERE (project, trace_id, run_id) IN seen
    AND (state = 'live' AND failing OR (project, run_id) IN (SELECT project, run_id FROM golden_members))
ORDER BY project, run_id
"""
_BY_ID: Final = """
SELECT project, agent, run_id, trace_id, version, state, failing, failing_reasons, request, answer, tool_calls, minute
FROM runs FINAL
WHERE project = {project:String} AND run_id IN {runs:Array(String)}
"""
_CASES_OF_RUNS: Final = """
SELECT DISTINCT run_id, case_id
FROM golden_members
WHERE project = {project:String} AND run_id IN {runs:Array(String)}
ORDER BY run_id, case_id
"""
_CASES: Final = "SELECT body FROM golden_cases FINAL WHERE project = {project:String} AND case_id IN {cases:Array(String)}"
_MEMBERS: Final = """
SELECT project, case_id, run_id, failing, version
FROM golden_members FINAL
WHERE project = {project:String} AND case_id IN {cases:Array(String)}
ORDER BY case_id, run_id
"""
_ALL_CASES: Final = "SELECT body FROM golden_cases FINAL WHERE project = {project:String} ORDER BY case_id"


def runs_touched(database: Database, touched: Iterable[Touched]) -> list[FailingRun]:
    """Return the latest rows of the runs with results in these minutes that fail now or are members of a case."""
    places = sorted({(one.project, one.cohort.id, minute(one.minute_ns)) for one in touched})
    return [_failing_run(row) for row in database.query(_TOUCHED, {"places": places})] if places else []


def runs_by_id(database: Database, project: str, run_ids: Sequence[str]) -> dict[str, FailingRun]:
    """Return the latest rows of these runs, failing or not."""
    rows = database.query(_BY_ID, {"project": project, "runs": list(run_ids)})
    return {row["run_id"]: _failing_run(row) for row in rows}


def cases_of_runs(database: Database, project: str, run_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return, by run id, the cases that have a members row for the run, failing or not."""
    found: dict[str, list[str]] = {}
    for row in database.query(_CASES_OF_RUNS, {"project": project, "runs": list(run_ids)}):
        found.setdefault(row["run_id"], []).append(row["case_id"])
    return found


def golden(database: Database, project: str, case_ids: Sequence[str]) -> dict[str, tuple[GoldenCase | None, list[GoldenMember]]]:
    """Return each of these cases, None where it is not stored, and its members rows."""
    parameters = {"project": project, "cases": list(case_ids)}
    cases = {case.id: case for row in database.query(_CASES, parameters) if (case := golden_case_of(row))}
    members = [golden_member_of(row) for row in database.query(_MEMBERS, parameters)]
    return {each: (cases.get(each), [member for member in members if member.case_id == each]) for each in case_ids}


def golden_cases(database: Database, project: str) -> list[GoldenCase]:
    """Return all cases of a project, by id: what is exported."""
    return [golden_case_of(row) for row in database.query(_ALL_CASES, {"project": project})]


def write_cases(database: Database, cases: Iterable[GoldenCase]) -> None:
    """Store cases; the greater version supersedes."""
    insert(database, "golden_cases", [golden_case_row(case) for case in cases])


def write_members(database: Database, members: Iterable[GoldenMember]) -> None:
    """Store members rows; the greater version supersedes."""
    insert(database, "golden_members", [golden_member_row(member) for member in members])


def _failing_run(row: Row) -> FailingRun:
    return FailingRun(
        project=row["project"],
        agent=row["agent"],
        run_id=row["run_id"],
        trace_id=row["trace_id"],
        version=row["version"],
        failing=row["state"] == LIVE and row["failing"],
        reasons=tuple(row["failing_reasons"]),
        request=row["request"],
        answer=row["answer"],
        tool_calls=tool_calls_of(row),
        minute_ns=minute_ns(row["minute"]),
    )
