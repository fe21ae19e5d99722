"""What people read: the scoreboard, one run, and an accounting that adds up."""

from itertools import count

import pytest
from builders import T0, a_span
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from unit.clickhouse.records import (
    COHORT,
    M0,
    UNSAMPLED,
    a_result,
    a_run,
    a_run_version,
    a_version,
    retire,
    retract,
)

from pipeline.errors import ConfigurationError
from pipeline.judges.votes import Vote, VoteKey, VoteState
from pipeline.model.result import Feedback, Judgment, Kind, Outcome, Unresolved, Verdict
from pipeline.model.run import Cohort, Place, RunClass
from pipeline.model.step import ToolCall
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.version import RunVersion
from pipeline.model.window import Transition, Trip
from sinks.clickhouse.board import BoardRow, accounting, projects, scoreboard
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.facts import insert_feedback, insert_judgments, insert_spans
from sinks.clickhouse.gates import write_trips
from sinks.clickhouse.run_detail import AmbiguousRunError, UnknownRunError, run_detail
from sinks.clickhouse.votes import VoteBuffer
from sinks.clickhouse.writer import write

names = (f"accounting-{number}" for number in count())
TRACE = "ab" * 16


def test_the_scoreboard_has_a_line_for_each_live_run_the_last_first(database: ClickHouse) -> None:
    calls = (
        ToolCall("search", result="two orders"),
        ToolCall("refund", arguments={"order": 10**25}, error='not "executed"'),
        ToolCall("search", error="timeout"),
    )
    first = a_run_version(
        a_run("lines", "01" * 16, flags=("converted",), tool_calls=calls),
        verdict=Verdict(Outcome.FAIL, "forbid: deleted it", 55.0, 80.0),
        run_class=RunClass.UNRESOLVED,
        class_reason="budget",
    )
    later = a_run("lines", "02" * 16, end_ns=T0 + 60 * SECOND, place=Place(Cohort("other"), M0 + MINUTE))
    gone = a_run("lines", "02" * 16, "a2")
    write(database, [a_version(first), a_version(a_run_version(gone, 4), trace_id="02" * 16)])
    write(database, [a_version(a_run_version(later, 8, verdict=Verdict(None)), retractions=(retract(gone, later, 8),), facts=2)])
    lines = scoreboard(database, "lines")
    assert [line.run_id for line in lines] == [later.run_id, first.run.run_id]
    assert lines[0].verdict is None
    assert lines[1] == BoardRow(
        run_id=first.run.run_id,
        trace_id="01" * 16,
        cohort=COHORT,
        steps=1,
        tool_calls=3,
        tools=("search", "refund"),
        failed_calls=2,
        verdict="fail",
        reason="forbid: deleted it",
        run_class="unresolved",
        class_reason="budget",
        converted=True,
        composite_low=55.0,
        composite_high=80.0,
        start_ns=T0,
        end_ns=T0 + 3 * SECOND + 7,
        dialects=("genai",),
    )
    assert [run_detail(database, "lines", line.run_id).line for line in lines] == lines
    assert scoreboard(database, "lines", limit=1) == lines[:1]
    assert scoreboard(database, "lines", agent=COHORT.agent) == lines[1:]
    assert scoreboard(database, "nobody's") == []
    assert "lines" in projects(database)


def test_a_run_is_read_with_all_that_was_said_of_it_at_the_place_it_has_now(database: ClickHouse) -> None:
    run = a_run("detail")
    before = a_run_version(run, 4, a_result("x", outcome=Outcome.FAIL))
    moved = replace(run, place=Place(COHORT, M0 + MINUTE))
    former = a_run_version(moved, 8, a_result("x", contract="former"))
    verdict = a_result("verdict", Kind.VERDICT, None, reason="unsampled", lower=0.0, upper=1.0)
    after = a_run_version(
        moved, 16, a_result("x", value=1.0, evidence="here"), verdict, sampling=UNSAMPLED, failing=("x",), requested_ns=T0
    )
    judgment = Judgment("detail", TRACE, run.run_id, 4, "t", "c", "tone", Outcome.PASS, 4.0, judged_ns=T0)
    vote = Vote(VoteKey("detail", run.run_id, "t", "c", "tone", 0, 0), VoteState.INTENT, T0)
    thumbs = [Feedback("detail", TRACE, name, -1.0, run_id, received_ns=T0) for name, run_id in (("a", ""), ("b", run.run_id))]
    trip = Trip("detail", "g", "hard", COHORT, "t1", Transition.FIRED, T0, run_id=run.run_id)
    write(database, [a_version(before)])
    write(database, [a_version(former, facts=2, retired=retire(before, 8))])
    write(database, [a_version(after, facts=4, retired=(*retire(before, 16), *retire(former, 16)))])
    insert_judgments(database, [judgment, replace(judgment, run_id="another")])
    buffer = VoteBuffer()
    for one in (vote, replace(vote, key=replace(vote.key, run_id="another"))):
        buffer.add(one)
    buffer.flush(database)
    insert_feedback(database, [*thumbs, Feedback("detail", TRACE, "c", 1.0, "another", received_ns=T0)])
    write_trips(database, [trip, replace(trip, run_id="another")])
    read = run_detail(database, "detail", run.run_id[:12].upper())
    assert read.results == after.results
    assert (read.judgments, read.votes, read.feedback, read.trips) == ((judgment,), (vote,), tuple(thumbs), (trip,))
    assert after.transcript is not None
    assert read.transcript == after.transcript.body
    assert (read.request, read.answer, read.tool_calls) == (run.request, run.answer, run.tool_calls)
    assert (read.live, read.version, read.failing, read.sampled, read.requested_ns) == (True, 16, ("x",), False, T0)


