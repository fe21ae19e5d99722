"""Every notification that is due is stored before it is sent and confirmed after, and sent until somebody takes it (promise 3)."""

from collections.abc import Sequence

import pytest
from gate_worlds import SHOP, START, Destination, Faults
from msgspec.structs import replace
from opentelemetry.metrics import NoOpMeter

from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.time import DAY, HOUR, MINUTE, SECOND
from pipeline.model.window import Notification, Transition, Trip
from pipeline.runtime.messenger import FORGOTTEN, Messenger
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.alert import NEVER
from sinks.memory_gates import MemoryGateStore

TRIP = Trip("default", "no refunds", "hard", SHOP, "trip-1", Transition.FIRED, START, run_id="r1", why="forbid: seen")


class World:
    """A messenger with a pager and a chat."""

    def __init__(self, routes: Sequence[str] = ("pager", "chat")) -> None:
        self.store = MemoryGateStore()
        self.pager, self.chat = Destination(Faults()), Destination(Faults())
        self.telemetry = Telemetry(NoOpMeter("test"))
        self.destinations = {"pager": self.pager, "chat": self.chat}
        self.routes = routes
        self.messenger = self.new()

    def new(self) -> Messenger:
        return Messenger(self.store, self.destinations, {"no refunds": self.routes}, self.telemetry)

    def counted(self) -> dict[str, float]:
        return {name.removeprefix("tracegrade.notifications "): count for name, count in self.telemetry.snapshot().items()}

    def stored(self) -> list[Notification]:
        return sorted(self.store.told.values(), key=lambda one: one.destination)


async def test_what_is_due_is_stored_before_it_is_sent_and_confirmed_after() -> None:
    world = World()
    await world.messenger.announce([TRIP])
    assert [(one.destination, one.confirmed_ns, one.attempts) for one in world.stored()] == [("chat", 0, 0), ("pager", 0, 0)]
    assert world.pager.delivered == []
    assert world.messenger.next_wake == 0, "at once"
    assert await world.messenger.send_due(START + SECOND) == 2
    assert [(one.destination, one.confirmed_ns, one.attempts) for one in world.stored()] == [
        ("chat", START + SECOND, 1),
        ("pager", START + SECOND, 1),
    ]
    assert [one.destination for one in (*world.pager.delivered, *world.chat.delivered)] == ["pager", "chat"]
    assert world.messenger.next_wake is None
    assert world.counted() == {"confirmed": 2}


async def test_nothing_is_sent_that_could_not_be_stored_as_due() -> None:
    world = World()

    async def broken(notifications: Sequence[Notification]) -> None:  # noqa: ARG001 - named as the protocol names it
        raise TemporaryError("busy")

    world.store.write_notifications = broken  # type: ignore[method-assign]
    with pytest.raises(TemporaryError):
        await world.messenger.announce([TRIP])
    assert await world.messenger.send_due(START) == 0
    assert world.pager.delivered == []


async def test_a_trip_that_is_announced_twice_is_told_once() -> None:
    world = World(routes=["pager"])
    world.pager.broken.append(TemporaryError("503", retry_after=60.0))
    await world.messenger.announce([TRIP, TRIP])
    assert await world.messenger.send_due(START) == 0
    await world.messenger.announce([TRIP])
    assert world.messenger.next_wake == START + MINUTE, "what was postponed stays postponed"
    assert await world.messenger.send_due(START + MINUTE) == 1
    assert len(world.pager.delivered) == 1


async def test_only_the_destinations_of_its_gate_hear_of_a_trip_and_nobody_of_runs_that_join() -> None:
    world = World(routes=["chat"])
    await world.messenger.announce([TRIP, replace(TRIP, transition=Transition.RUN, run_id="r2"), replace(TRIP, gate="another")])
    assert await world.messenger.send_due(START) == 1
    assert (len(world.pager.delivered), len(world.chat.delivered)) == (0, 1)


