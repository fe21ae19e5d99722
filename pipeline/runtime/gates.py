"""Gates: windows and failing runs in, trips out. The trips are written first; every state can be rebuilt from them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from pipeline.model.result import Kind
from pipeline.model.run import Cohort
from pipeline.model.window import GateState, Touched, Transition, Trip, Window
from pipeline.stages import gate_hard, gate_windows
from pipeline.stages.gate import HardGate, SeriesGate, Turn, watches
from pipeline.stages.gate_hard import Failure
from pipeline.stages.retention import kept_forever

Key = tuple[str, str, Cohort]
"""(project, gate, cohort)."""
Named = tuple[str, str, str]
"""(project, gate, run id)."""
Owns = Callable[[str, str], bool]
"""(project, agent) → whether this process owns what follows from the agent's runs."""


def everything(_project: str, _agent: str) -> bool:
    """Own all agents: there is one process."""
    return True


class GateStore(Protocol):
    """What gates need of the store."""

    async def gate_states(self) -> list[GateState]:
        """Return all states."""
        ...

    async def trips(self) -> list[Trip]:
        """Return all trips."""
        ...

    async def tripped_runs(self, run_ids: Sequence[str]) -> set[tuple[str, str, str, str]]:
        """Return (project, gate, cohort id, run id) of the trips that name these runs."""
        ...

    async def unread_windows(self, project: str, cohort_id: str, dimension: str, length_ns: int, after_ns: int) -> list[Window]:
        """Return the windows of one dimension that start after a time."""
        ...

    async def still_failing(self, project: str, run_ids: Sequence[str]) -> set[str]:
        """Return those of the runs that are live and fail a check."""
        ...

    async def write_trips(self, trips: Sequence[Trip]) -> None:
        """Write trips."""
        ...

    async def write_gate_states(self, states: Sequence[GateState]) -> None:
        """Write states."""
        ...


