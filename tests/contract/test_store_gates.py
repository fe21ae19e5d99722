"""What the owner of gates may expect of a store: the same of the one in memory and of those in ClickHouse."""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from builders import T0
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from unit.clickhouse.records import COHORT, M0, SAMPLED, UNSAMPLED, a_result, a_run, a_run_version, a_version, retract

from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.ids import run_id
from pipeline.model.result import Kind, Outcome, Result
from pipeline.model.run import Cohort, Place
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.version import ResultKey, Retired, TraceVersion
from pipeline.model.window import GateState, GateStatus, Notification, Series, Sums, Touched, Transition, Trip
from pipeline.runtime.windows import recompute
from pipeline.stages.alert import confirmed, postponed, refused
from pipeline.stages.turn import keys
from pipeline.stages.window import MinuteRow, fold, window
from sinks.clickhouse.store import Store
from sinks.memory_gates import MemoryGateStore

AnyStore: TypeAlias = Store | MemoryGateStore
OTHER = Cohort("refunds", "1.5.0", "staging")
COHORTS = (COHORT, OTHER)
MINUTES = tuple(M0 + step * MINUTE for step in range(3))
RUNS = tuple((f"{trace:032x}", head) for trace in range(2) for head in ("a1", "a2"))
names = (f"gates-{number}" for number in count())
# Without shrinking: an engine is too slow for it, and a history is short anyway.
history = settings(
    max_examples=8,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


# Runs with results, and all that is read of them

fractions = st.sampled_from([0.0, 0.25, 0.5, 1.0])  # sums of these are exact, in whatever order
kinds = st.sampled_from([("forbid", Kind.CODE), ("tone", Kind.JUDGED), ("verdict", Kind.VERDICT)])


@st.composite
def some_results(draw: st.DrawFn) -> tuple[Result, ...]:
    chosen = draw(st.lists(kinds, min_size=1, max_size=3, unique=True))
    return tuple(
        a_result(
            dimension,
            kind,
            draw(st.none() | st.sampled_from(Outcome)),
            contract=draw(st.sampled_from(["c1", "c2"])),
            value=draw(st.none() | fractions),
            lower=draw(st.none() | fractions),
            upper=draw(st.none() | fractions),
            reason=draw(st.sampled_from(["", "refunded twice", ": "])),
        )
        for dimension, kind in chosen
    )


class Step(NamedTuple):
    """One more version of one of two traces."""

    trace: int
    place: Place
    merges: bool
    one: tuple[Result, ...]
    other: tuple[Result, ...]
    sampled: bool
    failing: bool


places = st.builds(Place, st.sampled_from(COHORTS), st.sampled_from(MINUTES))
steps = st.builds(
    Step,
    trace=st.integers(0, 1),
    place=places,
    merges=st.booleans(),
    one=some_results(),
    other=some_results(),
    sampled=st.booleans(),
    failing=st.booleans(),
)


def a_history(project: str, drawn: Sequence[Step]) -> list[TraceVersion]:
    """Versions of two traces with two runs each: runs move, change their minds and their contracts, and are merged."""
    made: list[TraceVersion] = []
    before: dict[str, set[ResultKey]] = {}
    for trace, place, merges, one, other, sampled, failing in drawn:
        trace_id = f"{trace:032x}"
        facts = 1 + sum(version.trace_id == trace_id for version in made)
        heir, gone = (a_run(project, trace_id, head, place=place, request=f"{head}?") for head in ("a1", "a2"))
        fields: dict[str, Any] = {
            "sampling": SAMPLED if sampled else UNSAMPLED,
            "failing": ("check_failed: forbid",) if failing else (),
        }
        written = [a_run_version(heir, 4 * facts, *one, **fields)]
        if not merges:
            written.append(a_run_version(gone, 4 * facts, *other, **fields))
        now = {key for version in written for key in keys(version)}
        known = before.setdefault(trace_id, set())
        made.append(
            a_version(
                *written,
                facts=facts,
                retractions=(retract(gone, heir, 4 * facts),) if merges else (),
                retired=tuple(Retired(key, 4 * facts) for key in sorted(known - now)),
            )
        )
        known |= now
    return made


def without_kind(minutes: dict[tuple[Series, int], Sums]) -> dict[tuple[Series, int], Sums]:
    """Where only retired rows are left, stores may forget whose word it was."""
    return {(series if sums.n else replace(series, kind=""), at): sums for (series, at), sums in minutes.items()}


@history
@given(st.lists(steps, min_size=1, max_size=5))
def test_both_stores_read_the_same_of_the_same_runs(clickhouse: Store, drawn: list[Step]) -> None:
    project = next(names)
    versions = a_history(project, drawn)
    ids = [run_id(project, *one) for one in RUNS]
    touched = [Touched(project, cohort, minute) for cohort in COHORTS for minute in MINUTES[:2]]

    async def tell(store: AnyStore) -> tuple[Any, ...]:
        await store.write(versions[:-1])
        stale = [one for one in await store.stale_minutes() if one[0] == project]
        for cohort in COHORTS:
            await store.write_minutes(await store.minute_sums(project, cohort.id, MINUTES))
        assert [one for one in await store.stale_minutes() if one[0] == project] == []
        await store.write(versions[-1:])
        return (
            stale,
            [one for one in await store.stale_minutes() if one[0] == project],
            [without_kind(await store.minute_sums(project, cohort.id, MINUTES[1:])) for cohort in COHORTS],
            [without_kind(await store.load_minutes(project, cohort.id, MINUTES[0], MINUTES[2])) for cohort in COHORTS],
            await store.failures(touched),
            [one for one in await store.untripped_failures(MINUTES[1]) if one.project == project],
            await store.still_failing(project, ids),
            await store.still_failing(project, ids[:1]),
            await store.runs_touched(touched),
            await store.runs_by_id(project, ids[:3]),
        )

    assert asyncio.run(tell(clickhouse)) == asyncio.run(tell(MemoryGateStore()))


async def test_a_run_that_a_trip_names_is_no_news_whatever_the_gate(store: AnyStore) -> None:
    failing = [a_run("named", f"{number:032x}") for number in range(2)]
    fail = a_result("forbid", outcome=Outcome.FAIL, reason="deleted a customer")
    await store.write([a_version(a_run_version(run, 4, fail)) for run in failing])
    trip = a_trip("named", run_id=failing[0].run_id)
    await store.write_trips([trip])
    (left,) = [one for one in await store.untripped_failures(0) if one.project == "named"]
    assert (left.run_id, left.reason) == (failing[1].run_id, "forbid: deleted a customer")
    assert len(await store.failures([Touched("named", COHORT, M0)])) == 2


async def test_only_a_live_run_where_it_is_now_still_fails_and_only_by_what_was_measured(store: AnyStore) -> None:
    fail = a_result("forbid", outcome=Outcome.FAIL)
    made = {
        "check": a_run_version(a_run("still", "01" * 16), 4, fail),
        "judge": a_run_version(a_run("still", "02" * 16), 4, a_result("tone", Kind.JUDGED, Outcome.FAIL)),
        "verdict": a_run_version(a_run("still", "03" * 16), 4, a_result("verdict", Kind.VERDICT, Outcome.FAIL)),
        "merged": a_run_version(a_run("still", "04" * 16), 4, fail),
        "moved": a_run_version(a_run("still", "05" * 16), 4, fail),
    }
    await store.write([a_version(one) for one in made.values()])
    heir = a_run("still", "04" * 16, "b7")
    elsewhere = replace(made["moved"].run, place=Place(OTHER, M0))
    # Neither retires what was said before, as if its writer had died in between.
    await store.write([a_version(a_run_version(heir, 8), facts=2, retractions=(retract(made["merged"].run, heir, 8),))])
    await store.write([a_version(a_run_version(elsewhere, 8), facts=2)])
    ids = {one.run.run_id: name for name, one in made.items()}
    assert {ids[one] for one in await store.still_failing("still", list(ids))} >= {"check", "judge"}
    assert await store.still_failing("still", [made["merged"].run.run_id, made["moved"].run.run_id]) == set()
    assert await store.still_failing("still", [made["verdict"].run.run_id]) == set()
    assert await store.still_failing("elsewhere", list(ids)) == set()


async def test_no_minutes_no_windows_and_no_runs_are_no_trouble(store: AnyStore) -> None:
    await store.write_minutes({})
    await store.write_windows([])
    await store.write_members([])
    await store.write_cases([])
    assert await store.minute_sums("nobody", COHORT.id, []) == {}
    assert await store.failures([]) == []
    assert await store.still_failing("nobody", []) == set()
    assert await store.runs_touched([]) == []
    assert await store.runs_by_id("nobody", []) == {}
    assert await store.cases_of_runs("nobody", []) == {}
    assert await store.golden("nobody", ["c"]) == {"c": (None, [])}


# Minutes and windows


counted = st.lists(
    st.builds(
        MinuteRow,
        outcome=st.none() | st.sampled_from(Outcome),
        weight=st.sampled_from([0.0, 1.0, 4.0]),
        version=st.integers(1, 9),
        first_received_ns=st.integers(T0, T0 + 9),
        value=fractions,
    ),
    min_size=1,
    max_size=4,
).map(fold)
minutes_written = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(MINUTES), counted), min_size=1, max_size=8)


