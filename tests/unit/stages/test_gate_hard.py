"""Hard gates, run by run."""

from msgspec.structs import replace

from pipeline.model.run import BACKFILL, Cohort
from pipeline.model.time import HOUR, MINUTE
from pipeline.model.window import GateState, GateStatus, Transition, Trip
from pipeline.stages.gate import HardGate
from pipeline.stages.gate_hard import Failure, on_failures, on_wake, rebuild, retract

COHORT = Cohort("refunds", "1", "production")
GATE = HardGate(name="no refunds", kind="hard")
START = GateState("shop", "no refunds", COHORT)
NOON = 1_000 * HOUR


def failure(run: str, dimension: str = "forbid_refund", minute: int = 0, *, gating: bool = True) -> Failure:
    return Failure(NOON + minute * MINUTE, run, dimension, f"c_{dimension}", "shop", COHORT, f"{dimension} broken", gating)


def test_the_first_failing_run_opens_an_incident_and_later_ones_join_it() -> None:
    state, trips, wake_at = on_failures(GATE, START, [failure("r1")], (), NOON)
    [fired] = trips
    assert (fired.transition, fired.run_id, fired.dimension, fired.contract) == (
        Transition.FIRED,
        "r1",
        "forbid_refund",
        "c_forbid_refund",
    )
    assert (fired.why, fired.at_ns, fired.kind) == ("forbid_refund broken", NOON, "hard")
    assert (state.status, state.trip_id, state.runs, wake_at) == (GateStatus.FIRING, fired.trip_id, 1, NOON + HOUR)
    state, trips, wake_at = on_failures(GATE, state, [failure("r3"), failure("r2")], ("r1",), NOON + MINUTE)
    assert [(trip.transition, trip.run_id, trip.trip_id) for trip in trips] == [
        (Transition.RUN, "r2", fired.trip_id),
        (Transition.RUN, "r3", fired.trip_id),
    ]
    assert (state.runs, wake_at) == (3, NOON + MINUTE + HOUR)


def test_a_run_counts_once_however_many_checks_it_fails_and_however_often_it_is_reported() -> None:
    twice = [failure("r1", "b"), failure("r1", "a"), failure("r1", "a")]
    state, trips, _ = on_failures(GATE, START, twice, (), NOON)
    assert [(trip.run_id, trip.dimension) for trip in trips] == [("r1", "a")]
    assert on_failures(GATE, state, twice, ("r1",), NOON + MINUTE) == (state, (), NOON + HOUR)


def test_a_run_of_an_earlier_incident_opens_no_new_one() -> None:
    state, _, _ = on_failures(GATE, START, [failure("r1")], (), NOON)
    state, _, _ = on_wake(GATE, state, NOON + HOUR)
    assert on_failures(GATE, state, [failure("r1")], ("r1",), NOON + 2 * HOUR) == (state, (), None)


def test_a_run_that_fails_before_all_clocks_are_known_is_quiet_from_its_receipt() -> None:
    failed = replace(failure("r1"), received_ns=NOON)
    state, [fired], wake_at = on_failures(GATE, START, [failed], (), 0)
    assert (fired.at_ns, wake_at) == (NOON, NOON + HOUR)
    assert on_wake(GATE, state, NOON + HOUR - 1) == (state, (), NOON + HOUR)


def test_it_clears_after_the_quiet_time_and_not_before() -> None:
    state, [fired], _ = on_failures(GATE, START, [failure("r1")], (), NOON)
    assert on_wake(GATE, state, NOON + HOUR - 1) == (state, (), NOON + HOUR)
    state, [cleared], wake_at = on_wake(GATE, state, NOON + 3 * HOUR)
    assert (cleared.transition, cleared.trip_id, cleared.at_ns) == (Transition.CLEARED, fired.trip_id, NOON + HOUR)
    assert cleared.why == "no failing run for 60 min"
    assert (state.status, state.trip_id, state.runs, state.clears, wake_at) == (GateStatus.OK, "", 0, 1, None)
    assert on_wake(GATE, state, NOON + 4 * HOUR) == (state, (), None)


