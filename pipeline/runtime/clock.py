"""Clocks. Stages are given ``now``; only here does it come from somewhere."""

import time
from collections.abc import Mapping
from typing import Protocol

import msgspec


class Clock(Protocol):
    """Says what time it is, in nanoseconds since the epoch."""

    def now(self) -> int:
        """Return the time."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> int:
        """Return the wall-clock time."""
        return time.time_ns()


class ManualClock:
    """A clock that is moved by hand: demos and scenarios let it follow event time. It never goes back."""

    def __init__(self, now_ns: int) -> None:
        self._now = now_ns

    def now(self) -> int:
        """Return the time it was last set to."""
        return self._now

    def advance_to(self, now_ns: int) -> None:
        """Move the clock forward; a time in the past changes nothing."""
        self._now = max(self._now, now_ns)


class Times(msgspec.Struct, frozen=True):
    """What time it is, in ns: on the wall, and in each partition whose time is known.

    A partition that lags is at the time of its last record, so that a backlog is not closed half-read (design section 4).
    """

    partitions: Mapping[int, int]
    wall: int

    @classmethod
    def single(cls, now: int, wall: int | None = None) -> "Times":
        """Return the times where there is one partition."""
        return cls({0: now}, now if wall is None else wall)
