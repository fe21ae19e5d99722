"""States, trips and notifications come back as they were written; hard gates are given what fails, and nothing else."""

from builders import T0
from msgspec.structs import replace
from unit.clickhouse.records import (
    COHORT,
    M0,
    SAMPLED,
    a_result,
    a_run,
    a_run_version,
    a_version,
    retire,
    retract,
)

from pipeline.model.result import Kind, Outcome
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.window import GateState, GateStatus, Notification, Series, Transition, Trip
from pipeline.stages.alert import NEVER, confirmed, postponed, refused
from pipeline.stages.window import MinuteRow, fold, window
from sinks.clickhouse import gates
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.minutes import write_windows
from sinks.clickhouse.writer import write


def a_trip(project: str, **fields: object) -> Trip:
    trip = Trip(
        project=project,
        gate="no refund twice",
        kind="hard",
        cohort=COHORT,
        trip_id="trip-1",
        transition=Transition.FIRED,
        at_ns=T0 + 123,
        contract="c1",
        dimension="at_most",
        window_ns=M0,
        run_id="r1",
        value=0.5,
        threshold=0.9,
        why="refunded twice",
    )
    return replace(trip, **fields)


def test_a_gates_latest_state_comes_back(database: ClickHouse) -> None:
    old = GateState("states", "floor", COHORT, version=1)
    new = replace(
        old,
        contract="c1",
        status=GateStatus.FIRING,
        trip_id="t",
        clears=2,
        runs=3,
        last_window_ns=M0,
        last_failure_ns=T0 + 1,
        streak=1,
        why="x",
        version=2,
    )
    gates.write_gate_states(database, [new])
    gates.write_gate_states(database, [old])
    assert [state for state in gates.gate_states(database) if state.project == "states"] == [new]


def test_trips_come_back_by_the_gates_clock_and_a_mark_can_come_and_go(database: ClickHouse) -> None:
    fired, joined, cleared = (
        a_trip("trips"),
        a_trip("trips", transition=Transition.RUN, run_id="r2", at_ns=T0 + 200),
        a_trip("trips", transition=Transition.CLEARED, run_id="", at_ns=T0 + 300, value=None, threshold=None),
    )
    gates.write_trips(database, [cleared, fired, joined])
    assert [trip for trip in gates.trips(database) if trip.project == "trips"] == [fired, joined, cleared]
    for retracted in (True, False, True, False):
        gates.write_trips(database, [replace(fired, retracted=retracted)])
        assert [trip.retracted for trip in gates.trips(database) if trip.project == "trips"] == [retracted, False, False]


def a_notification(project: str, destination: str = "pager", trip_id: str = "trip-1") -> Notification:
    return Notification(project, trip_id, Transition.FIRED, destination, '{"why": "ü"}', T0, agent="refunds")


def test_a_notification_is_unconfirmed_until_it_is_confirmed_whatever_is_written_after(database: ClickHouse) -> None:
    first = a_notification("told")
    again = postponed(first, "503", T0)
    done = confirmed(again, T0 + SECOND)
    other = a_notification("told", "chat")
    gates.write_notifications(database, [first, other])
    gates.write_notifications(database, [again])
    assert [one for one in gates.unconfirmed_notifications(database) if one.project == "told"] == [other, again]
    gates.write_notifications(database, [done])
    gates.write_notifications(database, [first, postponed(postponed(again, "503", T0), "503", T0)])
    assert [one for one in gates.unconfirmed_notifications(database) if one.project == "told"] == [other]
    assert [one for one in gates.notifications(database) if one.project == "told"] == [other, done]


def test_what_was_refused_for_good_is_kept_and_due_in_the_far_future(database: ClickHouse) -> None:
    gates.write_notifications(database, [refused(a_notification("refused"), "404")])
    (read,) = [one for one in gates.unconfirmed_notifications(database) if one.project == "refused"]
    assert (read.due_ns, read.last_error) == (NEVER, "404")


def test_transitions_without_any_notification_are_found_and_runs_that_join_are_none(database: ClickHouse) -> None:
    fired = a_trip("untold")
    told = a_trip("untold", trip_id="trip-2")
    gates.write_trips(database, [fired, told, a_trip("untold", transition=Transition.RUN, run_id="r2")])
    gates.write_notifications(database, [a_notification("untold", trip_id="trip-2")])
    gates.write_notifications(database, [a_notification("elsewhere", trip_id="trip-1")])
    assert [trip for trip in gates.unnotified_trips(database) if trip.project == "untold"] == [fired]
    assert [trip for trip in gates.unnotified_trips(database, fired.at_ns + 1) if trip.project == "untold"] == []


def test_a_run_is_still_failing_while_it_is_live_and_a_check_or_a_judge_says_so(database: ClickHouse) -> None:
    made = {
        "check": a_run_version(a_run("still", "01" * 16), 4, a_result("forbid", outcome=Outcome.FAIL)),
        "judge": a_run_version(a_run("still", "02" * 16), 4, a_result("tone", Kind.JUDGED, Outcome.FAIL), sampling=SAMPLED),
        "verdict": a_run_version(a_run("still", "03" * 16), 4, a_result("verdict", Kind.VERDICT, Outcome.FAIL)),
        "passes": a_run_version(a_run("still", "04" * 16), 4),
    }
    write(database, [a_version(one) for one in made.values()])
    ids = {name: one.run.run_id for name, one in made.items()}
    assert gates.still_failing(database, "still", list(ids.values())) == {ids["check"], ids["judge"]}
    assert gates.still_failing(database, "still", [ids["judge"], "unheard-of"]) == {ids["judge"]}
    assert gates.still_failing(database, "still", []) == set()
    assert gates.still_failing(database, "other", list(ids.values())) == set()
    heir = a_run("still", "01" * 16, head="a9")
    retraction = retract(made["check"].run, heir, 8)
    write(database, [a_version(a_run_version(heir, 8), facts=2, retractions=(retraction,), retired=retire(made["check"], 8))])
    assert gates.still_failing(database, "still", list(ids.values())) == {ids["judge"]}


def test_a_gate_is_given_the_windows_of_its_dimension_that_start_later(database: ClickHouse) -> None:
    sums = fold([MinuteRow(Outcome.PASS, 1.0, 4, T0)])
    made = [
        window(Series("unread", COHORT, dimension, "code", "c1"), M0 + step * MINUTE, length, sums)
        for dimension in ("a", "b")
        for length in (5 * MINUTE, 10 * MINUTE)
        for step in range(3)
    ]
    write_windows(database, made)
    read = gates.unread_windows(database, "unread", COHORT.id, "a", 5 * MINUTE, M0)
    assert [(one.series.dimension, one.length_ns, one.start_ns) for one in read] == [
        ("a", 5 * MINUTE, M0 + step * MINUTE) for step in (1, 2)
    ]
    assert len(gates.unread_windows(database, "unread", COHORT.id, "a", 5 * MINUTE, 0)) == 3
    assert gates.unread_windows(database, "unheard-of", COHORT.id, "a", 5 * MINUTE, 0) == []
