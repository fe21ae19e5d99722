"""Gates over windows: windows in, trips out.

Each window is read once, when it is final, in event-time order. What is amended later never fires or clears a gate in the past.

A change of contract restarts the gate: the two contracts measure different things, so nothing carries over. An incident that is
open then is cleared with ``contract changed`` as its reason, and the new contract is read from the same window on.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from pipeline.model import ids
from pipeline.model.result import Kind
from pipeline.model.time import MINUTE
from pipeline.model.window import GateState, GateStatus, Transition, Trip, Window
from pipeline.stages import gate_burn_rate, gate_drift, gate_floor
from pipeline.stages.gate import BurnRateGate, FloorGate, SeriesGate, Turn, watches
from pipeline.stages.gate_reading import Beside, Reading, beside

CONTRACT_CHANGED: Final = "contract changed"


def allowance(kind: str, idle_timeout_ns: int, judge_deadline_ns: int) -> int:
    """Return how long after its end a window of this kind of dimension can still gain results (design section 5)."""
    return idle_timeout_ns + MINUTE if kind == Kind.CODE else judge_deadline_ns


def final_at(window: Window, allowance_ns: int) -> int:
    """Return when, on the gate's clock, the window is final."""
    return window.end_ns + allowance_ns


def is_late(window: Window, allowance_ns: int) -> bool:
    """Whether the first of a window's runs was heard of when the window was already final: then it is never gated."""
    return window.sums.first_received_ns >= final_at(window, allowance_ns)


def on_windows(gate: SeriesGate, state: GateState, windows: Iterable[Window], now: int, allowance_ns: int) -> Turn:
    """Read what is due among stored windows of the state's cohort. Windows that were read before change nothing."""
    held = tuple(window for window in windows if _concerns(gate, state, window))
    ends = {(window.length_ns, window.end_ns, window.series.contract): window for window in held}
    trips: tuple[Trip, ...] = ()
    for window in due_windows(gate, state, held, now, allowance_ns):
        state, more = read_window(gate, state, window, allowance_ns, beside(ends, window))
        trips += more
    ahead = (final_at(window, allowance_ns) for window in _unread(gate, state, held, allowance_ns))
    return Turn(state, trips, min(ahead, default=None))


def due_windows(gate: SeriesGate, state: GateState, windows: Iterable[Window], now: int, allowance_ns: int) -> list[Window]:
    """Return the final windows that are still to be read, in event-time order, one for each start.

    Where runs of one window were scored under two contracts, the one that came into use later speaks.
    """
    chosen: dict[int, Window] = {}
    for window in _unread(gate, state, windows, allowance_ns):
        rival = chosen.get(window.start_ns)
        if final_at(window, allowance_ns) <= now and (rival is None or _newer(window, rival)):
            chosen[window.start_ns] = window
    return [chosen[start] for start in sorted(chosen)]


def _concerns(gate: SeriesGate, state: GateState, window: Window) -> bool:
    series = window.series
    return (series.project, series.cohort, series.dimension) == (state.project, state.cohort, gate.dimension)


def _unread(gate: SeriesGate, state: GateState, windows: Iterable[Window], allowance_ns: int) -> Iterable[Window]:
    if not watches(gate, state.cohort):
        return ()
    return (
        window
        for window in windows
        if _concerns(gate, state, window)
        and window.length_ns == gate.window
        and window.start_ns % gate.stride == 0
        and window.start_ns > state.last_window_ns
        and not is_late(window, allowance_ns)
    )


def _newer(window: Window, rival: Window) -> bool:
    # An empty window was first heard of at 0, so it yields to one with runs.
    return (window.sums.first_received_ns, window.series.contract) > (rival.sums.first_received_ns, rival.series.contract)


def _alone(_length: int) -> None:
    """Stand where there is no window beside the one that is read."""


