"""Floor gates, window by window."""

from typing import Any

from msgspec.structs import replace

from pipeline.model.result import Kind
from pipeline.model.run import BACKFILL, Cohort
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.window import GateState, GateStatus, Series, Sums, Transition, Trip, Window
from pipeline.stages.gate import FloorGate
from pipeline.stages.gate_windows import allowance, due_windows, final_at, is_late, on_windows, read_window, rebuild
from pipeline.stages.window import window

COHORT = Cohort("refunds", "1", "production")
GATE = FloorGate(name="verdicts", kind="floor", raise_below=0.8, clear_above=0.9, clear_windows=2)
START = GateState("shop", "verdicts", COHORT)
ALLOWANCE = 6 * MINUTE


def a_window(minute: int, passed: int, of: int = 20, undecided: int = 0, contract: str = "c1", **sums: Any) -> Window:
    """The window that starts at a minute, of as many runs, first heard of a second after it began."""
    at = minute * MINUTE
    fields = {
        "w": of,
        "w2": of,
        "wp": passed,
        "wy": passed,
        "wy2": passed,
        "undecided_w": undecided,
        "passed": passed,
        "first_received_ns": at + SECOND,
    }
    held = Sums(n=of + undecided, decided=of, **fields | sums) if of or undecided else Sums()
    series = Series("shop", COHORT, "verdict", "verdict", contract)
    return window(series, at, 5 * MINUTE, held)


def read(*windows: Window, gate: FloorGate = GATE, state: GateState = START) -> tuple[GateState, list[Trip]]:
    trips: list[Trip] = []
    for one in windows:
        state, more = read_window(gate, state, one, ALLOWANCE)
        trips += more
    return state, trips


def test_it_fires_on_the_first_window_below_the_floor_and_says_what_it_saw() -> None:
    state, trips = read(a_window(100, 18), a_window(101, 15))
    [trip] = trips
    assert (trip.transition, trip.value, trip.threshold) == (Transition.FIRED, 0.75, 0.8)
    assert (trip.window_ns, trip.dimension, trip.contract, trip.kind) == (101 * MINUTE, "verdict", "c1", "floor")
    assert trip.why == (
        "rate 0.75 (0.5313 to 0.8881) is below 0.8; 15 pass, 5 fail, 0 insufficient_evidence, 0 grader_error, 0 pending; coverage 1; "
        "0.75 if the undecided fail, 0.75 if they pass; n 20, effective n 20"
    )
    assert trip.at_ns == 106 * MINUTE + ALLOWANCE
    assert (state.status, state.trip_id, state.last_window_ns) == (GateStatus.FIRING, trip.trip_id, 101 * MINUTE)


def test_a_measure_of_exactly_0_fires() -> None:
    _, trips = read(a_window(100, 0))
    assert [(trip.transition, trip.value) for trip in trips] == [(Transition.FIRED, 0.0)]


def test_a_mean_of_exactly_0_fires_below_a_threshold_of_its_scale() -> None:
    gate = FloorGate(name="verdicts", kind="floor", measure="mean", raise_below=75, clear_above=80)
    _, trips = read(a_window(100, 0), gate=gate)
    assert [trip.value for trip in trips] == [0.0]


def test_a_measure_at_the_floor_does_not_fire_though_its_sums_were_rounded() -> None:
    tenth = sum([0.1] * 8)
    assert tenth < 0.8
    _, trips = read(a_window(100, 0, w=1.0, w2=1 / 20, wp=tenth))
    assert trips == []


def test_one_incident_fires_once() -> None:
    _, trips = read(*[a_window(minute, 10) for minute in range(100, 110)])
    assert [trip.transition for trip in trips] == [Transition.FIRED]


def test_it_clears_after_enough_consecutive_windows_at_the_clear_threshold() -> None:
    state, trips = read(a_window(100, 10), a_window(101, 18), a_window(102, 18))
    fired, cleared = trips
    assert (cleared.transition, cleared.trip_id, cleared.window_ns) == (Transition.CLEARED, fired.trip_id, 102 * MINUTE)
    assert (cleared.value, cleared.threshold) == (0.9, 0.9)
    assert (state.status, state.trip_id, state.clears, state.streak) == (GateStatus.OK, "", 1, 0)


