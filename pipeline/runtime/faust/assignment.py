"""Assignment: which records of a stream are this assignment's next ones (docs/adr/0005).

Faust may hand over records of an assignment that is gone, skip some after a rebalance, or bring some again. What decides is the offset
that is expected next; nothing is ever acknowledged past a gap.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from pipeline.runtime.fence import Fence
from pipeline.runtime.holding import Holding

Partition: TypeAlias = int


class Position(msgspec.Struct):
    """Where a partition is read: the next offset to take, and the next one to be done with."""

    next_offset: int
    done_offset: int
    time_ns: int = 0
    """Of the last record that was done with; 0 where none was."""
    taken_ns: int = 0
    """Of the last record that was taken since the partition was last caught up; 0 where none was."""


class Assignment(msgspec.Struct):
    """The partitions that one generation of the group gave to this process, and what it does with them."""

    generation: int
    fence: Fence
    holding: Holding
    positions: dict[Partition, Position]

    def expects(self, partition: Partition, offset: int, generation: int | None) -> bool | None:
        """Whether this record is the next one: True; False for one to drop; None where records between are missing."""
        position = self.positions.get(partition)
        if position is None or generation != self.generation or offset < position.next_offset:
            return False
        return True if offset == position.next_offset else None

    def took(self, partition: Partition, offset: int, time_ns: int = 0) -> None:
        """Take note that the next record, of this time, was taken."""
        position = self.positions[partition]
        position.next_offset, position.taken_ns = offset + 1, time_ns

    def done(self, partition: Partition, offset: int, time_ns: int) -> None:
        """Take note that all that is to be done with a record, and with those before it, is done."""
        position = self.positions[partition]
        position.done_offset, position.time_ns = offset + 1, time_ns

    def pass_over(self, partition: Partition, offset: int) -> None:
        """Go on at an offset: the broker has nothing before it any more."""
        position = self.positions[partition]
        position.next_offset = position.done_offset = offset

    def behind(self, ends: Mapping[Partition, int]) -> int:
        """Return how many records are there and not done with."""
        return sum(max(0, ends[partition] - position.done_offset) for partition, position in self.positions.items())

    def oldest_unread(self, ends: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the time of the oldest record that waits, by partition that is not caught up, as far as it is known.

        It is that of the record which is in work or was last, and never that of one before a silence: nothing waited then.
        """
        for partition, position in self.positions.items():
            if position.done_offset >= ends[partition]:
                position.taken_ns = 0
        return {partition: position.taken_ns for partition, position in self.positions.items() if position.taken_ns}

    def partition_times(self, wall: int, ends: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return what time it is in each partition: ``wall``, read before ``ends``, where all is done; else its last record's.

        A partition of which nothing was done and something waits has no time yet.
        """
        times: dict[Partition, int] = {}
        for partition, position in self.positions.items():
            if position.done_offset >= ends[partition]:
                times[partition] = wall
            elif position.time_ns:
                times[partition] = min(position.time_ns, wall)
        return times


def first_positions(committed: Mapping[Partition, int | None], earliest: Mapping[Partition, int]) -> dict[Partition, Position]:
    """Return where to begin: at what is committed, else at the beginning. A broker says None or -1 where nothing is committed."""
    return {partition: _at(_first(offset, earliest[partition])) for partition, offset in committed.items()}


def _at(offset: int) -> Position:
    return Position(next_offset=offset, done_offset=offset)


def _first(committed: int | None, earliest: int) -> int:
    return earliest if committed is None or committed < 0 else max(committed, earliest)
