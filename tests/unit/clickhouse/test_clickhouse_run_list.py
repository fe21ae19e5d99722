"""The list of runs: every filter, pages that neither miss nor repeat a run, counts that add up, and nothing of another project."""

from collections.abc import Mapping
from typing import Any

import pytest
from builders import T0
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.clickhouse.records import a_result, a_run, a_run_version, a_version, retire

from pipeline.model.result import Kind, Outcome, Verdict
from pipeline.model.run import Cohort, Place, RunClass
from pipeline.model.step import ToolCall
from pipeline.model.time import MINUTE, SECOND, minute_of
from pipeline.model.version import RunVersion, TraceVersion
from sinks.clickhouse.board import scoreboard
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.run_detail import UnknownRunError, run_detail
from sinks.clickhouse.run_history import at_version, history
from sinks.clickhouse.run_list import Cursor, RunFilter, choices, counts, cursor_of, page
from sinks.clickhouse.writer import write

PROJECT, OTHER = "run-list", "run-list-other"
HOSTILE = "'; DROP TABLE runs; -- \\' {project:String} \u202e \x00 \n %s"


def a_listed(number: int, project: str = PROJECT, **fields: Any) -> TraceVersion:
    """A trace with one run, that ended so many minutes before T0."""
    end = T0 - number * MINUTE
    cohort = fields.pop("cohort", Cohort("plain", "1", "production"))
    calls = tuple(ToolCall(name) for name in fields.pop("tools", ("search",)))
    conversation = fields.pop("conversation", "")
    flags = fields.pop("flags", ())
    run = a_run(
        project,
        trace_id=f"{number:032x}",
        place=Place(cohort, minute_of(end)),
        start_ns=end - SECOND,
        end_ns=end,
        tool_calls=calls,
        conversation_id=conversation,
        flags=flags,
    )
    return a_version(
        a_run_version(run, fields.pop("version", 4), *fields.pop("results", ()), **fields), trace_id=run.trace_id, project=project
    )


def found(database: ClickHouse, project: str = PROJECT, **chosen: Any) -> list[int]:
    """The numbers of the runs that meet a filter."""
    return [int(row.trace_id, 16) for row in page(database, project, RunFilter(**chosen), 100)]


@pytest.fixture(scope="module")
def listed(database: ClickHouse) -> ClickHouse:
    failed = Verdict(Outcome.FAIL, "no")
    write(
        database,
        [
            a_listed(0),
            a_listed(1, cohort=Cohort("plain", "2", "production"), verdict=failed),
            a_listed(2, cohort=Cohort("other", "1", "staging"), tools=("refund", "search", "refund"), conversation="talk"),
            a_listed(3, verdict=Verdict(None), run_class=RunClass.PENDING, flags=("needs_a_person_too",)),
            a_listed(
                4,
                run_class=RunClass.UNRESOLVED,
                class_reason="budget",
                verdict=Verdict(Outcome.INSUFFICIENT_EVIDENCE, "budget"),
                flags=("missing_parent", "needs_a_person"),
            ),
            a_listed(5, results=(a_result("tone", Kind.JUDGED, Outcome.FAIL), a_result("loops"))),
            a_listed(6, results=(a_result("tone", Kind.JUDGED, None),), run_class=RunClass.UNSAMPLED),
            a_listed(
                7, cohort=Cohort(HOSTILE, HOSTILE, HOSTILE), tools=(HOSTILE,), conversation=HOSTILE, results=(a_result(HOSTILE),)
            ),
            a_listed(8, OTHER, results=(a_result("tone", Kind.JUDGED, Outcome.FAIL),), conversation="talk"),
        ],
    )
    return database


