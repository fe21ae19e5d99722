"""A small world for the owner of gates: a store and a pager that fail where they are told to, and a story with every kind of trip.

However often the owner dies, waits or is told nothing, in the end the rows must be what they are when all goes well.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from msgspec.structs import replace
from opentelemetry.metrics import NoOpMeter
from unit.clickhouse.records import a_result, a_run, a_run_version, a_version, retract

from pipeline.errors import TemporaryError
from pipeline.model.result import Kind, Outcome
from pipeline.model.run import BACKFILL, Cohort, Place
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.topology import TRIPS, Topic
from pipeline.model.version import Retired, TraceVersion
from pipeline.model.window import GateState, Notification, Transition, Trip
from pipeline.runtime.gate_owner import GateOwner
from pipeline.runtime.gates import Gates, Owns, everything
from pipeline.runtime.messenger import Messenger
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.gate import BurnPair, BurnRateGate, DriftGate, FloorGate, HardGate, lengths_of
from pipeline.stages.retention import FOREVER
from pipeline.stages.turn import keys, touched_by
from sinks.memory_gates import MemoryGateStore

START = 30_000_000 * MINUTE
"""A whole minute in January 2027."""
SHOP = Cohort("shop", "1", "production")
DESK = Cohort("desk", "1", "production")
HELP = Cohort("help", "1", "production")
PAST = Cohort("shop", "1", BACKFILL)
IDLE = "uncalibrated"
DECIDING = "good"
"""The contract whose scores decide nothing."""
FLOOR = FloorGate(
    name="verdicts",
    kind="floor",
    agent="shop",  # nothing of it is amended in the story: a window that was, is read as it is by whoever comes late
    raise_below=0.8,
    clear_above=0.9,
    min_n=3,
    min_n_effective=3,
    clear_windows=2,
    notify=("pager", "chat"),
)
TONES = FloorGate(
    name="tones", kind="floor", dimension="tone", measure="mean", raise_below=3, clear_above=3, min_n=1, min_n_effective=1
)
BURN = BurnRateGate(
    name="burning",
    kind="burn_rate",
    agent="shop",
    budget=0.1,
    pairs=(BurnPair(long=5 * MINUTE, short=MINUTE),),
    z=1,
    min_n=3,
    min_n_effective=3,
)
DRIFT = DriftGate(
    name="drifting", kind="drift", agent="shop", budget=0.1, window=MINUTE, clear_window=5 * MINUTE, false_alarm_every=10 * MINUTE
)
NAMED = HardGate(name="no refunds", kind="hard", dimensions=("forbid",), quiet=HOUR)
GATING = HardGate(name="gating", kind="hard", quiet=HOUR)
GATES = (FLOOR, TONES, NAMED, GATING)
ROUTES = {
    "verdicts": ("pager", "chat"),
    "burning": ("pager",),
    "drifting": ("pager",),
    "tones": ("pager",),
    "no refunds": ("pager",),
    "gating": ("pager",),
}


class Killed(BaseException):
    """What ``kill -9`` is to the code it hits: nothing after it runs."""


class Fault(NamedTuple):
    """How a call fails, and whether what it was to do is done all the same."""

    error: type[BaseException]
    done: bool


FAULTS = tuple(Fault(error, done) for error in (Killed, TemporaryError) for done in (False, True))


class Faults:
    """Counts the calls that leave the process, and lets some of them fail."""

    def __init__(self, planned: Mapping[int, Fault] | None = None) -> None:
        self.planned = dict(planned or {})
        self.calls: list[str] = []

    async def around(self, name: str, call: Callable[[], Any]) -> Any:
        """Do a call, unless it is its turn to fail."""
        self.calls.append(name)
        fault = self.planned.get(len(self.calls))
        if fault is not None and not fault.done:
            raise fault.error(f"{name} was not done")
        done = await call()
        if fault is not None:
            raise fault.error(f"{name} was done")
        return done


class FaultyStore:
    """A store of which every call may fail."""

    def __init__(self, store: MemoryGateStore, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._faults.around(name, lambda: method(*args, **kwargs))

        return call


class Destination:
    """Somebody who is told; keeps what was delivered, and may be out of order for a number of attempts."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.delivered: list[Notification] = []
        self.broken: list[Exception] = []

    async def send(self, notification: Notification) -> None:
        """Deliver."""

        async def deliver() -> None:
            if self.broken:
                raise self.broken.pop(0)
            self.delivered.append(notification)

        await self._faults.around("send", deliver)

    @property
    def keys(self) -> set[str]:
        """What a receiver that honours the keys has seen."""
        return {one.idempotency_key for one in self.delivered}