@history
@given(minutes_written)
def test_minutes_and_windows_made_of_more_stay(clickhouse: Store, drawn: list[tuple[str, int, Sums]]) -> None:
    project = next(names)
    # Of equal knowledge there is one minute; whichever was written last would stay.
    seen = {(dimension, at, sums.rows + sums.fingerprint): sums for dimension, at, sums in drawn}
    held = [(Series(project, COHORT, dimension, "code", "c1"), at, sums) for (dimension, at, _), sums in seen.items()]

    async def tell(store: AnyStore) -> tuple[Any, ...]:
        for series, at, sums in held:
            await store.write_minutes({(series, at): sums})
            for length in (MINUTE, 5 * MINUTE):
                await store.write_windows([window(series, at, length, sums)], amended=bool(sums.n % 2))
        return (
            await store.load_minutes(project, COHORT.id, MINUTES[0], MINUTES[2]),
            await store.load_windows(project, COHORT.id, MINUTE, MINUTES[0], MINUTES[1] + 1),
            await store.unread_windows(project, COHORT.id, "a", 5 * MINUTE, MINUTES[0]),
            await store.unread_windows(project, COHORT.id, "b", 5 * MINUTE, 0),
            await store.unread_windows(project, OTHER.id, "a", 5 * MINUTE, 0),
        )

    assert asyncio.run(tell(clickhouse)) == asyncio.run(tell(MemoryGateStore()))