HOSTILE_NAMES = (HOSTILE,)
CASES: list[tuple[Mapping[str, Any], list[int]]] = [
    ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
    ({"agent": ("plain",)}, [0, 1, 3, 4, 5, 6]),
    ({"agent": ("plain", "other")}, [0, 1, 2, 3, 4, 5, 6]),
    ({"version": ("2",)}, [1]),
    ({"environment": ("staging",)}, [2]),
    ({"verdict": "fail"}, [1]),
    ({"verdict": "pending"}, [3]),
    ({"run_class": "unresolved"}, [4]),
    ({"class_reason": "budget"}, [4]),
    ({"tool": ("refund",)}, [2]),
    ({"tool": ("sear",)}, []),
    ({"flag": "needs_a_person"}, [4]),
    ({"flag": HOSTILE}, []),
    ({"conversation": ("talk",)}, [2]),
    ({"dimension": ("tone",)}, [5, 6]),
    ({"dimension": ("tone",), "outcome": "fail"}, [5]),
    ({"dimension": ("tone",), "outcome": "pending"}, [6]),
    ({"dimension": ("tone",), "outcome": "pass"}, []),
    ({"dimension": ("tone",), "since_ns": T0 - 5 * MINUTE}, [5]),
    ({"dimension": ("tone",), "until_ns": T0 - 5 * MINUTE}, [6]),
    ({"since_ns": T0 - 2 * MINUTE}, [0, 1, 2]),
    ({"until_ns": T0 - 2 * MINUTE}, [3, 4, 5, 6, 7]),
    ({"since_ns": T0 - 3 * MINUTE, "until_ns": T0 - MINUTE}, [2, 3]),
    (
        {
            "agent": HOSTILE_NAMES,
            "version": HOSTILE_NAMES,
            "environment": HOSTILE_NAMES,
            "tool": HOSTILE_NAMES,
            "conversation": HOSTILE_NAMES,
        },
        [7],
    ),
    ({"dimension": HOSTILE_NAMES}, [7]),
    ({"verdict": HOSTILE}, []),
    ({"class_reason": HOSTILE}, []),
    ({"run": HOSTILE}, []),
]


@pytest.mark.parametrize(("chosen", "numbers"), CASES, ids=[" ".join(chosen) for chosen, _ in CASES])
def test_every_filter_finds_what_meets_it_newest_first(listed: ClickHouse, chosen: Mapping[str, Any], numbers: list[int]) -> None:
    assert found(listed, **chosen) == numbers
    assert counts(listed, PROJECT, RunFilter(**chosen)).received == len(numbers)


def test_the_scoreboard_lists_the_runs_with_a_flag(listed: ClickHouse) -> None:
    assert [int(row.trace_id, 16) for row in scoreboard(listed, PROJECT, flag="needs_a_person")] == [4]
    assert len(scoreboard(listed, PROJECT)) == 8


def test_a_run_is_found_by_the_beginning_of_its_id(listed: ClickHouse) -> None:
    (row,) = page(listed, PROJECT, RunFilter(conversation=("talk",)), 10)
    assert found(listed, run=row.run_id[:10]) == [2]
    assert found(listed, OTHER, run=row.run_id[:10]) == []


def test_nothing_is_found_in_another_project(listed: ClickHouse) -> None:
    assert found(listed, OTHER) == [8]
    assert choices(listed, OTHER).dimensions == ("tone",)
    assert found(listed, "run-list-nobody") == []


def test_counts_add_up(listed: ClickHouse) -> None:
    told = counts(listed, PROJECT, RunFilter())
    assert (told.received, told.judged, told.unsampled, told.pending, told.unresolved) == (8, 5, 1, 1, {"budget": 1})
    assert told.verdicts == {"pass": 5, "fail": 1, "insufficient_evidence": 1, "grader_error": 0, "pending": 1}
    assert (told.decided, told.coverage) == (6, 6 / 8)
    nothing = counts(listed, PROJECT, RunFilter(agent=("nobody",)))
    assert (nothing.received, nothing.coverage) == (0, None)


