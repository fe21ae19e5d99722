"""Laws of gates: one trip for an incident, whatever is read again, amended, delivered in which order, and wherever the process dies."""

from collections.abc import Callable
from enum import Enum, auto

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.model.run import Cohort
from pipeline.model.time import DAY, HOUR, MINUTE, SECOND
from pipeline.model.window import GateState, GateStatus, Notification, Series, Sums, Transition, Trip, Window
from pipeline.stages import gate_hard, gate_windows
from pipeline.stages.alert import notifications
from pipeline.stages.gate import BurnPair, BurnRateGate, DriftGate, FloorGate, HardGate, SeriesGate, Turn
from pipeline.stages.gate_hard import Failure
from pipeline.stages.window import window

COHORT = Cohort("refunds", "1", "production")
FLOOR = FloorGate(name="verdicts", kind="floor", raise_below=0.8, clear_above=0.9, clear_windows=2)
BURN = BurnRateGate(
    name="verdicts",
    kind="burn_rate",
    budget=0.1,
    pairs=(BurnPair(long=5 * MINUTE, short=MINUTE),),
    min_n=10,
    clear_after=2 * MINUTE,
)
DRIFT = DriftGate(
    name="verdicts", kind="drift", budget=0.1, false_alarm_every=30 * DAY, clear_window=5 * MINUTE, clear_after=10 * MINUTE
)
HARD = HardGate(name="no refunds", kind="hard")
ALLOWANCE = 6 * MINUTE
FIRST = 1_000
"""Minute of the first window."""


class Dies(Enum):
    """After which of a turn's writes the process dies."""

    BEFORE_TRIPS = auto()
    AFTER_TRIPS = auto()
    AFTER_STATE = auto()
    NEVER = auto()


deaths = st.sampled_from(Dies)


class Store:
    """What survives: trips, the gate's state, and notifications, each by its key."""

    def __init__(self, gate: str, rebuild: Callable[[GateState, list[Trip]], GateState]) -> None:
        self.trips: dict[tuple[str, Transition, str], Trip] = {}
        self.state = GateState("shop", gate, COHORT)
        self.notified: dict[str, Notification] = {}
        self._rebuild = rebuild

    def load(self) -> GateState:
        return self._rebuild(self.state, list(self.trips.values()))

    def save(self, turn: Turn, dies: Dies) -> None:
        if dies is Dies.BEFORE_TRIPS:
            return
        for trip in turn.trips:
            key = (trip.trip_id, trip.transition, trip.run_id)
            assert self.trips.setdefault(key, trip) == trip, "a trip was written again with other words"
        if dies is Dies.AFTER_TRIPS:
            return
        assert turn.state == self.state or turn.state.version > self.state.version, "the store would keep the older state"
        self.state = turn.state
        if dies is Dies.NEVER:
            self.notify()

    def notify(self) -> None:
        """What the start of a process does: make what is due of every trip."""
        for trip in self.trips.values():
            for notification in notifications(trip, ("pager", "chat")):
                assert self.notified.setdefault(notification.idempotency_key, notification) == notification

    def in_order(self) -> list[Trip]:
        return sorted(self.trips.values(), key=lambda trip: (trip.at_ns, trip.transition is not Transition.CLEARED, trip.run_id))


def a_window(minute: int, passed: int, of: int, undecided: int, contract: str) -> Window:
    at = (FIRST + minute) * MINUTE
    sums = Sums(
        n=of + undecided,
        decided=of,
        w=of,
        w2=of,
        wp=passed,
        undecided_w=undecided,
        first_received_ns=at + SECOND if of + undecided else 0,
    )
    return window(Series("shop", COHORT, "verdict", "verdict", contract), at, 5 * MINUTE, sums)


@st.composite
def histories(draw: st.DrawFn) -> list[Window]:
    """Windows of an agent that gets worse and better, with gaps, thin windows, and a change of contract."""
    minutes = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=25)))
    changes = draw(st.integers(0, 30))
    return [
        a_window(
            minute,
            passed=draw(st.sampled_from([0, 10, 15, 17, 18, 20])),
            of=draw(st.sampled_from([20, 20, 20, 20, 0])),
            undecided=draw(st.sampled_from([0, 0, 0, 30])),
            contract="c1" if minute < changes else "c2",
        )
        for minute in minutes
    ]


