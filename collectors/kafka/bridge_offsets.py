"""Offsets of a bridge: what of each partition may be committed, while records are under way side by side.

An offset is committed when its record and all before it are done, and never otherwise (reliability I8, R62): a gap is what a record
under way looks like from the brokers.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


class Committable(NamedTuple):
    """The offset to read next, and what is remembered beside it."""

    offset: int
    mark: str


class Taken:
    """A record that was read, until whoever carries it has finished."""

    __slots__ = ("done", "mark", "offset", "timestamp_ns")

    def __init__(self, offset: int, timestamp_ns: int) -> None:
        self.offset: Final = offset
        self.timestamp_ns: Final = timestamp_ns
        self.mark = ""
        self.done = False

    def finish(self, mark: str = "") -> None:
        """Say that everything of the record is acknowledged. ``mark`` is remembered where its offset is committed."""
        self.mark = mark
        self.done = True  # last: the thread that commits looks at this


class Offsets:
    """The records under way of the partitions that are assigned, in the order of their offsets.

    Used by the thread that polls. Records are finished elsewhere, each once; one of a partition that was taken away may be finished too,
    and nobody looks.
    """

    def __init__(self) -> None:
        self._taken: dict[Place, deque[Taken]] = {}

    def took(self, place: Place, record: Taken) -> None:
        """Take note of the next record of a partition."""
        self._taken.setdefault(place, deque()).append(record)

    def committable(self) -> dict[Place, Committable]:
        """Return, for the partitions where that is more than the last time, up to where everything is done; it is told once."""
        found: dict[Place, Committable] = {}
        for place, taken in self._taken.items():
            while taken and taken[0].done:
                first = taken.popleft()
                found[place] = Committable(first.offset + 1, first.mark)
        return found

    def forget(self, places: Iterable[Place]) -> None:
        """Let go of partitions that others read from now on: what is under way of them is theirs to repeat."""
        for place in places:
            self._taken.pop(place, None)

    def under_way(self, place: Place) -> int:
        """Return how many records of a partition are not done, or wait for one before them."""
        return len(self._taken.get(place, ()))

    def oldest(self) -> dict[Place, int]:
        """Return when the first record that is not done was written, in ns, by partition that has one."""
        waiting = {place: next((one for one in taken if not one.done), None) for place, taken in self._taken.items()}
        return {place: one.timestamp_ns for place, one in waiting.items() if one is not None}
