"""In flight: the bytes of all requests that are being read or stored, and how many there may be. Over gRPC also the requests themselves.

A sender that finds no room is told at once to come back, instead of waiting here with its body in memory (O9).
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Self

from pipeline.errors import TemporaryError

_RETRY_AFTER_S: Final = 1.0


class Hold:
    """What one request holds, in bytes (or 1, where requests are counted). It begins with nothing, and ends with it as a context."""

    __slots__ = ("_bytes", "_in_flight", "_project")

    def __init__(self, in_flight: "InFlight", project: str) -> None:
        self._in_flight = in_flight
        self._project = project
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def grow(self, size: int) -> None:
        """Hold ``size`` bytes in all; less than are held changes nothing.

        Raises:
            TemporaryError: there is no room for them now.
        """
        if size > self._bytes:
            self._in_flight.add(self._project, size - self._bytes, self._bytes)
            self._bytes = size

    def release(self) -> None:
        """Hold nothing any more."""
        self._in_flight.remove(self._project, self._bytes)
        self._bytes = 0


class InFlight:
    """The room that all requests share. One request alone always fits, and one project never takes what others need."""

    def __init__(self, limit: int, *, shared: bool) -> None:
        """Take how much there is in all; where several projects share them, one of them has at most half of it."""
        self._limit: Final = limit
        self._most: Final = limit // 2 if shared else limit
        self._bytes = 0
        self._of: defaultdict[str, int] = defaultdict(int)

    @property
    def bytes(self) -> int:
        """How many are held now."""
        return self._bytes

    def hold(self, project: str) -> Hold:
        """Return a hold for a request of the project; release it when the request is answered."""
        return Hold(self, project)

    def add(self, project: str, more: int, own: int) -> None:
        """Take room for a request that holds ``own`` bytes already.

        Raises:
            TemporaryError: there is none.
        """
        of_project = self._of[project]
        full = self._bytes + more > self._limit and self._bytes > own
        if full or (of_project + more > self._most and of_project > own):
            raise TemporaryError("more requests are being stored than there is room for; send this one again", _RETRY_AFTER_S)
        self._bytes += more
        self._of[project] = of_project + more

    def remove(self, project: str, size: int) -> None:
        """Give room back."""
        self._bytes -= size
        self._of[project] -= size


class Turns:
    """How many requests may do something at the same time; the others wait, with nothing in memory yet."""

    def __init__(self, most: int, *, shared: bool) -> None:
        """Where several projects send, one of them has at most half of the turns."""
        self._all: Final = asyncio.Semaphore(most)
        self._of: Final = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(max(1, most // 2) if shared else most))

    @asynccontextmanager
    async def of(self, project: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it until the context ends."""
        async with self._of[project], self._all:
            yield