def with_minutes(windows: list[Window]) -> list[Window]:
    """Add to each window its last minute, with as large a share of passes: what a pair of windows looks at."""
    last = [
        window(
            one.series,
            one.end_ns - MINUTE,
            MINUTE,
            Sums(
                n=one.sums.n,
                decided=one.sums.decided,
                w=one.sums.w,
                w2=one.sums.w2,
                wp=one.sums.wp,
                undecided_w=one.sums.undecided_w,
                first_received_ns=one.sums.first_received_ns,
            ),
        )
        for one in windows
    ]
    return [*windows, *last]


def read_straight(gate: SeriesGate, windows: list[Window]) -> list[Trip]:
    """The oracle: every window once, in order, and nobody dies."""
    state = GateState("shop", gate.name, COHORT)
    trips: list[Trip] = []
    for one in windows:
        if one.start_ns % gate.stride == 0:
            ending = {other.length_ns: other for other in with_minutes([one])}
            state, more = gate_windows.read_window(gate, state, one, ALLOWANCE, ending.get)
            trips += more
    return trips


@pytest.mark.parametrize("gate", [FLOOR, BURN, DRIFT], ids=lambda gate: gate.kind)
@given(windows=histories(), data=st.data())
def test_a_gate_trips_the_same_wherever_it_dies_and_whatever_it_reads_again(
    gate: SeriesGate, windows: list[Window], data: st.DataObject
) -> None:
    store = Store(gate.name, gate_windows.rebuild)
    stored = {(one.length_ns, one.start_ns): one for one in with_minutes(windows)}
    last = gate_windows.final_at(windows[-1], ALLOWANCE)
    steps = data.draw(st.lists(st.tuples(st.integers(FIRST * MINUTE, last), deaths), max_size=12))
    for now, dies in [*sorted(steps, key=lambda step: step[0]), (last, Dies.NEVER)]:
        shown = data.draw(st.permutations(list(stored.values())))
        store.save(gate_windows.on_windows(gate, store.load(), shown, now, ALLOWANCE), dies)
        # What was read is amended by late runs, and must not be heard again.
        read = [(length, start) for length, start in stored if start + length <= store.load().last_window_ns + gate.window]
        for key in data.draw(st.lists(st.sampled_from(read), max_size=3)) if read else []:
            stored[key] = replace(stored[key], rate=0.0)
    expected = {(trip.trip_id, trip.transition, trip.run_id): trip for trip in read_straight(gate, windows)}
    assert store.trips == expected
    assert len(store.notified) == 2 * len(expected)


@pytest.mark.parametrize("gate", [FLOOR, BURN, DRIFT], ids=lambda gate: gate.kind)
def test_the_histories_of_these_laws_make_every_kind_fire_and_clear(gate: SeriesGate) -> None:
    bad_then_good = [a_window(minute, 0 if minute < 6 else 20, 20, 0, "c1") for minute in range(31)]
    assert [trip.transition for trip in read_straight(gate, bad_then_good)] == [Transition.FIRED, Transition.CLEARED]


@pytest.mark.parametrize("gate", [FLOOR, BURN, DRIFT], ids=lambda gate: gate.kind)
@given(windows=histories())
def test_an_incident_fires_once_and_is_over_before_the_next(gate: SeriesGate, windows: list[Window]) -> None:
    trips = read_straight(gate, windows)
    assert [trip.transition for trip in trips] == [Transition.FIRED, Transition.CLEARED] * (len(trips) // 2) + [
        Transition.FIRED
    ] * (len(trips) % 2)
    fired = [trip for trip in trips if trip.transition is Transition.FIRED]
    assert len({trip.trip_id for trip in fired}) == len(fired)
    for opened, closed in zip(trips[::2], trips[1::2], strict=False):
        assert closed.trip_id == opened.trip_id
        assert closed.window_ns > opened.window_ns