def test_between_the_thresholds_it_neither_fires_nor_clears() -> None:
    state, trips = read(a_window(99, 17))
    assert (state.status, trips) == (GateStatus.OK, [])
    state, trips = read(a_window(100, 10), *[a_window(minute, 17) for minute in range(101, 120)])
    assert (state.status, len(trips)) == (GateStatus.FIRING, 1)


def test_a_worse_window_starts_the_count_of_recovered_windows_again() -> None:
    state, _ = read(a_window(100, 10), a_window(101, 20), a_window(102, 17), a_window(103, 20))
    assert (state.status, state.streak) == (GateStatus.FIRING, 1)


def test_a_second_incident_is_another_trip() -> None:
    _, trips = read(a_window(100, 10), a_window(101, 20), a_window(102, 20), a_window(103, 10))
    first, _, second = trips
    assert second.transition is Transition.FIRED
    assert second.trip_id != first.trip_id


def test_too_little_neither_fires_nor_clears_and_says_why() -> None:
    few, uncovered = a_window(101, 0, of=9), a_window(101, 0, of=20, undecided=20)
    uneven, empty = a_window(101, 0, w2=100.0), a_window(101, 0, of=0)
    for missing, why in [
        (few, "9 decided, needs 10"),
        (uncovered, "coverage 0.5, needs 0.8"),
        (uneven, "effective n 4, needs 10"),
        (empty, "no data"),
        (a_window(101, 0, of=0, undecided=30), "coverage 0, needs 0.8"),
    ]:
        state, trips = read(missing)
        assert (state.status, trips, state.why) == (GateStatus.OK, [], why)
        state, trips = read(a_window(100, 10), missing)
        assert (state.status, len(trips), state.why) == (GateStatus.FIRING, 1, why)


def test_a_missing_measurement_or_silence_breaks_a_row_of_recovered_windows() -> None:
    bad, good = a_window(100, 10), a_window(101, 20)
    with_missing, _ = read(bad, good, a_window(102, 0, of=0), a_window(103, 20))
    with_silence, _ = read(bad, good, a_window(103, 20))
    assert (with_missing.status, with_missing.streak) == (with_silence.status, with_silence.streak) == (GateStatus.FIRING, 1)


def test_a_window_is_read_once_and_never_after_a_later_one() -> None:
    state, _ = read(a_window(100, 20), a_window(102, 20))
    assert read_window(GATE, state, a_window(102, 0), ALLOWANCE) == (state, ())
    assert read_window(GATE, state, a_window(101, 0), ALLOWANCE) == (state, ())


def test_a_change_of_contract_starts_again() -> None:
    state, trips = read(a_window(100, 10), a_window(101, 20), a_window(102, 18, contract="c2"))
    fired, cleared = trips
    assert (cleared.transition, cleared.trip_id, cleared.contract) == (Transition.CLEARED, fired.trip_id, "c1")
    assert (cleared.why, cleared.value) == ("contract changed", None)
    assert (state.status, state.contract, state.streak, state.clears) == (GateStatus.OK, "c2", 0, 1)


def test_a_new_contract_can_fire_in_the_window_in_which_the_old_one_is_cleared() -> None:
    state, trips = read(a_window(100, 10), a_window(101, 10, contract="c2"))
    assert [(trip.transition, trip.contract) for trip in trips[1:]] == [(Transition.CLEARED, "c1"), (Transition.FIRED, "c2")]
    assert len({trip.trip_id for trip in trips}) == 2
    assert state.trip_id == trips[-1].trip_id


def test_an_empty_window_of_a_former_contract_changes_nothing() -> None:
    state, trips = read(a_window(100, 10, contract="c2"), a_window(101, 0, of=0, contract="c1"))
    assert (state.contract, state.status, len(trips)) == ("c2", GateStatus.FIRING, 1)


def test_a_trip_is_named_by_what_it_is_about_in_which_project() -> None:
    [here] = read(a_window(100, 10))[1]
    elsewhere = a_window(100, 10)
    elsewhere = replace(elsewhere, series=replace(elsewhere.series, project="bank"))
    [there] = read(elsewhere, state=replace(START, project="bank"))[1]
    assert here.trip_id != there.trip_id
    assert read(a_window(100, 10))[1] == [here]