class GateWorld:
    """An owner of gates on a store in memory, driven by hand. It is started again where it dies."""

    def __init__(
        self,
        faults: Mapping[int, Fault] | None = None,
        *,
        tells: bool = True,
        gates: Sequence[Any] = GATES,
        store: MemoryGateStore | None = None,
        owns: Owns = everything,
        partitions: Collection[int] = (0,),
        retention: int = FOREVER,
    ) -> None:
        self._retention = retention
        self.faults = Faults(faults)
        self.store = MemoryGateStore() if store is None else store
        self.published: list[Trip] = []
        self._owns = owns
        self._partitions = partitions
        self.pager, self.chat = Destination(self.faults), Destination(self.faults)
        self.tells = tells
        self.deaths = 0
        self.now = START
        self.owner: GateOwner | None = None
        self._gates = gates

    def new_owner(self) -> GateOwner:
        """An owner that knows nothing yet."""
        store = cast("MemoryGateStore", FaultyStore(self.store, self.faults))
        return GateOwner(
            store,
            Gates(
                store, self._gates, 5 * MINUTE, 5 * MINUTE, {"forbid": "code"}, frozenset({DECIDING}), lambda _: self._retention
            ),
            Messenger(store, {"pager": self.pager, "chat": self.chat}, ROUTES, Telemetry(NoOpMeter("test"))),
            sorted({5 * MINUTE, *lengths_of(self._gates)}),
            lambda _project, agent: frozenset({"gated"} if agent == DESK.agent else ()),
            self._publish,
            self._owns,
            self._partitions,
        )

    async def _publish(self, topic: Topic, records: Sequence[Any]) -> None:
        assert topic is TRIPS
        self.published.extend(records)

    async def write(self, *versions: TraceVersion) -> None:
        """What the owners of traces do: write runs and results, then tell the minutes that they touched."""
        await self.store.write(versions)
        if self.tells and self.owner is not None:
            for version in versions:
                self.owner.touch(touched_by(version))

    async def step(self) -> None:
        """Step until a step goes through, as the runtime does; start anew where it was killed."""
        for _ in range(20):
            before = len(self.faults.calls)
            try:
                if self.owner is None:
                    owner = self.new_owner()
                    await owner.recover(self.now)
                    self.owner = owner
                await self.owner.step(self.now, self.now)
            except Killed:
                self.deaths += 1
                self.owner = None
                continue
            except TemporaryError:  # a start that fails is tried again
                assert self.owner is None, "a step raised a temporary error"
                continue
            if not any(before < number <= len(self.faults.calls) for number in self.faults.planned):
                return
        raise AssertionError("the owner never gets through a step")


def graded(
    number: int,
    cohort: Cohort,
    minute: int,
    *,
    passes: bool = True,
    failing: Sequence[str] = (),
    tone: Outcome = Outcome.FAIL,
    facts: int = 1,
) -> TraceVersion:
    """A trace with one run, by what its verdict and its checks say; its tone is bad as a rule, and nobody is calibrated to say so."""
    place = Place(cohort, START + minute * MINUTE)
    run = a_run(
        "default", f"{number:032x}", place=place, request=f"question {number % 2}", first_received_ns=place.minute_ns + SECOND
    )
    outcome = {True: Outcome.PASS, False: Outcome.FAIL}
    results = (
        *(a_result(name, outcome=outcome[name not in failing], reason="seen") for name in ("forbid", "gated", "answer")),
        a_result("verdict", Kind.VERDICT, outcome[passes], contract="card"),
        a_result("tone", Kind.JUDGED, tone, contract=IDLE, value=1.0, lower=1.0, upper=1.0),
    )
    return a_version(a_run_version(run, 4 * facts, *results, failing=() if passes else ("check_failed: forbid",)), facts=facts)


def merged(version: TraceVersion, facts: int) -> TraceVersion:
    """A later version of a trace whose run became part of a run that nobody fails."""
    (before,) = version.runs
    heir = a_run("default", version.trace_id, "b7", place=before.run.place, request="something else")
    return replace(
        graded(0, before.run.place.cohort, 0, facts=facts),
        trace_id=version.trace_id,
        runs=(a_run_version(heir, 4 * facts, a_result("forbid"), a_result("verdict", Kind.VERDICT, contract="card")),),
        retractions=(retract(before.run, heir, 4 * facts),),
        retired=tuple(Retired(key, 4 * facts) for key in sorted(keys(before))),
    )


