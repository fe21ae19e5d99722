"""What a person expects of the two-runtimes scenario, held against the rows that a runtime stored."""

import json
from collections import Counter

from two_runtimes import MAY_DIFFER, Rows, Scenario

from pipeline.apps.revision import revision
from pipeline.model.window import Transition
from sinks.clickhouse.board import Accounting


def is_as_expected(played: Scenario, found: Rows, accounting: Accounting) -> None:
    """Hold what is stored against what a person read in the recordings."""
    expected = played.expected
    counts = {table: len(found[table]) for table in MAY_DIFFER}
    assert counts == expected["counts"]
    assert min(counts.values()) > 0
    assert {name: getattr(accounting, name) for name in expected["accounting"]} == expected["accounting"]
    runs_are_as_expected(played, found)
    effects_are_as_expected(played, found)
    trips_are_as_expected(played, found)
    golden_is_as_expected(played, found)


def runs_are_as_expected(played: Scenario, found: Rows) -> None:
    rows_of = Counter(row["run_id"] for row in found["results"] if row["series"] == "live")
    judged = Counter(row["run_id"] for row in found["judgments"])
    said = {
        (
            row["trace_id"][:8],
            row["agent"],
            row["environment"],
            row["verdict"],
            rows_of[row["run_id"]],
            judged[row["run_id"]],
        )
        for row in found["runs"]
        if row["state"] == "live"
    }
    assert said == {
        (run.trace, run.agent, recorded.environment, run.verdict, run.rows, run.judgments)
        for recorded in played.recordings
        for run in recorded.runs
    }
    none = {trace_id for recorded in played.recordings for trace_id in recorded.not_an_agent_run}
    assert {row["trace_id"][:8] for row in found["traces"] if row["state"] == "not_an_agent_run"} == none


def effects_are_as_expected(played: Scenario, found: Rows) -> None:
    checks = {check["name"] for agent in played.configuration["agents"].values() for check in agent["checks"]["records"]}
    said = {(row["trace_id"][:8], row["outcome"]) for row in found["results"] if row["dimension"] in checks}
    assert said == {(run.trace, run.effect) for run in played.runs if run.effect is not None}
    assert {row["revision"] for table in ("runs", "results") for row in found[table]} == {revision()}


def trips_are_as_expected(played: Scenario, found: Rows) -> None:
    trace_of = {row["run_id"]: row["trace_id"][:8] for row in found["runs"]}
    floors = [row for row in found["trips"] if row["kind"] == "floor"]
    wanted = played.expected["floor_trips"]
    said = [{key: row[key] for key in wanted[0]} for row in floors]
    assert sorted(said, key=str) == sorted(wanted, key=str)
    for wanted in played.expected["incidents"]:
        rows_of = [
            row
            for row in found["trips"]
            if row["kind"] == "hard" and (row["agent"], row["environment"]) == (wanted["agent"], wanted["environment"])
        ]
        told = Counter(row["transition"] for row in rows_of)
        assert told[Transition.FIRED] == 1, "one run opens an incident"
        assert told[Transition.CLEARED] == wanted["cleared"]
        assert len({row["trip_id"] for row in rows_of}) == 1
        named = {trace_of[row["run_id"]]: row["retracted"] for row in rows_of if row["run_id"]}
        assert named == {trace: trace in wanted["retracted"] for trace in wanted["runs"]}
    (trip,) = (row for row in floors if row["environment"] == "canary")
    (window,) = (
        row
        for row in found["windows"]
        if (row["cohort_id"], row["length_s"], row["dimension"]) == (trip["cohort_id"], 60, "verdict")
    )
    wanted = played.expected["canary_in_the_end"]
    assert {key: window[key] for key in wanted} == wanted


def golden_is_as_expected(played: Scenario, found: Rows) -> None:
    trace_of = {row["run_id"]: row["trace_id"][:8] for row in found["runs"]}
    said = []
    for case in found["golden_cases"]:
        members = [row for row in found["golden_members"] if row["case_id"] == case["case_id"]]
        failing = sorted(trace_of[row["run_id"]] for row in members if row["failing"])
        assert case["runs"] == len(failing)
        said.append(
            {"agent": case["agent"], "input": json.loads(case["body"])["input"], "state": case["state"], "failing": failing}
        )
    wanted = [{**one, "failing": sorted(one["failing"])} for one in played.expected["golden"]]
    assert sorted(said, key=str) == sorted(wanted, key=str)
