"""Golden candidates: which runs promotion is shown, and its rows back."""

from msgspec.structs import replace
from unit.clickhouse.records import COHORT, M0, a_run, a_run_version, a_version, retract

from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.run import Place
from pipeline.model.step import ToolCall
from pipeline.model.time import MINUTE
from pipeline.model.window import Touched
from pipeline.stages.promote import FailingRun, case, case_id, members
from sinks.clickhouse import golden
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.writer import write


def touched(database: ClickHouse, project: str, minute_ns: int = M0) -> list[FailingRun]:
    return golden.runs_touched(database, [Touched(project, COHORT, minute_ns)])


def test_promotion_is_shown_the_failing_runs_of_a_touched_minute_as_they_are(database: ClickHouse) -> None:
    calls = (ToolCall("refund", "1", {"order": 10**25}), ToolCall("refund", "2", None, "{bad", None, "not executed"))
    failing = a_run_version(a_run("touched", "01" * 16, tool_calls=calls), 8, failing=("verdict", "thumbs_down"))
    write(database, [a_version(failing, facts=2), a_version(a_run_version(a_run("touched", "02" * 16)))])
    elsewhere = a_run("touched", "03" * 16, place=Place(COHORT, M0 + MINUTE))
    write(
        database,
        [
            a_version(a_run_version(elsewhere, failing=("verdict",))),
            a_version(a_run_version(a_run("other"), failing=("verdict",))),
        ],
    )
    assert touched(database, "touched") == [
        FailingRun(
            project="touched",
            agent=COHORT.agent,
            run_id=failing.run.run_id,
            trace_id="01" * 16,
            version=8,
            failing=True,
            reasons=("verdict", "thumbs_down"),
            request="Refund order 1042, please.",
            answer="Done.",
            tool_calls=calls,
            minute_ns=M0,
        )
    ]
    assert golden.runs_touched(database, []) == []


def test_a_member_is_shown_also_when_it_fails_no_more_or_is_retracted(database: ClickHouse) -> None:
    better, merged = (a_run_version(a_run("member", trace, "a1"), 4, failing=("verdict",)) for trace in ("01" * 16, "02" * 16))
    write(database, [a_version(better), a_version(merged)])
    golden.write_members(database, [row for run in touched(database, "member") for row in members(run)])
    heir = a_run("member", "02" * 16, "a2")
    write(
        database,
        [
            a_version(replace(better, version=8, failing=()), facts=2),
            a_version(a_run_version(heir, 8), facts=2, retractions=(retract(merged.run, heir, 8),)),
        ],
    )
    shown = {run.run_id: run.failing for run in touched(database, "member")}
    assert shown == {better.run.run_id: False, merged.run.run_id: False}
    by_id = golden.runs_by_id(database, "member", [*shown, "unheard-of"])
    assert {run_id: run.version for run_id, run in by_id.items()} == dict.fromkeys(shown, 8)
    assert golden.runs_by_id(database, "other", list(shown)) == {}


def test_cases_and_members_come_back_and_the_greater_version_stays(database: ClickHouse) -> None:
    write(database, [a_version(a_run_version(a_run("cases"), 4, failing=("verdict",)))])
    (run,) = touched(database, "cases")
    rows = members(run)
    made = case(rows, {run.run_id: run})
    assert made is not None
    golden.write_members(database, rows)
    golden.write_cases(database, [replace(made, version=made.version + 1, state="accepted", expected={"equal": "Done."})])
    golden.write_cases(database, [made])
    accepted = replace(made, version=made.version + 1, state="accepted", expected={"equal": "Done."})
    name = case_id("cases", COHORT.agent, run.request)
    assert golden.golden(database, "cases", [name, "unheard-of"]) == {name: (accepted, list(rows)), "unheard-of": (None, [])}
    assert golden.golden_cases(database, "cases") == [accepted]
    assert golden.cases_of_runs(database, "cases", [run.run_id, "unheard-of"]) == {run.run_id: [name]}


def test_membership_that_ended_is_a_row_of_a_greater_version(database: ClickHouse) -> None:
    golden.write_members(database, [GoldenMember("ended", "c", "r", failing=False, version=8)])
    golden.write_members(database, [GoldenMember("ended", "c", "r", failing=True, version=4)])
    assert golden.golden(database, "ended", ["c"]) == {"c": (None, [GoldenMember("ended", "c", "r", failing=False, version=8)])}


def test_the_same_case_in_two_projects_is_two_cases(database: ClickHouse) -> None:
    for project in ("left", "right"):
        golden.write_cases(database, [GoldenCase("same", project, "agent", project, "candidate", "development", "r", 1)])
        golden.write_members(database, [GoldenMember(project, "same", f"run-{project}", failing=True, version=4)])
    (found, rows) = golden.golden(database, "left", ["same"])["same"]
    assert found is not None
    assert (found.input, [row.run_id for row in rows]) == ("left", ["run-left"])
    assert golden.cases_of_runs(database, "left", ["run-left", "run-right"]) == {"run-left": ["same"]}