def moved(version: TraceVersion, later: TraceVersion) -> TraceVersion:
    """A later version of a trace whose run turned out to be elsewhere."""
    now = {key for run in later.runs for key in keys(run)}
    left = {key for run in version.runs for key in keys(run)} - now
    return replace(later, retired=tuple(Retired(key, later.version) for key in sorted(left)))


def some(count: int, first: int, cohort: Cohort, minute: int, **fields: Any) -> list[TraceVersion]:
    """Runs that end alike."""
    return [graded(first + index, cohort, minute, **fields) for index in range(count)]


Chapter = tuple[int, list[TraceVersion]]
"""(minute of the clock, what is written then)."""


def story() -> list[Chapter]:
    """An agent that fails and recovers, another that does what it must not and is forgiven for one of the runs, and replayed history.

    Two runs that fail turn out to be of another agent than they seemed to be of, and fail there as well.
    """
    bad, worse = (
        graded(50, DESK, 0, failing=["forbid"], passes=False),
        graded(51, DESK, 1, failing=["gated", "forbid"], passes=False),
    )
    left, came = (graded(number, cohort, 1, failing=["forbid"], passes=False) for number, cohort in ((55, DESK), (57, HELP)))
    turned_out = [
        moved(before, graded(number, cohort, 1, failing=["forbid"], passes=False, facts=2))
        for before, number, cohort in ((left, 55, HELP), (came, 57, DESK))
    ]
    return [
        (1, [*some(4, 0, SHOP, 0, passes=False), bad, left, *some(4, 90, PAST, 0, passes=False, failing=["forbid", "gated"])]),
        (2, [worse, came, graded(52, DESK, 1, failing=["answer"])]),
        (7, []),
        (15, [*some(4, 10, SHOP, 10), *some(4, 20, SHOP, 11), *some(4, 30, SHOP, 12)]),
        (20, [merged(bad, 2), *turned_out]),
        (30, []),
        (90, []),
        (100, []),
    ]


async def tell(world: GateWorld, chapters: Iterable[Chapter], away: Iterable[int] = ()) -> GateWorld:
    """Play a story; in the chapters that the owner is ``away`` it is dead."""
    gone = set(away)
    for number, (minute, versions) in enumerate(chapters):
        world.now = START + minute * MINUTE
        if number in gone:
            world.owner = None
            await world.write(*versions)
            continue
        if world.owner is None:
            await world.step()
        await world.write(*versions)
        await world.step()
    for _ in range(4):  # what was postponed is due within minutes, and what was lost is derived within half of one
        world.now += 10 * MINUTE
        await world.step()
    return world


class Seen(NamedTuple):
    """All that a reader and a receiver can see in the end, apart from when it was noticed."""

    trips: list[Trip]
    states: list[GateState]
    windows: dict[Any, Any]
    minutes: dict[Any, Any]
    evaluations: dict[Any, Any]
    cases: dict[Any, Any]
    members: dict[Any, Any]
    confirmed: set[str]
    pager: set[str]
    chat: set[str]
    unconfirmed: list[str]


def seen(world: GateWorld) -> Seen:
    """Look at a world. When a failing run was noticed, and so when its incident ends, depends on when somebody looked."""
    store = world.store
    trips = [replace(trip, at_ns=trip.at_ns if trip.kind == "floor" else 0) for trip in store.tripped.values()]
    return Seen(
        trips=sorted(trips, key=repr),
        states=sorted((replace(state, version=0, last_failure_ns=0) for state in store.states.values()), key=repr),
        windows={key: window for key, (window, _) in store.windows.items()},
        minutes=dict(store.minutes),
        evaluations=dict(store.evaluations.held),
        cases={key: replace(case, version=0) for key, case in store.cases.items()},
        members=dict(store.members),
        confirmed={one.idempotency_key for one in store.told.values() if one.confirmed_ns},
        pager=world.pager.keys,
        chat=world.chat.keys,
        unconfirmed=[one.last_error for one in store.told.values() if not one.confirmed_ns],
    )


def assert_same(found: Mapping[Any, object], expected: Mapping[Any, object]) -> None:
    """Hold two mappings equal, entry by entry. Pytest's own account of two large ones takes a minute, and a mutant is to break a law at once."""
    differing = {
        key: (found.get(key, "nothing"), expected.get(key, "nothing"))
        for key in found.keys() | expected.keys()
        if found.get(key, "nothing") != expected.get(key, "nothing")
    }
    assert not differing, f"(found, expected): {differing}"


def fired(trips: Iterable[Trip]) -> list[tuple[str, str, Transition, str]]:
    """Trips in short: (gate, agent, transition, run)."""
    return sorted((trip.gate, trip.cohort.agent, trip.transition, trip.run_id) for trip in trips)
