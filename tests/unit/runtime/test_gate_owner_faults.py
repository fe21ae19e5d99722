"""Killed or in trouble at any call whatever, the owner of gates loses nothing and doubles nothing that a reader can see (promise 3)."""

import asyncio
from collections import Counter
from functools import cache

import pytest
from gate_worlds import DESK, FAULTS, GATING, HELP, SHOP, START, Fault, GateWorld, Killed, Seen, fired, seen, some, story, tell

from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.ids import run_id
from pipeline.model.time import MINUTE
from pipeline.model.window import GateStatus, Transition
from pipeline.runtime.gate_owner import GateOwner


@cache
def straight(*, tells: bool = True) -> tuple[Seen, tuple[str, ...]]:
    """What is seen when all goes well, and the calls that it takes."""
    world = asyncio.run(tell(GateWorld(tells=tells), story()))
    return seen(world), tuple(world.faults.calls)


def test_the_story_has_every_kind_of_trip() -> None:
    told, calls = straight()
    # In the order of their traces. A run that turns out to be of another agent tripped where it seemed to be, and nowhere else.
    bad, worse, left, came = (run_id("default", f"{number:032x}", "00000000000000a1") for number in (50, 51, 55, 57))
    assert fired(told.trips) == sorted(
        [
            ("verdicts", "shop", Transition.FIRED, ""),
            ("verdicts", "shop", Transition.CLEARED, ""),
            ("no refunds", "desk", Transition.FIRED, bad),
            *(("no refunds", "desk", Transition.RUN, run) for run in (left, worse)),
            ("no refunds", "desk", Transition.CLEARED, ""),
            ("no refunds", "help", Transition.FIRED, came),
            ("no refunds", "help", Transition.CLEARED, ""),
            ("gating", "desk", Transition.FIRED, worse),
            ("gating", "desk", Transition.CLEARED, ""),
        ]
    )
    assert [trip.run_id for trip in told.trips if trip.retracted] == [bad], "a run that was merged into another keeps its trip"
    status = {(state.gate, state.cohort): state.status for state in told.states}
    assert set(status.values()) == {GateStatus.OK}
    assert {cohort for _, cohort in status} == {SHOP, DESK, HELP}, "nobody watches replayed history"
    assert sorted((case.state, case.runs, case.input, case.agent) for case in told.cases.values()) == [
        ("candidate", 1, "question 1", "help"),
        ("candidate", 2, "question 1", "desk"),
        ("candidate", 4, "question 0", "shop"),
        ("candidate", 4, "question 1", "shop"),
        ("withdrawn", 0, "question 0", "desk"),
    ]
    # Every transition but the runs that joined notifies the pager, two of them the chat as well.
    assert (len(told.pager), len(told.chat)) == (8, 2)
    assert told.confirmed == told.pager | told.chat
    assert told.unconfirmed == []
    assert {"trips", "gate_states", "write_windows", "write_minutes", "send", "still_failing", "write_cases"} <= set(calls)


@pytest.mark.parametrize(
    ("fault", "tells"),
    [*((fault, True) for fault in FAULTS), *((fault, False) for fault in FAULTS if fault.error is Killed)],
    ids=lambda one: f"{one.error.__name__}, {'done' if one.done else 'not done'}" if isinstance(one, Fault) else f"told {one}",
)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.real, id="each call"), pytest.param(3, id="each third call")])
def test_whichever_call_fails_all_is_there_in_the_end(fault: Fault, tells: bool, step: int) -> None:
    expected, _ = straight()
    _, calls = straight(tells=tells)
    assert len(calls) > 100
    # Each kind of fault at other calls, so that together they leave none out.
    for number, name in list(enumerate(calls, start=1))[FAULTS.index(fault) % step :: step]:
        world = asyncio.run(tell(GateWorld({number: fault}, tells=tells), story()))
        assert seen(world) == expected, f"call {number}, {name}"
        assert world.deaths == (fault.error is Killed)


@pytest.mark.parametrize("away", [[0], [1], [2], [0, 1, 2], [3, 4], [5], [6]], ids=str)
def test_what_happened_while_nobody_was_there_is_made_up_for(away: list[int]) -> None:
    assert seen(asyncio.run(tell(GateWorld(), story(), away))) == straight()[0]