def test_windows_are_due_in_event_time_order_once_they_are_final() -> None:
    windows = [a_window(minute, 20) for minute in (103, 101, 102)]
    at = final_at(windows[2], ALLOWANCE)
    assert [one.start_ns // MINUTE for one in due_windows(GATE, START, windows, at, ALLOWANCE)] == [101, 102]
    assert [one.start_ns // MINUTE for one in due_windows(GATE, START, windows, at - 1, ALLOWANCE)] == [101]


def test_a_window_whose_first_run_came_when_it_was_final_is_never_due() -> None:
    final = 105 * MINUTE + ALLOWANCE
    late, in_time = a_window(100, 0, first_received_ns=final), a_window(100, 0, first_received_ns=final - 1)
    assert is_late(late, ALLOWANCE)
    assert due_windows(GATE, START, [late], final + MINUTE, ALLOWANCE) == []
    assert due_windows(GATE, START, [in_time], final + MINUTE, ALLOWANCE) == [in_time]


def test_only_windows_of_the_gate_and_its_cohort_are_due() -> None:
    right = a_window(100, 0)
    series = right.series
    wrong = [
        replace(right, length_ns=10 * MINUTE),
        replace(right, series=replace(series, project="bank")),
        replace(right, series=replace(series, dimension="tone")),
        replace(right, series=replace(series, cohort=Cohort("refunds", "2", "production"))),
    ]
    assert due_windows(GATE, START, [*wrong, right], 200 * MINUTE, ALLOWANCE) == [right]


def test_replayed_history_is_ignored() -> None:
    cohort = Cohort("refunds", "1", BACKFILL)
    right = a_window(100, 0)
    replayed = replace(right, series=replace(right.series, cohort=cohort))
    state = replace(START, cohort=cohort)
    assert due_windows(GATE, state, [replayed], 200 * MINUTE, ALLOWANCE) == []
    assert read_window(GATE, state, replayed, ALLOWANCE) == (state, ())


def test_of_two_contracts_in_one_window_the_later_one_speaks() -> None:
    old, new = a_window(100, 20), a_window(100, 0, contract="c0", first_received_ns=100 * MINUTE + 2 * SECOND)
    retired = a_window(100, 0, of=0)
    for windows in ([old, new], [new, old], [new, retired], [retired, new]):
        assert due_windows(GATE, START, windows, 200 * MINUTE, ALLOWANCE) == [new]


def test_it_wakes_when_the_next_window_becomes_final() -> None:
    windows = [a_window(100, 10), a_window(101, 10), a_window(102, 10)]
    now = final_at(windows[0], ALLOWANCE)
    state, trips, wake_at = on_windows(GATE, START, windows, now, ALLOWANCE)
    assert (len(trips), state.last_window_ns, wake_at) == (1, 100 * MINUTE, final_at(windows[1], ALLOWANCE))
    assert on_windows(GATE, state, windows, now, ALLOWANCE) == (state, (), wake_at)
    assert on_windows(GATE, state, windows, 200 * MINUTE, ALLOWANCE).wake_at is None


def test_code_windows_wait_for_the_idle_timeout_and_judged_ones_for_the_judge() -> None:
    assert allowance(Kind.CODE, 5 * MINUTE, 15 * MINUTE) == 6 * MINUTE
    assert {allowance(kind, 5 * MINUTE, 15 * MINUTE) for kind in (Kind.JUDGED, Kind.COMPOSITE, Kind.VERDICT)} == {15 * MINUTE}


def test_a_state_that_is_behind_its_trips_is_rebuilt_from_them() -> None:
    before, _ = read(a_window(100, 20))
    fired_state, fired = read(a_window(101, 10), state=before)
    recovered, cleared = read(a_window(102, 20), a_window(103, 20), state=fired_state)
    assert replace(rebuild(before, fired), version=0) == replace(fired_state, version=0)
    assert replace(rebuild(before, fired + cleared), version=0) == replace(recovered, version=0)
    assert rebuild(before, fired).version > before.version


def test_a_state_that_is_not_behind_is_left_alone() -> None:
    state, trips = read(a_window(101, 10), a_window(102, 20))
    assert rebuild(state, trips) == state
    assert rebuild(START, []) == START
    assert rebuild(START, [replace(trips[0], gate="another")]) == START