class Gates:
    """The gates of all cohorts that this process owns."""

    def __init__(
        self,
        store: GateStore,
        gates: Sequence[SeriesGate | HardGate],
        idle_ns: int,
        judge_deadline_ns: int,
        kinds: Mapping[str, str],
        deciding_contracts: frozenset[str] = frozenset(),
        retention_of: Callable[[str], int] = kept_forever,
    ) -> None:
        """Take the kind of each dimension that is code's, the judged contracts whose scores may decide, and the retentions.

        Windows of any other judged contract are not read: of one that is not in force any more nobody knows that it may.
        """
        self._store = store
        self._gates = gates
        self._deciding_contracts = deciding_contracts
        self._idle_ns = idle_ns
        self._judge_deadline_ns = judge_deadline_ns
        self._kinds = kinds
        self._retention_of = retention_of
        self._states: dict[Key, GateState] = {}
        self._saved: dict[Key, GateState] = {}
        """States as they are stored."""
        self._trips: dict[Key, list[Trip]] = {}
        self._named: dict[Named, set[str]] = {}
        """Ids of the cohorts as whose run a run tripped a gate, as far as it matters here; the agents of some are owned by others."""
        self._wakes: dict[Key, int] = {}
        self.unannounced: list[Trip] = []
        """Stored trips that nobody was told of yet; whoever announces them takes them out."""

    async def recover(self, owns: Owns = everything) -> None:
        """Read states and trips of the owned agents back.

        Against the order in which they are written: what a former owner still has on its way may arrive between the two, and a state
        without its trips would say of an incident that it is open and of nobody's run.
        """
        stored = {
            (state.project, state.gate, state.cohort): state
            for state in await self._store.gate_states()
            if owns(state.project, state.cohort.agent)
        }
        self._trips = {}
        for trip in await self._store.trips():
            if owns(trip.project, trip.cohort.agent):
                self._trips.setdefault((trip.project, trip.gate, trip.cohort), []).append(trip)
        for key in stored.keys() | self._trips.keys():
            gate = next((gate for gate in self._gates if gate.name == key[1]), None)
            if gate is None:
                continue
            rebuild = gate_hard.rebuild if isinstance(gate, HardGate) else gate_windows.rebuild
            self._states[key] = rebuild(stored.get(key, self._fresh(key)), self._trips.get(key, ()))
            if key in stored:
                self._saved[key] = stored[key]
            self._wakes[key] = 0

    @staticmethod
    def _fresh(key: Key) -> GateState:
        return GateState(project=key[0], gate=key[1], cohort=key[2])

    def _allowance_of(self, dimension: str) -> int:
        return gate_windows.allowance(self._kinds.get(dimension, ""), self._idle_ns, self._judge_deadline_ns)

    def is_final(self, window: Window, now: int) -> bool:
        """Whether no result of the window is waited for any more."""
        return gate_windows.final_at(window, self._allowance_of(window.series.dimension)) <= now

    @property
    def next_wake(self) -> int | None:
        """When a gate changes by itself: a window becomes final, an incident has been quiet for long enough."""
        return min(self._wakes.values(), default=None)

    async def step(self, touched: Iterable[Touched], failures: Sequence[Failure], now: int) -> None:
        """Let every gate look at the cohorts of the touched minutes and at those whose time has come."""
        minutes: dict[tuple[str, Cohort], set[int]] = {(one.project, one.cohort): set() for one in failures}
        for one in touched:
            minutes.setdefault((one.project, one.cohort), set()).add(one.minute_ns)
        looking = {(project, gate.name, cohort) for project, cohort in minutes for gate in self._gates if watches(gate, cohort)}
        looking |= {key for key, at in self._wakes.items() if at <= now}
        await self._ask_for_trips_of_others(looking, failures, now)
        for gate in self._gates:
            for key in sorted(key for key in looking if key[1] == gate.name):
                await self._look(gate, key, failures, minutes.get((key[0], key[2]), frozenset()), now)

    async def _ask_for_trips_of_others(self, looking: Iterable[Key], failures: Sequence[Failure], now: int) -> None:
        """Where a run is about to trip a gate, ask first whether it did so as the run of another cohort: a run trips a gate once.

        Two owners that look at a run that moves, each before the other has written, both find it new.
        """
        hard = {gate.name: gate for gate in self._gates if isinstance(gate, HardGate)}
        states = [self._states.get(key, self._fresh(key)) for key in looking if key[1] in hard] if failures else []
        about_to = {
            trip.run_id
            for state in states
            for trip in self._hard(hard[state.gate], state, failures, now).trips
            if trip.transition is not Transition.CLEARED
        }
        if about_to:
            for one in await self._store.tripped_runs(sorted(about_to)):
                self._name(*one)

    def _name(self, project: str, gate: str, cohort_id: str, run_id: str) -> None:
        self._named.setdefault((project, gate, run_id), set()).add(cohort_id)

    async def _look(
        self, gate: SeriesGate | HardGate, key: Key, failures: Sequence[Failure], minutes: Collection[int], now: int
    ) -> None:
        before = self._states.get(key, self._fresh(key))
        # Whatever woke it, it is looked at again until all that it says is stored.
        self._wakes[key] = now
        turn = self._hard(gate, before, failures, now) if isinstance(gate, HardGate) else await self._series(gate, before, now)
        trips = [*turn.trips, *await self._marked(gate, key, minutes, now)]
        if trips:
            await self._store.write_trips(trips)
        # What is stored is remembered before anything else can fail; a state that is not stored yet can be rebuilt from its trips.
        self._remember(key, trips)
        self.unannounced.extend(turn.trips)
        self._states[key] = turn.state
        await self._save(key, turn.state)
        del self._wakes[key]
        if turn.wake_at is not None:
            self._wakes[key] = turn.wake_at

    async def _save(self, key: Key, state: GateState) -> None:
        """A gate's first look is stored too: after a start the gate looks wherever it has a state, and its windows are final then."""
        if self._saved.get(key) != state:
            await self._store.write_gate_states([state])
            self._saved[key] = state

    async def _series(self, gate: SeriesGate, state: GateState, now: int) -> Turn:
        windows: list[Window] = []
        for length in gate.lengths:
            # Of each length those that end after the last one that was read: they are looked at together with it.
            after = max(state.last_window_ns + gate.window - length, 0)
            windows += await self._store.unread_windows(state.project, state.cohort.id, gate.dimension, length, after)
        deciding = [
            window
            for window in windows
            if window.series.kind != Kind.JUDGED or window.series.contract in self._deciding_contracts
        ]
        return gate_windows.on_windows(gate, state, deciding, now, self._allowance_of(gate.dimension))

    def _hard(self, gate: HardGate, state: GateState, failures: Sequence[Failure], now: int) -> Turn:
        known = {trip.run_id for trip in self._trips.get((state.project, gate.name, state.cohort), ())}
        # A trip of this cohort that was stored and is not remembered is made again: its state, and who is to be told, wait for it.
        known |= {
            one.run_id for one in failures if self._named.get((state.project, gate.name, one.run_id), set()) - {state.cohort.id}
        }
        return gate_hard.on_failures(gate, state, failures, known, now)

    async def _marked(self, gate: SeriesGate | HardGate, key: Key, minutes: Collection[int], now: int) -> list[Trip]:
        """Trips of runs that are no failures any more stay, marked. What has expired since says nothing of a run.

        A new version of a run touches every minute that it was ever in, and so that in which it failed.
        """
        since = now - self._retention_of(key[0])
        named = [trip for trip in self._trips.get(key, ()) if trip.run_id and trip.at_ns >= since and trip.window_ns in minutes]
        if not isinstance(gate, HardGate) or not named:
            return []
        failing = await self._store.still_failing(key[0], sorted({trip.run_id for trip in named}))
        return gate_hard.retract(named, failing)

    def _remember(self, key: Key, trips: Sequence[Trip]) -> None:
        held = {(trip.trip_id, trip.transition, trip.run_id): trip for trip in self._trips.get(key, ())}
        held |= {(trip.trip_id, trip.transition, trip.run_id): trip for trip in trips}
        self._trips[key] = list(held.values())
        for trip in trips:
            self._name(trip.project, trip.gate, trip.cohort.id, trip.run_id)


def with_gating(failures: Iterable[Failure], gating_of: Callable[[str, str], frozenset[str]]) -> list[Failure]:
    """Return the failures, each saying whether its check gates by itself; ``gating_of`` knows by (project, agent)."""
    return [replace(one, gating=one.dimension in gating_of(one.project, one.cohort.agent)) for one in failures]
