"""Agenda: which traces of one partition are to be looked at, and when."""

import heapq
from collections.abc import Iterator

from pipeline.model.version import TraceKey


class Agenda:
    """Wake-up times by trace, in the partition's own time."""

    def __init__(self) -> None:
        self._wakes: dict[TraceKey, int] = {}
        self._queue: list[tuple[int, TraceKey]] = []
        self._rest = 0
        self._not_before = 0
        self._in_hand: int | None = None

    def __contains__(self, key: TraceKey) -> bool:
        return key in self._wakes

    def __len__(self) -> int:
        return len(self._wakes)

    def rest(self, period: int) -> None:
        """Wake nothing before so much time has passed from the next look at the clock."""
        self._rest = period

    def wake(self, key: TraceKey, at: int, *, sooner_only: bool = False) -> None:
        """Look at a trace at a time, instead of any other time; with ``sooner_only`` only where that one is later."""
        if sooner_only and self._wakes.get(key, at + 1) <= at:
            return
        self._wakes[key] = at
        heapq.heappush(self._queue, (at, key))

    def forget(self, key: TraceKey) -> None:
        """Do not look at a trace."""
        self._wakes.pop(key, None)

    @property
    def next_wake(self) -> int | None:
        """When there is something to do even if nothing comes; None if nothing is awaited."""
        first = self._first()
        return None if first is None else max(first, self._not_before)

    def due(self, now: int) -> Iterator[TraceKey]:
        """Take out what is due, the longest due first. It stays in hand until :meth:`done`."""
        if self._rest:
            self._not_before, self._rest = now + self._rest, 0
        while now >= self._not_before and (first := self._first()) is not None and first <= now:
            at, key = heapq.heappop(self._queue)
            del self._wakes[key]
            self._in_hand = at if self._in_hand is None else min(at, self._in_hand)
            yield key

    def done(self) -> None:
        """Take note that all that follows from what was taken out is written."""
        self._in_hand = None

    def done_until(self, now: int) -> int:
        """Return up to when everything that was due is written: the clock that gates may believe (design section 5)."""
        return min(at for at in (now, self._in_hand, self._first()) if at is not None)

    def _first(self) -> int | None:
        while self._queue and self._wakes.get(self._queue[0][1]) != self._queue[0][0]:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None
