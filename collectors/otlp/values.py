"""Values: attributes, events, links and what is within them, counted while a request is read and before anything is made of them.

Each is a few bytes on the wire and an object for us: 64 MiB can hold thirty million (reliability R19, S11).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Final

from collectors.otlp.body import TooLargeError

ATTRIBUTE: Final = 3
"""Values that an attribute counts as: what takes three times as long as a number in a list."""
EVENT: Final = 5
"""Values that an event or a link counts as."""
BYTES: Final = 24
"""Bytes of an attribute of bytes that count as a value: they become text."""
MENDED: Final = 16
"""Bytes that have to be mended that count as a value, beside the fields that are walked for it."""
IN_SNAKE_CASE: Final = 4
"""Bytes of JSON with keys in snake case that count as a value."""


class _Room:
    """How many a request may still hold."""

    __slots__ = ("left", "most")

    def __init__(self, most: float) -> None:
        self.left = self.most = most


_room: Final[ContextVar[_Room]] = ContextVar("values", default=_Room(inf))  # noqa: B039 - nothing is taken from what has no end


@contextmanager
def at_most(most: int) -> Iterator[None]:
    """Read one request within, which may hold so many values."""
    token = _room.set(_Room(most))
    try:
        yield
    finally:
        _room.reset(token)


def count(more: int) -> None:
    """Take note of values that are about to be read.

    Raises:
        TooLargeError: the request holds too many.
    """
    room = _room.get()
    room.left -= more
    if room.left < 0:
        raise TooLargeError(
            f"the request holds more than {room.most} values (an attribute counts as {ATTRIBUTE}), or too much that has to be mended;"
            " send smaller batches, or raise receiver.max_values"
        )