def test_a_retracted_run_names_its_heir(database: ClickHouse) -> None:
    run, heir = a_run("heir", head="a1"), a_run("heir", head="a2")
    before = a_run_version(run, 4)
    write(database, [a_version(before)])
    write(database, [a_version(a_run_version(heir, 8), facts=2, retractions=(retract(run, heir, 8),), retired=retire(before, 8))])
    read = run_detail(database, "heir", run.run_id)
    assert (read.live, read.merged_into, read.results, read.transcript) == (False, heir.run_id, (), None)


def test_a_prefix_of_several_runs_lists_them_and_one_of_none_says_so(database: ClickHouse) -> None:
    runs = [a_run("prefix", f"{number:032x}") for number in range(40)]
    write(database, [a_version(a_run_version(run)) for run in runs])
    write(database, [a_version(a_run_version(a_run("prefix-other")))])
    by_digit: dict[str, list[str]] = {}
    for run in runs:
        by_digit.setdefault(run.run_id[0], []).append(run.run_id)
    digit, several = next((digit, ids) for digit, ids in by_digit.items() if 1 < len(ids) <= 10)
    with pytest.raises(AmbiguousRunError) as caught:
        run_detail(database, "prefix", digit)
    assert caught.value.candidates == tuple(sorted(several))
    assert all(run_id in str(caught.value) for run_id in several)
    with pytest.raises(AmbiguousRunError, match="and more; write more digits") as caught:
        run_detail(database, "prefix", "")
    assert len(caught.value.candidates) == 10
    for unknown in ("zz", "%", "_", "'"):
        with pytest.raises(UnknownRunError, match="has no run"):
            run_detail(database, "prefix", unknown)
    assert issubclass(UnknownRunError, ConfigurationError)
    assert issubclass(AmbiguousRunError, ConfigurationError)


classes = st.sampled_from(
    [
        (RunClass.JUDGED, ""),
        (RunClass.UNSAMPLED, ""),
        (RunClass.PENDING, ""),
        *((RunClass.UNRESOLVED, str(reason)) for reason in Unresolved),
    ]
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), classes), max_size=8),
    merged=st.sets(st.integers(0, 4), max_size=2),
    split=st.integers(0, 8),
)
def test_every_run_is_accounted_for_once_at_every_moment(
    database: ClickHouse, history: list[tuple[int, int, tuple[RunClass, str]]], merged: set[int], split: int
) -> None:
    project = next(names)
    live: dict[int, RunVersion] = {}
    for some in (history[:split], history[split:]):
        versions = []
        for number, facts, (label, reason) in some:
            version = a_run_version(a_run(project, f"{number:032x}"), 4 * facts, run_class=label, class_reason=reason)
            versions.append(a_version(version))
            if number not in live or live[number].version <= version.version:
                live[number] = version
        write(database, versions)
        told = accounting(database, project)
        assert told.received == len(live)
        assert told.received == told.judged + told.unsampled + told.pending + sum(told.unresolved.values())
        for label, number in (
            (RunClass.JUDGED, told.judged),
            (RunClass.UNSAMPLED, told.unsampled),
            (RunClass.PENDING, told.pending),
        ):
            assert number == sum(one.run_class is label for one in live.values())
    gone = merged & live.keys()
    for number in gone:
        run, heir = live[number].run, a_run(project, f"{number:032x}", "a2")
        write(database, [a_version(a_run_version(heir, 20), facts=5, retractions=(retract(run, heir, 20),))])
    told = accounting(database, project)
    assert told.received == len(live) == told.judged + told.unsampled + told.pending + sum(told.unresolved.values())


def test_traces_that_wait_and_traces_without_a_run_stand_beside_the_runs(database: ClickHouse) -> None:
    insert_spans(database, [a_span(project="beside"), a_span(project="beside", trace_id="cd" * 16)])
    write(database, [a_version(project="beside", not_an_agent_run=True)])
    told = accounting(database, "beside")
    assert (told.received, told.open_traces, told.not_an_agent_run) == (0, 1, 1)
    assert accounting(database, "nobody's") == replace(told, open_traces=0, not_an_agent_run=0)
