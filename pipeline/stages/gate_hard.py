"""Hard gates: failing runs in, trips out.

An incident belongs to (gate, cohort): the first failing run opens it, later ones add to it, and it is over after a quiet time.
Everything the state says can be read from the trips, so trips are written first.
"""

from collections.abc import Collection, Iterable

import msgspec
from msgspec.structs import replace

from pipeline.model import ids
from pipeline.model.run import Cohort
from pipeline.model.time import MINUTE
from pipeline.model.window import GateState, GateStatus, Transition, Trip
from pipeline.stages.gate import HardGate, Turn, watches


class Failure(msgspec.Struct, frozen=True, order=True):
    """A live run that fails a check. A run may fail several."""

    minute_ns: int
    run_id: str
    dimension: str
    contract: str
    project: str
    cohort: Cohort
    reason: str = ""
    gating: bool = True
    """Whether the check gates by itself; gates that name their dimensions see the others too."""
    received_ns: int = 0
    """When the first span of the run was received."""


def on_failures(gate: HardGate, state: GateState, failures: Iterable[Failure], known: Collection[str], now: int) -> Turn:
    """Add failing runs to the incident, opening one for the first.

    ``known`` are the runs that trips of this gate already name, whatever their cohort: a run trips a gate once. Where ``now`` is behind,
    as before all partitions have told their clocks, a run fails when it was received: else its quiet time could be over at once.
    """
    state, trips, _ = on_wake(gate, state, now)
    for failure in _fresh(gate, state, failures, known):
        first, at_ns = state.status is GateStatus.OK, max(now, failure.received_ns)
        if first:
            # No contract in the name: the incident belongs to the cohort, whichever of its checks failed first.
            trip_id = ids.digest(16, state.project, gate.name, state.cohort.id, "", str(state.clears))
            state = replace(state, status=GateStatus.FIRING, trip_id=trip_id, runs=0)
        state = replace(
            state,
            runs=state.runs + 1,
            last_failure_ns=max(state.last_failure_ns, at_ns),
            why=_why(state.runs + 1),
            version=state.version + 1,
        )
        trips += (_trip(gate, state, failure, Transition.FIRED if first else Transition.RUN, at_ns),)
    return Turn(state, trips, _wake_at(gate, state))


def on_wake(gate: HardGate, state: GateState, now: int) -> Turn:
    """Clear the incident once no run has failed for the quiet time."""
    wake_at = _wake_at(gate, state)
    if wake_at is None or now < wake_at:
        return Turn(state, (), wake_at)
    why = f"no failing run for {gate.quiet / MINUTE:g} min"
    trip = Trip(
        project=state.project,
        gate=gate.name,
        kind=gate.kind,
        cohort=state.cohort,
        trip_id=state.trip_id,
        transition=Transition.CLEARED,
        at_ns=wake_at,
        why=why,
    )
    cleared = replace(
        state, status=GateStatus.OK, trip_id="", runs=0, clears=state.clears + 1, why=why, version=state.version + 1
    )
    return Turn(cleared, (trip,))


def _fresh(gate: HardGate, state: GateState, failures: Iterable[Failure], known: Collection[str]) -> list[Failure]:
    """Return one failure for each run that is new to the gate, by minute and run."""
    if not watches(gate, state.cohort):
        return []
    first: dict[str, Failure] = {}
    for failure in sorted(failures):
        watched = failure.gating if gate.dimensions is None else failure.dimension in gate.dimensions
        if watched and failure.run_id not in known and (failure.project, failure.cohort) == (state.project, state.cohort):
            first.setdefault(failure.run_id, failure)
    return list(first.values())


def _trip(gate: HardGate, state: GateState, failure: Failure, transition: Transition, at_ns: int) -> Trip:
    return Trip(
        project=state.project,
        gate=gate.name,
        kind=gate.kind,
        cohort=state.cohort,
        trip_id=state.trip_id,
        transition=transition,
        at_ns=at_ns,
        contract=failure.contract,
        dimension=failure.dimension,
        window_ns=failure.minute_ns,
        run_id=failure.run_id,
        why=failure.reason,
    )


def _why(runs: int) -> str:
    return f"{runs} failing run{'s' * (runs > 1)}"


def _wake_at(gate: HardGate, state: GateState) -> int | None:
    return state.last_failure_ns + gate.quiet if state.status is GateStatus.FIRING else None


def rebuild(state: GateState, trips: Iterable[Trip]) -> GateState:
    """Return what the gate's stored trips for this cohort say of its state; the stored state itself where it agrees."""
    own = [trip for trip in trips if (trip.project, trip.gate, trip.cohort) == (state.project, state.gate, state.cohort)]
    if not own:
        return state
    cleared = {trip.trip_id for trip in own if trip.transition is Transition.CLEARED}
    incident = [trip for trip in own if trip.trip_id not in cleared]
    runs = len({trip.run_id for trip in incident})
    last = max(own, key=lambda trip: trip.at_ns)
    rebuilt = replace(
        state,
        status=GateStatus.FIRING if incident else GateStatus.OK,
        trip_id=incident[0].trip_id if incident else "",
        clears=len(cleared),
        runs=runs,
        last_failure_ns=max(trip.at_ns for trip in own if trip.transition is not Transition.CLEARED),
        why=_why(runs) if runs else last.why,
    )
    return state if rebuilt == state else replace(rebuilt, version=state.version + 1)


def retract(trips: Iterable[Trip], failing: Collection[str]) -> list[Trip]:
    """Return the trip rows whose mark must change: ``retracted`` says that their run is no longer a live failing one.

    The trip stays, and the incident with it: somebody was told.
    """
    return [
        replace(trip, retracted=trip.run_id not in failing)
        for trip in trips
        if trip.run_id and trip.retracted == (trip.run_id in failing)
    ]