# States, trips, notifications


def a_trip(project: str, **fields: Any) -> Trip:
    trip = Trip(project, "no refund twice", "hard", COHORT, "trip-1", Transition.FIRED, T0, "c1", "forbid", M0, "r1", why="twice")
    return replace(trip, **fields)


trips = st.lists(
    st.tuples(
        st.sampled_from(["trip-1", "trip-2"]),
        st.sampled_from(Transition),
        st.integers(0, 2),
        st.sampled_from(["r1", "r2"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@history
@given(trips, st.lists(st.tuples(st.integers(0, 7), st.sampled_from(["pager", "chat"]), st.integers(0, 3)), max_size=6))
def test_both_stores_know_who_was_told_of_what(
    clickhouse: Store, drawn: list[tuple[str, Transition, int, str, bool]], told: list[tuple[int, str, int]]
) -> None:
    project = next(names)
    made = [
        a_trip(
            project,
            trip_id=trip_id,
            transition=transition,
            at_ns=T0 + late,
            run_id="" if transition is Transition.CLEARED else run,
            retracted=retracted,
            value=0.25 if retracted else None,
        )
        for trip_id, transition, late, run, retracted in drawn
    ]

    async def tell(store: AnyStore) -> tuple[Any, ...]:
        for trip in made:
            await store.write_trips([trip])
        for number, destination, became in told:
            trip = made[number % len(made)]
            draft = Notification(project, trip.trip_id, trip.transition, destination, "{}", T0 + number, agent="refunds")
            tried = (
                draft,
                postponed(draft, "503", T0),
                confirmed(postponed(draft, "503", T0), T0 + SECOND),
                refused(draft, "404"),
            )[became]
            await store.write_notifications([draft])
            await store.write_notifications([tried])
        ours = (
            await store.trips(),
            await store.unnotified_trips(0),
            await store.unnotified_trips(T0 + 1),
            await store.notifications(),
            await store.unconfirmed_notifications(),
        )
        return tuple([one for one in some if one.project == project] for some in ours)

    assert asyncio.run(tell(clickhouse)) == asyncio.run(tell(MemoryGateStore()))


async def test_who_asks_for_runs_is_told_of_every_gate_and_cohort_whose_trips_name_them(store: AnyStore) -> None:
    named = [
        a_trip("tripped", run_id="tripped-1"),
        a_trip("tripped", run_id="tripped-1", gate="another", cohort=OTHER, retracted=True),
        a_trip("tripped", run_id="tripped-2", transition=Transition.RUN),
        a_trip("tripped", run_id="tripped-3", transition=Transition.RUN),
        a_trip("tripped", run_id="", transition=Transition.CLEARED),
    ]
    await store.write_trips(named)
    await store.write_trips([replace(named[0], retracted=True)])
    assert await store.tripped_runs(["tripped-1", "tripped-3", "tripped-9"]) == {
        ("tripped", "no refund twice", COHORT.id, "tripped-1"),
        ("tripped", "another", OTHER.id, "tripped-1"),
        ("tripped", "no refund twice", COHORT.id, "tripped-3"),
    }
    assert await store.tripped_runs([]) == await store.tripped_runs(["tripped-9"]) == set()


async def test_what_was_confirmed_stays_confirmed_however_often_it_is_postponed(store: AnyStore) -> None:
    draft = Notification("confirmed", "trip-1", Transition.FIRED, "pager", "{}", T0)
    late = postponed(postponed(draft, "503", T0), "503", T0)
    for one in (draft, late, postponed(draft, "503", T0)):
        await store.write_notifications([one])
    assert [one for one in await store.unconfirmed_notifications() if one.project == "confirmed"] == [late]
    await store.write_notifications([confirmed(draft, T0 + SECOND)])
    await store.write_notifications([late])
    assert [one for one in await store.unconfirmed_notifications() if one.project == "confirmed"] == []
    assert [one for one in await store.notifications() if one.project == "confirmed"] == [confirmed(draft, T0 + SECOND)]


@history
@given(
    st.lists(st.tuples(st.sampled_from(["floor", "hard"]), st.sampled_from(COHORTS), st.integers(0, 4)), min_size=1, max_size=8)
)
def test_both_stores_keep_the_latest_state_of_a_gate(clickhouse: Store, drawn: list[tuple[str, Cohort, int]]) -> None:
    project = next(names)

    async def tell(store: AnyStore) -> list[GateState]:
        for gate, cohort, version in drawn:
            status = GateStatus.FIRING if version % 2 else GateStatus.OK
            state = GateState(
                project,
                gate,
                cohort,
                "c1",
                status,
                f"t{version}",
                version,
                version,
                M0,
                T0 + version,
                version,
                "why",
                version,
                (0.5, -2.25),
            )
            await store.write_gate_states([state])
        return [state for state in await store.gate_states() if state.project == project]

    assert asyncio.run(tell(clickhouse)) == asyncio.run(tell(MemoryGateStore()))


# Golden candidates


members = st.lists(
    st.tuples(st.sampled_from(["c1", "c2"]), st.sampled_from(["r1", "r2", "r3"]), st.booleans(), st.integers(1, 3)), max_size=8
)


@history
@given(
    members,
    st.lists(
        st.tuples(st.sampled_from(["c1", "c2"]), st.sampled_from(["candidate", "withdrawn"]), st.integers(1, 3)), max_size=5
    ),
)
def test_both_stores_keep_the_latest_of_cases_and_members(
    clickhouse: Store, drawn: list[tuple[str, str, bool, int]], made: list[tuple[str, str, int]]
) -> None:
    project = next(names)

    async def tell(store: AnyStore) -> tuple[Any, ...]:
        for case_id, run, failing, version in drawn:
            await store.write_members([GoldenMember(project, case_id, run, failing, version)])
        for case_id, state, version in made:
            case = GoldenCase(case_id, project, "refunds", "Refund?", state, "development", "r1", version, version=version)
            await store.write_cases([case])
        return (
            await store.cases_of_runs(project, ["r1", "r3"]),
            await store.golden(project, ["c1", "c2", "c3"]),
            await store.golden_cases(project),
        )

    assert asyncio.run(tell(clickhouse)) == asyncio.run(tell(MemoryGateStore()))


async def test_a_run_that_was_retracted_is_read_as_one_that_does_not_fail(store: AnyStore) -> None:
    heir, gone = (a_run("merged", head=head) for head in ("a1", "a2"))
    failing = a_run_version(gone, 4, a_result("forbid", outcome=Outcome.FAIL), failing=("check_failed: forbid",))
    await store.write([a_version(a_run_version(heir, 4), failing)])
    touched = [Touched("merged", COHORT, M0)]
    assert [run.failing for run in await store.runs_touched(touched)] == [True]
    retired = tuple(Retired(key, 8) for key in sorted(keys(failing)))
    await store.write([a_version(a_run_version(heir, 8), facts=2, retractions=(retract(gone, heir, 8),), retired=retired)])
    assert await store.runs_touched(touched) == [], "nobody knows the run as a failure"
    await store.write_members([GoldenMember("merged", "case", gone.run_id, failing=True, version=4)])
    (run,) = await store.runs_touched(touched)
    assert (run.run_id, run.failing, run.version) == (gone.run_id, False, 8)
    assert await store.still_failing("merged", [gone.run_id]) == set()


async def test_a_contract_that_is_retired_at_an_equal_version_leaves_its_minute_at_once(store: AnyStore) -> None:
    """A run is scored again under a new contract while nothing more is known of it: neither count nor versions of the rows change."""

    async def counted() -> dict[str, int]:
        changed = await recompute(store, [Touched("equal", COHORT, M0)], [5 * MINUTE], lambda _: False)
        await store.write_minutes(changed)
        found = await store.load_minutes("equal", COHORT.id, M0, M0 + MINUTE)
        return {series.contract: sums.n for (series, _), sums in found.items()}

    run = a_run("equal", place=Place(COHORT, M0))
    before = a_run_version(run, 4, a_result("forbid", contract="old"))
    await store.write([a_version(before)])
    assert await counted() == {"old": 1}
    after = a_run_version(run, 4, a_result("forbid", contract="new"))
    await store.write([a_version(after, retired=tuple(Retired(key, 4) for key in keys(before)))])
    assert await counted() == {"old": 0, "new": 1}