def test_choices_are_what_there_is_the_most_frequent_first(listed: ClickHouse) -> None:
    told = choices(listed, PROJECT)
    assert told.agents[0] == "plain"
    assert set(told.agents) == {"plain", "other", HOSTILE}
    assert set(told.tools) == {"search", "refund", HOSTILE}
    assert {"tone", "loops", "answer_present", HOSTILE} == set(told.dimensions)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_neither_miss_nor_repeat_a_run(listed: ClickHouse, limit: int) -> None:
    before: Cursor | None = None
    numbers: list[int] = []
    while rows := page(listed, PROJECT, RunFilter(), limit, before):
        numbers += [int(row.trace_id, 16) for row in rows]
        before = cursor_of(rows[-1])
    assert numbers == list(range(8))


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ends=st.lists(st.integers(0, 3), min_size=1, max_size=12), limit=st.integers(1, 5))
def test_runs_that_end_at_one_moment_are_on_one_page_each(database: ClickHouse, ends: list[int], limit: int) -> None:
    project = f"ties-{'-'.join(map(str, ends))}"
    write(database, [_at(project, number, end) for number, end in enumerate(ends)])
    before: Cursor | None = None
    seen: list[str] = []
    while rows := page(database, project, RunFilter(), limit, before):
        seen += [row.run_id for row in rows]
        before = cursor_of(rows[-1])
    assert len(seen) == len(set(seen)) == len(ends)


def _at(project: str, number: int, end: int) -> TraceVersion:
    run = a_run(project, trace_id=f"{number:032x}", end_ns=T0 + end * SECOND)
    return a_version(a_run_version(run), trace_id=run.trace_id, project=project)


def version_of(number: int, outcome: Outcome, *, facts: int) -> TraceVersion:
    run = a_run("run-history", trace_id=f"{number:032x}", request=f"with {facts} facts")
    one: RunVersion = a_run_version(
        run, facts * 4, a_result("tone", outcome=outcome, evidence="e"), verdict=Verdict(outcome, f"{facts} facts")
    )
    return a_version(one, facts=facts, trace_id=run.trace_id, project="run-history")


def test_only_the_latest_version_is_found_by_its_results(database: ClickHouse) -> None:
    write(database, [version_of(1, Outcome.FAIL, facts=1)])
    write(database, [version_of(1, Outcome.PASS, facts=2)])
    assert found(database, "run-history", dimension=("tone",), outcome="fail") == []
    assert found(database, "run-history", dimension=("tone",), outcome="pass") == [1]


def test_a_result_that_was_retired_is_no_pending_one(database: ClickHouse) -> None:
    run = a_run("retired", trace_id=f"{1:032x}")
    before, after = (
        a_run_version(run, facts * 4, a_result("tone", contract=contract)) for facts, contract in ((1, "c1"), (2, "c2"))
    )
    write(database, [a_version(before, trace_id=run.trace_id)])
    write(database, [a_version(after, facts=2, retired=retire(before, 8), trace_id=run.trace_id)])
    assert found(database, "retired", dimension=("tone",), outcome="pass") == [1]
    assert found(database, "retired", dimension=("tone",), outcome="pending") == []
    (only,) = history(database, "retired", run_detail(database, "retired", run.run_id)).results
    assert only.result.contract == "c2"


def test_earlier_versions_are_listed_and_can_be_read_while_they_are_stored(database: ClickHouse) -> None:
    run_id = a_run("run-history", trace_id=f"{2:032x}").run_id
    write(database, [version_of(2, Outcome.FAIL, facts=1)])
    write(database, [version_of(2, Outcome.PASS, facts=2)])
    latest = run_detail(database, "run-history", run_id)
    told = history(database, "run-history", latest)
    assert [(one.version, one.facts, one.verdict, one.live) for one in told.versions] == [
        (8, 2, "pass", True),
        (4, 1, "fail", True),
    ]
    assert [(one.result.dimension, one.result.outcome, one.weight, one.inclusion_probability) for one in told.results] == [
        ("tone", "pass", 1.0, 1.0)
    ]
    assert (told.close_reason, told.minute_ns) == ("head_ended", minute_of(T0))
    earlier = at_version(database, "run-history", latest, 4)
    assert (earlier.line.verdict, earlier.request) == ("fail", "with 1 facts")
    assert [one.result.outcome for one in history(database, "run-history", earlier).results] == ["fail"]
    with pytest.raises(UnknownRunError, match="version 12 of run"):
        at_version(database, "run-history", latest, 12)
