"""What moves gates and what does not: windows when they are final, failing runs at once, and nobody uncalibrated, replayed or gone."""

from collections.abc import Sequence

import pytest
from gate_worlds import (
    DESK,
    FLOOR,
    GATES,
    GATING,
    HELP,
    IDLE,
    NAMED,
    PAST,
    SHOP,
    START,
    TONES,
    GateWorld,
    fired,
    graded,
    merged,
    moved,
    some,
)
from msgspec.structs import replace

from pipeline.model.result import Outcome
from pipeline.model.run import Cohort, Place
from pipeline.model.time import DAY, HOUR, MINUTE
from pipeline.model.window import GateStatus, Transition

FIRED, CLEARED, RUN = Transition.FIRED, Transition.CLEARED, Transition.RUN


def gates_moved(world: GateWorld) -> set[tuple[str, str]]:
    return {(trip.gate, trip.cohort.environment) for trip in world.store.tripped.values()}


async def at(world: GateWorld, minute: float) -> None:
    """Let the owner look at the clock."""
    world.now = START + int(minute * MINUTE)
    await world.step()


async def test_a_window_is_read_when_it_is_final_also_after_a_start_and_when_nothing_comes_any_more() -> None:
    world = GateWorld(gates=[FLOOR])
    await world.step()
    await world.write(*some(4, 0, SHOP, 0, passes=False))
    await at(world, 1)
    assert world.store.tripped == {}
    world.owner = None  # killed before any window of the cohort was final, so no gate has said anything of it
    await at(world, 5.9)
    assert world.store.tripped == {}
    await at(world, 6)
    assert fired(world.store.tripped.values()) == [("verdicts", "shop", FIRED, "")]


async def test_a_result_that_comes_when_its_window_is_final_amends_it_and_fires_nothing() -> None:
    world = GateWorld(gates=[FLOOR])
    await world.step()
    await world.write(*some(4, 0, SHOP, 0))
    await at(world, 30)
    await world.write(*some(8, 10, SHOP, 0, passes=False))
    await at(world, 31)
    assert world.store.tripped == {}
    amended = [
        window for window, is_amended in world.store.windows.values() if is_amended and window.series.dimension == "verdict"
    ]
    assert {window.sums.n for window in amended} == {12}
    assert {window.rate for window in amended} == {4 / 12}


async def test_scores_under_a_contract_that_decides_nothing_move_no_gate() -> None:
    world = GateWorld(gates=[TONES])
    await world.step()
    await world.write(*some(4, 0, SHOP, 0))
    await at(world, 30)
    assert world.store.tripped == {}
    calibrated = [
        replace(
            one,
            runs=tuple(
                replace(run, results=tuple(replace(result, contract="good") for result in run.results)) for run in one.runs
            ),
        )
        for one in some(4, 10, SHOP, 30)
    ]
    await world.write(*calibrated)
    await at(world, 60)
    assert gates_moved(world) == {("tones", "production")}
    assert {trip.contract for trip in world.store.tripped.values()} == {"good"} != {IDLE}


async def test_replayed_history_moves_no_gate() -> None:
    world = GateWorld()
    await world.step()
    for number, cohort in enumerate((PAST, SHOP)):
        await world.write(*some(4, 10 * number, cohort, 0, passes=False, failing=["forbid"]))
        await at(world, 30)
        assert gates_moved(world) == ({("verdicts", "production"), ("no refunds", "production")} if number else set())
    assert {state.cohort for state in world.store.states.values()} == {SHOP}


async def test_a_gate_of_one_agent_sees_no_other() -> None:
    world = GateWorld(gates=[NAMED.model_copy(update={"agent": "shop"})])
    await world.step()
    await world.write(graded(0, DESK, 0, failing=["forbid"]), graded(1, SHOP, 0, failing=["forbid"]))
    await at(world, 1)
    assert [one[:3] for one in fired(world.store.tripped.values())] == [("no refunds", "shop", FIRED)]


async def test_a_hard_gate_acts_at_once_and_is_quiet_after_its_time() -> None:
    world = GateWorld(gates=[NAMED])
    await world.step()
    await world.write(graded(0, SHOP, 0, failing=["forbid"]))
    await at(world, 1)
    await world.write(graded(1, SHOP, 1, failing=["forbid"]))
    await at(world, 2)
    (first, second) = (f"{number:032x}" for number in range(2))
    runs = {run.run.trace_id: run.run.run_id for run in world.store.live_runs()}
    assert fired(world.store.tripped.values()) == [
        ("no refunds", "shop", FIRED, runs[first]),
        ("no refunds", "shop", RUN, runs[second]),
    ]
    assert len(world.pager.delivered) == 1, "a run that joins notifies nobody"
    await at(world, 61)
    assert len(world.store.tripped) == 2, "an hour after the second, not after the first"
    await at(world, 62)
    assert [trip.transition for trip in await world.store.trips()] == [FIRED, RUN, CLEARED]
    assert len(world.pager.keys) == 2


