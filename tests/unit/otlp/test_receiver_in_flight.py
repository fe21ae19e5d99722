"""The bytes of all requests together are bounded, and nobody is shut out by that for good."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.otlp.grpc import _message
from collectors.otlp.in_flight import Hold, InFlight, Turns
from collectors.otlp.keys import Keys
from collectors.otlp.receiver import Receiver
from pipeline.errors import TemporaryError


def test_what_does_not_fit_is_told_to_come_back() -> None:
    room = InFlight(100, shared=False)
    first, second = room.hold("a"), room.hold("a")
    first.grow(60)
    second.grow(40)
    with pytest.raises(TemporaryError, match="send this one again"):
        second.grow(41)
    assert room.bytes == 100
    first.release()
    second.grow(100)
    second.release()
    assert room.bytes == 0


def test_one_request_alone_always_fits_and_may_go_on_growing() -> None:
    room = InFlight(100, shared=False)
    alone = room.hold("a")
    alone.grow(90)
    alone.grow(5000)
    with pytest.raises(TemporaryError):
        room.hold("a").grow(1)
    alone.release()
    room.hold("a").grow(1)


def test_a_project_has_at_most_half_where_several_share_the_room() -> None:
    room = InFlight(100, shared=True)
    room.hold("a").grow(30)
    with pytest.raises(TemporaryError):
        room.hold("a").grow(21)
    room.hold("b").grow(50)
    room.hold("a").grow(20)
    with pytest.raises(TemporaryError):
        room.hold("c").grow(1)


def test_releasing_twice_gives_back_once() -> None:
    room = InFlight(100, shared=False)
    kept, ended = room.hold("a"), room.hold("a")
    kept.grow(10)
    ended.grow(20)
    ended.release()
    ended.release()
    assert room.bytes == 10


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 80)), max_size=50), st.booleans())
def test_no_order_of_growing_and_ending_loses_or_invents_room(steps: list[tuple[int, int]], shared: bool) -> None:
    room = InFlight(100, shared=shared)
    holds: dict[int, Hold] = {}
    held: dict[int, int] = {}
    for number, size in steps:
        if number in holds and size == 0:
            holds.pop(number).release()
            held.pop(number)
            continue
        hold = holds.setdefault(number, room.hold("ab"[number % 2]))
        try:
            hold.grow(size)
        except TemporaryError:
            continue
        finally:
            held.setdefault(number, 0)
        held[number] = max(held[number], size)
    assert room.bytes == sum(held.values())
    assert room.bytes <= 100
    for hold in holds.values():
        hold.release()
    assert room.bytes == 0


async def _let_others_work() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Arriving:
    """A call over gRPC whose message arrives when it is told to."""

    def __init__(self, begun: list[str], name: str) -> None:
        self._begun = begun
        self._name = name
        self.arrived = asyncio.Event()

    async def read(self) -> bytes:
        self._begun.append(self._name)
        await self.arrived.wait()
        return self._name.encode()


async def test_of_messages_whose_size_nobody_knows_yet_only_some_arrive_at_the_same_time() -> None:
    receiver, turns, begun = Receiver({}, lambda: 1, Keys({}, "open")), Turns(2, shared=False), list[str]()
    calls = [Arriving(begun, name) for name in "abc"]
    reading = [asyncio.ensure_future(_message(receiver, call, turns.of("open"))) for call in calls]  # type: ignore[arg-type]
    await _let_others_work()
    assert begun == ["a", "b"], "of the third nothing is in memory"
    for call in calls:
        call.arrived.set()
    assert await asyncio.gather(*reading) == [b"a", b"b", b"c"]


async def test_a_project_whose_messages_arrive_slowly_leaves_half_of_the_turns_to_others() -> None:
    receiver, turns, begun = Receiver({}, lambda: 1, Keys({}, "open")), Turns(2, shared=True), list[str]()
    calls = {name: Arriving(begun, name) for name in ("slow 1", "slow 2", "other")}
    reading = [asyncio.ensure_future(_message(receiver, call, turns.of(name[:4]))) for name, call in calls.items()]  # type: ignore[arg-type]
    await _let_others_work()
    assert begun == ["slow 1", "other"]
    for call in calls.values():
        call.arrived.set()
    await asyncio.gather(*reading)