async def test_a_trip_that_is_dated_by_a_clock_ahead_of_ours_is_told_of_now() -> None:
    world = World(routes=["pager"])
    await world.messenger.announce([TRIP])
    assert await world.messenger.send_due(START - HOUR) == 1


async def test_a_destination_is_tried_again_when_it_asked_to_be_or_ever_later() -> None:
    world = World(routes=["pager"])
    world.pager.broken.extend([TemporaryError("429", retry_after=90.0), TemporaryError("503"), TemporaryError("503")])
    await world.messenger.announce([TRIP])
    now, wakes = START, []
    while (wake := world.messenger.next_wake) is not None:
        assert await world.messenger.send_due(wake - 1) == 0
        now, before = max(wake, now), now
        wakes.append((now - before) // SECOND)
        await world.messenger.send_due(now)
    assert wakes == [0, 90, 2, 4]
    assert [one.attempts for one in world.stored()] == [4]
    assert len(world.pager.delivered) == 1
    assert world.counted() == {"postponed": 3, "confirmed": 1}


async def test_what_was_due_when_the_messenger_stopped_is_due_after_the_start() -> None:
    world = World(routes=["pager"])
    world.pager.broken.append(TemporaryError("503", retry_after=60.0))
    await world.messenger.announce([TRIP])
    await world.messenger.send_due(START)
    later = world.new()
    await later.recover(START)
    assert later.next_wake == START + MINUTE, "also when it is tried next is kept"
    assert await later.send_due(START + MINUTE) == 1
    again = world.new()
    await again.recover(START + MINUTE)
    assert again.next_wake is None


async def test_a_trip_of_which_nobody_was_to_hear_yet_is_announced_at_the_start_unless_it_is_old() -> None:
    world = World(routes=["pager"])
    await world.store.write_trips([TRIP, replace(TRIP, trip_id="old", at_ns=START - FORGOTTEN)])
    await world.messenger.recover(START + SECOND)
    assert [one.trip_id for one in world.stored()] == ["trip-1"]
    assert await world.messenger.send_due(START + SECOND) == 1


async def test_a_destination_that_is_configured_no_longer_is_refused_and_not_tried_for_ever() -> None:
    world = World()
    await world.messenger.announce([TRIP])
    del world.destinations["pager"]
    later = world.new()
    await later.recover(START)
    assert await later.send_due(START) == 1
    assert len(world.chat.delivered) == 1
    assert later.next_wake == NEVER
    assert await later.send_due(START + 300 * DAY) == 0
    assert [(one.attempts, one.last_error) for one in world.stored() if one.destination == "pager"] == [
        (1, "no alert is called pager any more")
    ]


async def test_what_a_destination_refuses_is_kept_with_the_reason() -> None:
    world = World(routes=["pager"])
    world.pager.broken.append(PermanentError("404: no such hook"))
    await world.messenger.announce([TRIP])
    assert await world.messenger.send_due(START) == 0
    assert [(one.confirmed_ns, one.last_error, one.due_ns) for one in world.stored()] == [(0, "404: no such hook", NEVER)]
    assert world.counted() == {"refused": 1}


async def test_one_destination_that_is_out_of_order_keeps_nothing_from_another() -> None:
    world = World()
    world.pager.broken.extend([TemporaryError("503")] * 5)
    await world.messenger.announce([TRIP])
    assert await world.messenger.send_due(START) == 1
    assert len(world.chat.delivered) == 1


async def test_what_was_taken_is_confirmed_when_the_store_can_again_and_not_sent_a_second_time() -> None:
    world = World(routes=["pager"])
    await world.messenger.announce([TRIP])
    write, trouble = world.store.write_notifications, [TemporaryError("busy")] * 3

    async def sometimes(notifications: Sequence[Notification]) -> None:
        if trouble:
            raise trouble.pop()
        await write(notifications)

    world.store.write_notifications = sometimes  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(TemporaryError):
            await world.messenger.send_due(START)
    assert await world.messenger.send_due(START) == 1
    assert len(world.pager.delivered) == 1
    assert [one.confirmed_ns for one in world.stored()] == [START]