async def test_a_gate_without_named_checks_sees_those_that_gate_by_themselves() -> None:
    world = GateWorld(gates=[GATING])
    await world.step()
    await world.write(graded(0, DESK, 0, failing=["forbid", "answer"]), graded(1, SHOP, 0, failing=["gated"]))
    await at(world, 1)
    assert world.store.tripped == {}, "forbid does not gate by itself, and gated does so for the desk only"
    await world.write(graded(2, DESK, 0, failing=["gated"]))
    await at(world, 2)
    assert [one[:3] for one in fired(world.store.tripped.values())] == [("gating", "desk", FIRED)]


async def test_a_trip_is_marked_when_its_run_fails_no_longer_and_unmarked_when_it_does() -> None:
    world = GateWorld(gates=[NAMED])
    await world.step()

    def marks() -> list[bool]:
        return [trip.retracted for trip in world.store.tripped.values()]

    failing = graded(0, SHOP, 0, failing=["forbid"], tone=Outcome.PASS)
    for minute, (version, expected) in enumerate(
        [
            (failing, False),
            (graded(0, SHOP, 0, facts=2, tone=Outcome.PASS), True),
            (graded(0, SHOP, 0, facts=3, failing=["forbid"], tone=Outcome.PASS), False),
            (merged(failing, 4), True),
        ]
    ):
        await world.write(version)
        await at(world, minute + 1)
        assert marks() == [expected]
    assert len(world.pager.keys) == 1, "somebody was told of the incident once, and of no mark"


async def test_of_all_runs_that_ever_tripped_a_gate_those_in_touched_minutes_are_asked_about() -> None:
    world = GateWorld(gates=[NAMED])
    asked: list[int] = []
    still_failing = world.store.still_failing

    async def counted(project: str, run_ids: Sequence[str]) -> set[str]:
        asked.append(len(run_ids))
        return await still_failing(project, run_ids)

    world.store.still_failing = counted  # type: ignore[method-assign]
    await world.step()
    for minute in range(5):
        await world.write(*(graded(2 * minute + one, SHOP, minute, failing=["forbid"]) for one in range(2)))
        await at(world, minute + 1)
    assert len(world.store.tripped) == 10
    await world.write(graded(0, SHOP, 0, facts=2, tone=Outcome.PASS))
    await at(world, 6)
    assert asked[-1] == 2
    assert [trip.run_id for trip in world.store.tripped.values() if trip.retracted] == [graded(0, SHOP, 0).runs[0].run.run_id]


async def test_a_mark_is_set_also_when_the_owner_was_not_there() -> None:
    world = GateWorld(gates=[NAMED])
    await world.step()
    await world.write(failing := graded(0, SHOP, 0, failing=["forbid"]))
    await at(world, 1)
    world.owner = None
    await world.write(merged(failing, 2))
    await at(world, 2)
    assert [trip.retracted for trip in world.store.tripped.values()] == [True]


LAST = START + DAY


@pytest.mark.parametrize(
    ("derived", "since"),
    [({0: LAST}, LAST - 5 * MINUTE), ({1: LAST}, 0), ({0: LAST + HOUR}, 0)],
    ids=["known", "of others", "ahead"],
)
async def test_a_start_looks_at_what_was_stored_since_the_rows_were_derived_from_last(
    derived: dict[int, int], since: int
) -> None:
    world = GateWorld(gates=[NAMED])
    world.store.derived_ns = derived
    looked: list[int] = []
    stale_minutes = world.store.stale_minutes

    async def noted(since_ns: int) -> list[tuple[str, Place]]:
        looked.append(since_ns)
        return await stale_minutes(since_ns)

    world.store.stale_minutes = noted  # type: ignore[method-assign, assignment]
    world.now = LAST + MINUTE
    await world.step()
    world.now += MINUTE
    await world.step()
    assert looked == [since, LAST + MINUTE - 5 * MINUTE]
    assert world.store.derived_ns[0] >= LAST + 2 * MINUTE


