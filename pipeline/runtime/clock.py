"""Clocks. Stages are given ``now``; only here does it come from somewhere."""

import time
from typing import Protocol


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