def read_window(
    gate: SeriesGate, state: GateState, window: Window, allowance_ns: int, beside: Beside = _alone
) -> tuple[GateState, tuple[Trip, ...]]:
    """Read one final window; return the state after it, and the trips it makes (usually none)."""
    if window.start_ns <= state.last_window_ns or not watches(gate, state.cohort):
        return state, ()
    # Silence between two windows is a missing measurement too.
    gap = window.start_ns - state.last_window_ns > gate.stride
    contract = window.series.contract if window.sums.n else state.contract
    read = replace(
        state,
        last_window_ns=window.start_ns,
        streak=0 if gap else state.streak,
        why="",
        version=state.version + 1,
        contract=contract,
    )
    trips: tuple[Trip, ...] = ()
    if contract != state.contract:
        read = replace(read, streak=0, memory=())
        if state.status is GateStatus.FIRING:
            trips = (replace(_trip(gate, state, window, allowance_ns), transition=Transition.CLEARED, why=CONTRACT_CHANGED),)
            read = _cleared(read)
    said = _said(gate, read, window, beside)
    read = replace(read, memory=said.memory)
    if said.missing:
        return replace(read, streak=0 if said.interrupts else read.streak, why=said.missing), trips
    step = _while_firing if read.status is GateStatus.FIRING else _while_ok
    read, more = step(gate, read, said, _trip(gate, read, window, allowance_ns))
    return read, trips + more


def _said(gate: SeriesGate, state: GateState, window: Window, beside: Beside) -> Reading:
    if isinstance(gate, FloorGate):
        return gate_floor.reading(gate, window)
    if isinstance(gate, BurnRateGate):
        return gate_burn_rate.reading(gate, window, beside)
    return gate_drift.reading(gate, state, window, beside)


def _while_ok(gate: SeriesGate, state: GateState, said: Reading, trip: Trip) -> tuple[GateState, tuple[Trip, ...]]:
    if not said.raises:
        return state, ()
    trip_id = ids.digest(16, state.project, gate.name, state.cohort.id, state.contract, str(trip.window_ns))
    fired = replace(trip, trip_id=trip_id, value=said.value, threshold=said.raise_at, why=said.raises)
    return replace(state, status=GateStatus.FIRING, trip_id=trip_id, streak=0, why=said.raises), (fired,)


def _while_firing(gate: SeriesGate, state: GateState, said: Reading, trip: Trip) -> tuple[GateState, tuple[Trip, ...]]:
    if said.holds:
        return replace(state, streak=0, why=said.holds), ()
    state = replace(state, streak=state.streak + 1, why=f"{state.streak + 1} of {gate.clear_windows} windows recovered")
    if state.streak < gate.clear_windows:
        return state, ()
    over = replace(trip, transition=Transition.CLEARED, value=said.value, threshold=said.clear_at, why=said.recovered)
    return replace(_cleared(state), why=said.recovered), (over,)


def _cleared(state: GateState) -> GateState:
    return replace(state, status=GateStatus.OK, trip_id="", streak=0, clears=state.clears + 1)


def _trip(gate: SeriesGate, state: GateState, window: Window, allowance_ns: int) -> Trip:
    return Trip(
        project=state.project,
        gate=gate.name,
        kind=gate.kind,
        cohort=state.cohort,
        trip_id=state.trip_id,
        transition=Transition.FIRED,
        # When the window became final, not when somebody came to read it: reading again writes the same row.
        at_ns=final_at(window, allowance_ns),
        contract=state.contract,
        dimension=gate.dimension,
        window_ns=window.start_ns,
    )


def rebuild(state: GateState, trips: Iterable[Trip]) -> GateState:
    """Return the state after the last of the gate's stored trips for this cohort, where the stored state is behind it.

    Windows that were read since then and tripped nothing are read again, and again trip nothing.
    """
    own = [trip for trip in trips if (trip.project, trip.gate, trip.cohort) == (state.project, state.gate, state.cohort)]
    # A change of contract can clear the old incident and fire a new one in one window.
    last = max(own, key=lambda trip: (trip.window_ns, trip.transition is Transition.FIRED), default=None)
    if last is None or last.window_ns <= state.last_window_ns:
        return state
    firing = last.transition is Transition.FIRED
    return replace(
        state,
        contract=last.contract,
        status=GateStatus.FIRING if firing else GateStatus.OK,
        trip_id=last.trip_id if firing else "",
        clears=sum(trip.transition is Transition.CLEARED for trip in own),
        last_window_ns=last.window_ns,
        streak=0,
        memory=(),
        why=last.why,
        version=state.version + 1,
    )