def test_a_failure_after_the_quiet_time_is_a_new_incident_though_nobody_woke_the_gate() -> None:
    state, [first], _ = on_failures(GATE, START, [failure("r1")], (), NOON)
    state, trips, _ = on_failures(GATE, state, [failure("r2")], ("r1",), NOON + 2 * HOUR)
    cleared, second = trips
    assert (cleared.transition, cleared.trip_id, cleared.at_ns) == (Transition.CLEARED, first.trip_id, NOON + HOUR)
    assert (second.transition, second.run_id) == (Transition.FIRED, "r2")
    assert second.trip_id not in ("", first.trip_id)
    assert (state.runs, state.clears) == (1, 1)


def test_the_incident_has_the_same_name_whichever_run_and_check_came_first() -> None:
    one = on_failures(GATE, START, [failure("r1", "a")], (), NOON).state
    other = on_failures(GATE, START, [failure("r2", "b")], (), NOON + MINUTE).state
    assert one.trip_id == other.trip_id
    assert (
        on_failures(GATE, replace(START, project="bank"), [replace(failure("r1"), project="bank")], (), NOON).state.trip_id
        != one.trip_id
    )


def test_without_dimensions_it_watches_gating_checks_and_with_them_exactly_these() -> None:
    failures = [failure("r1", "policy"), failure("r2", "latency", gating=False), failure("r3", "tone", gating=False)]
    assert [trip.run_id for trip in on_failures(GATE, START, failures, (), NOON).trips] == ["r1"]
    named = HardGate(name="no refunds", kind="hard", dimensions=("latency",))
    assert [trip.run_id for trip in on_failures(named, START, failures, (), NOON).trips] == ["r2"]


def test_runs_of_other_cohorts_projects_and_of_replayed_history_are_ignored() -> None:
    backfill = Cohort("refunds", "1", BACKFILL)
    others = [replace(failure("r1"), cohort=Cohort("orders")), replace(failure("r2"), project="bank")]
    assert on_failures(GATE, START, others, (), NOON) == (START, (), None)
    state = replace(START, cohort=backfill)
    assert on_failures(GATE, state, [replace(failure("r1"), cohort=backfill)], (), NOON) == (state, (), None)


def test_a_clock_that_goes_back_does_not_shorten_the_quiet_time() -> None:
    state, _, _ = on_failures(GATE, START, [failure("r1")], (), NOON)
    assert on_failures(GATE, state, [failure("r2")], ("r1",), NOON - MINUTE).wake_at == NOON + HOUR


def test_the_state_can_be_rebuilt_from_the_trips_alone() -> None:
    opened = on_failures(GATE, START, [failure("r1"), failure("r2")], (), NOON)
    grown = on_failures(GATE, opened.state, [failure("r3", "b")], ("r1", "r2"), NOON + MINUTE)
    cleared = on_wake(GATE, grown.state, NOON + 2 * HOUR)
    reopened = on_failures(GATE, cleared.state, [failure("r4")], ("r1", "r2", "r3"), NOON + 3 * HOUR)
    trips: list[Trip] = []
    for turn in (opened, grown, cleared, reopened):
        trips += turn.trips
        assert replace(rebuild(START, reversed(trips)), version=0) == replace(turn.state, version=0)
        assert rebuild(turn.state, trips) == turn.state
    assert rebuild(START, []) == START


def test_a_rebuilt_state_is_newer_than_the_one_it_replaces() -> None:
    opened = on_failures(GATE, START, [failure("r1")], (), NOON)
    assert rebuild(START, opened.trips).version > START.version


def test_a_trip_whose_run_no_longer_counts_is_marked_and_kept() -> None:
    state, trips, _ = on_failures(GATE, START, [failure("r1"), failure("r2")], (), NOON)
    _, cleared, _ = on_wake(GATE, state, NOON + 2 * HOUR)
    marked = retract(trips + cleared, {"r2"})
    assert [(trip.run_id, trip.transition, trip.retracted) for trip in marked] == [("r1", Transition.FIRED, True)]
    assert retract([*marked, trips[1]], {"r2"}) == []
    assert retract(marked, {"r1", "r2"}) == [trips[0]]