async def test_a_gate_that_is_configured_no_longer_is_left_as_it_stood() -> None:
    world = GateWorld(gates=[NAMED])
    await world.step()
    await world.write(graded(0, SHOP, 0, failing=["forbid"]))
    await at(world, 1)
    world.owner, world._gates = None, [FLOOR]
    await at(world, 24 * 60)
    assert [trip.transition for trip in world.store.tripped.values()] == [FIRED]
    assert {state.gate: state.status for state in world.store.states.values()} == {"no refunds": GateStatus.FIRING}


async def test_a_gates_state_comes_back_after_a_start() -> None:
    world = GateWorld(gates=[NAMED, FLOOR])
    await world.step()
    await world.write(graded(0, SHOP, 0, failing=["forbid"]), *some(4, 10, SHOP, 0, passes=False))
    await at(world, 10)
    states = dict(world.store.states)
    assert {state.status for state in states.values()} == {GateStatus.FIRING}
    world.owner = None
    world.faults.calls.clear()
    await at(world, 11)
    assert world.store.states == states
    assert "write_gate_states" not in world.faults.calls, "nothing happened, so nothing is written"
    await at(world, 2 * HOUR // MINUTE)
    assert [trip.transition for trip in await world.store.trips() if trip.gate == NAMED.name] == [FIRED, CLEARED]


async def test_each_project_and_cohort_has_incidents_of_its_own() -> None:
    world = GateWorld(gates=[NAMED])
    await world.step()
    canary = Cohort("shop", "2", "production")
    await world.write(graded(0, SHOP, 0, failing=["forbid"]), graded(1, canary, 0, failing=["forbid"]))
    await at(world, 1)
    trips = list(world.store.tripped.values())
    assert [trip.transition for trip in trips] == [FIRED, FIRED]
    assert len({trip.trip_id for trip in trips}) == 2


async def test_a_stop_leaves_nothing_stale_and_sends_nothing() -> None:
    world = GateWorld(gates=GATES)
    await world.step()
    await world.write(graded(0, SHOP, 0, failing=["forbid"]))
    world.tells = False
    await world.write(graded(1, DESK, 0))
    assert world.owner is not None
    await world.owner.finish(world.now)
    assert await world.store.stale_minutes() == []
    assert [one[:3] for one in fired(world.store.tripped.values())] == [("no refunds", "shop", FIRED)]
    assert world.pager.delivered == []
    world.owner = None
    await at(world, 1)
    assert len(world.pager.keys) == 1


async def test_what_is_long_over_is_not_announced_after_a_start() -> None:
    world = GateWorld(gates=[NAMED])
    await world.step()
    await world.write(graded(0, SHOP, 0, failing=["forbid"]))
    await at(world, 1)
    world.store.told.clear()
    world.pager.delivered.clear()
    world.owner, world.now = None, world.now + 6 * DAY
    await world.step()
    assert [one.transition for one in world.store.told.values()] == [FIRED, CLEARED]
    world.store.told.clear()
    world.owner, world.now = None, world.now + 8 * DAY
    await world.step()
    assert world.store.told == {}


async def test_a_run_that_moves_trips_no_gate_twice_and_whatever_gate_it_did_not_trip_before() -> None:
    world = GateWorld(gates=[NAMED, GATING])
    before = graded(0, HELP, 0, failing=["forbid"])
    await world.step()
    await world.write(before)
    await at(world, 1)
    world.owner = None  # whoever has the agents now has not seen it
    await world.step()
    await world.write(moved(before, graded(0, DESK, 0, failing=["forbid", "gated"], facts=2)))
    await at(world, 2)
    run = before.runs[0].run.run_id
    assert fired(world.store.tripped.values()) == [
        ("gating", "desk", Transition.FIRED, run),
        ("no refunds", "help", Transition.FIRED, run),
    ]


async def test_the_store_is_asked_once_a_step_for_runs_that_are_about_to_trip_and_not_at_all_without_any() -> None:
    world = GateWorld()

    async def asked(*failing: str, passes: bool = True, number: int = 0) -> int:
        before = len(world.faults.calls)
        await world.write(
            graded(number, DESK, 0, failing=failing, passes=passes), graded(number + 1, SHOP, 0, failing=failing, passes=passes)
        )
        await at(world, 1)
        return world.faults.calls[before:].count("tripped_runs")

    await world.step()
    assert await asked() == 0
    assert await asked("answer", passes=False) == 0, "no gate watches that"
    assert await asked("forbid", "gated", number=2) == 1
    assert await asked("forbid", "gated", number=2) == 0, "they are known"