def test_a_trip_that_was_stored_before_the_owner_died_is_told_by_the_next() -> None:
    _, calls = straight()
    for number in (index for index, name in enumerate(calls, start=1) if name == "write_notifications"):
        world = asyncio.run(tell(GateWorld({number: Fault(Killed, done=False)}), story()))
        assert world.pager.keys | world.chat.keys == straight()[0].confirmed


async def test_a_destination_that_is_out_of_order_is_told_when_it_is_back() -> None:
    world = GateWorld()
    world.pager.broken.extend([TemporaryError("503")] * 3)
    await tell(world, story())
    assert seen(world) == straight()[0]
    assert set(Counter(one.idempotency_key for one in world.pager.delivered).values()) == {1}
    assert max(one.attempts for one in world.store.told.values()) > 1


async def test_a_destination_that_refuses_is_not_asked_again_and_nobody_else_suffers() -> None:
    world = GateWorld()
    world.pager.broken.append(PermanentError("404"))
    await tell(world, story())
    told, expected = seen(world), straight()[0]
    assert told.unconfirmed == ["404"]
    assert len(told.pager) == len(expected.pager) - 1
    assert told.chat == expected.chat
    assert world.faults.calls.count("send") == len(expected.pager) + len(expected.chat)


async def test_what_was_delivered_is_not_sent_again_while_the_store_cannot_confirm_it() -> None:
    _, calls = straight()
    first = calls.index("send") + 2  # the call that stores that it was taken
    world = GateWorld({first + repeat: Fault(TemporaryError, done=False) for repeat in range(0, 30, 2)})
    await tell(world, story())
    assert Counter(one.idempotency_key for one in world.pager.delivered).most_common(1)[0][1] == 1


async def test_what_nobody_told_is_derived_within_half_a_minute() -> None:
    world = GateWorld(tells=False, gates=[GATING])
    await world.step()
    await world.write(*story()[1][1])
    world.now = START + MINUTE // 2 - 1
    await world.step()
    assert world.store.minutes == {}
    assert world.store.tripped == {}
    world.now += 1
    await world.step()
    assert world.store.minutes
    assert fired(world.store.tripped.values())[0][:3] == ("gating", "desk", Transition.FIRED)


async def test_trouble_is_no_derivation() -> None:
    world = GateWorld(tells=False)
    owner = world.new_owner()
    await owner.recover(world.now)
    await world.write(*story()[0][1])
    for calls in (1, 2, 3):  # a look at the rows fails, at other rows, and what follows from them
        world.faults.planned = {len(world.faults.calls) + calls: Fault(TemporaryError, done=False)}
        assert not owner.is_idle(world.now, world.now)
        await owner.step(world.now, world.now)
        assert world.store.minutes == {}
    await owner.step(world.now, world.now)
    assert world.store.minutes, "though no half minute has passed"


async def test_trouble_makes_nobody_forget_what_was_told() -> None:
    world = GateWorld()
    await world.step()
    await world.write(*story()[0][1])
    owner: GateOwner = world.owner  # type: ignore[assignment]
    for calls in (1, 3, 5, 20):
        world.faults.planned = {len(world.faults.calls) + calls: Fault(TemporaryError, done=False)}
        await owner.step(world.now, world.now)
        assert not owner.is_idle(world.now, world.now)
    await owner.step(world.now, world.now)
    assert await world.store.stale_minutes() == []


async def test_the_owner_is_idle_when_nothing_is_to_be_done_and_not_before() -> None:
    world = GateWorld()
    await world.step()
    owner: GateOwner = world.owner  # type: ignore[assignment]
    assert owner.is_idle(world.now, world.now)
    assert not owner.is_idle(world.now, world.now + MINUTE // 2), "the rows are to be looked at"
    await world.write(*some(4, 0, SHOP, 0))
    assert not owner.is_idle(world.now, world.now)
    steps: list[bool] = []
    write = world.store.write_minutes

    async def looking(minutes: object) -> None:
        steps.append(owner.is_idle(world.now, world.now))
        await write(minutes)  # type: ignore[arg-type]

    world.store.write_minutes = looking  # type: ignore[method-assign]
    await world.step()
    assert steps == [False]
    assert owner.is_idle(world.now, world.now)
    assert not owner.is_idle(START + 10 * MINUTE, world.now), "windows are final then"