@pytest.mark.parametrize("gate", [FLOOR, BURN, DRIFT], ids=lambda gate: gate.kind)
@given(windows=histories())
def test_no_gate_fires_or_clears_by_a_missing_measurement(gate: SeriesGate, windows: list[Window]) -> None:
    state = GateState("shop", gate.name, COHORT)
    for one in windows:
        ending = {other.length_ns: other for other in with_minutes([one])}
        state, trips = gate_windows.read_window(gate, state, one, ALLOWANCE, ending.get)
        measured = [trip for trip in trips if trip.why != gate_windows.CONTRACT_CHANGED]
        if one.sums.decided < 10 or one.coverage is None or one.coverage < 0.8:
            assert measured == []
            assert state.why


runs = st.sampled_from([f"r{number}" for number in range(8)])
failures = st.builds(
    Failure,
    minute_ns=st.integers(0, 30).map(lambda minute: (FIRST + minute) * MINUTE),
    run_id=runs,
    dimension=st.sampled_from(["forbid_refund", "at_most"]),
    contract=st.sampled_from(["c1", "c2"]),
    project=st.just("shop"),
    cohort=st.just(COHORT),
    reason=st.sampled_from(["", "broken"]),
)
seconds = st.sampled_from([0, 1, 60, 1800, 3600, 7200])
turns = st.lists(st.tuples(st.lists(failures, max_size=4), seconds, deaths), max_size=12)


def play(batches: list[tuple[list[Failure], int, Dies]]) -> Store:
    """Report batches of failing runs with pauses between them; in the end report all again, to a process that lives."""
    store = Store(HARD.name, gate_hard.rebuild)
    now = FIRST * HOUR
    for reported, pause, dies in [*batches, ([one for batch, *_ in batches for one in batch], 0, Dies.NEVER)]:
        now += pause * SECOND
        known = {trip.run_id for trip in store.trips.values()}
        store.save(gate_hard.on_failures(HARD, store.load(), reported, known, now), dies)
        assert store.load().status is store.state.status or dies in (Dies.BEFORE_TRIPS, Dies.AFTER_TRIPS)
    return store


@given(turns)
def test_a_run_trips_a_hard_gate_once_and_every_incident_fires_once(batches: list[tuple[list[Failure], int, Dies]]) -> None:
    store = play(batches)
    trips = store.in_order()
    named = [trip.run_id for trip in trips if trip.run_id]
    assert sorted(named) == sorted({one.run_id for batch, *_ in batches for one in batch})
    fired = [trip.trip_id for trip in trips if trip.transition is Transition.FIRED]
    cleared = [trip.trip_id for trip in trips if trip.transition is Transition.CLEARED]
    assert len(fired) == len(set(fired))
    assert set(cleared) <= set(fired)
    assert {trip.trip_id for trip in trips} == set(fired)
    assert len(fired) - len(cleared) == (store.state.status is GateStatus.FIRING)
    assert len(store.notified) == 2 * (len(fired) + len(cleared))


@given(turns)
def test_the_state_of_a_hard_gate_is_what_its_trips_say(batches: list[tuple[list[Failure], int, Dies]]) -> None:
    store = play(batches)
    empty = GateState("shop", HARD.name, COHORT)
    assert replace(gate_hard.rebuild(empty, store.in_order()), version=0) == replace(store.state, version=0)


@given(st.lists(failures, min_size=1, max_size=10), st.data())
def test_neither_order_nor_batches_of_failures_matter_to_an_incident(reported: list[Failure], data: st.DataObject) -> None:
    def incident(order: list[Failure], size: int) -> tuple[set[str], set[str]]:
        batches = [(order[at : at + size], 60, Dies.NEVER) for at in range(0, len(order), size)]
        trips = play(batches).in_order()
        return {trip.trip_id for trip in trips}, {trip.run_id for trip in trips}

    shuffled = data.draw(st.permutations(reported))
    assert incident(shuffled, data.draw(st.integers(1, 10))) == incident(reported, len(reported))


@given(turns)
def test_silence_clears_every_hard_incident(batches: list[tuple[list[Failure], int, Dies]]) -> None:
    store = play(batches)
    turn = gate_hard.on_wake(HARD, store.state, FIRST * HOUR + 1_000 * HOUR)
    assert turn.state.status is GateStatus.OK
    assert turn.wake_at is None
