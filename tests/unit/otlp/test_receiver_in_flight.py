"""The bytes of all requests together are bounded, and nobody is shut out by that for good."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.otlp.in_flight import Hold, InFlight
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
