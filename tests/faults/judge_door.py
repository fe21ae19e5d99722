"""A judge with faults: the scripted judge behind a door that can be shut, hold its breath, babble or drip; all over real HTTP."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Self

import msgspec

from pipeline.judges.scripted import Asked, Canned, ScriptedJudge
from pipeline.judges.scripted_rules import verdict


class Door(StrEnum):
    """What happens to connections."""

    OPEN = "open"
    REFUSES = "refuses"
    """Nobody listens."""
    BREAKS = "breaks"
    """Accepted and reset."""
    BABBLES = "babbles"
    """What comes back is no HTTP, as from a server that speaks TLS."""
    DRIPS = "drips"
    """A byte of the answer at a time, for ever."""


class Told(msgspec.Struct, frozen=True):
    """A question: of which order a run is, on which dimension, with which seed. The transcript of an order never changes here."""

    order: str
    dimension: str
    seed: int | None


class FaultyJudge:
    """Serves while its context lasts; ``fault`` and ``door`` may be changed at any time."""

    def __init__(self) -> None:
        self._scripted = ScriptedJudge(self._answer)
        self.fault: Callable[[Asked], Canned | None] = lambda _: None
        self.verdicts: Counter[Told] = Counter()
        """How often a verdict of the rules was sent off, by question."""
        self.garbled: Counter[Told] = Counter()
        """The same of completions in which nobody can read a verdict."""
        self.refused = 0
        self.said: dict[tuple[str, str], float | None] = {}
        """What the rules say, by order and dimension; None where they say Unknown."""
        self._door = Door.OPEN
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def calls(self) -> int:
        """How many questions arrived."""
        return len(self._scripted.asked)

    def _answer(self, asked: Asked) -> Canned | None:
        canned = self.fault(asked)
        assert asked.seen is not None
        told = Told(asked.seen.request, asked.seen.dimension, asked.body.get("seed"))
        if canned is None:
            said = verdict(asked.seen)["score"]
            self.said[told.order, told.dimension] = float(said) if isinstance(said, int) else None
            self.verdicts[told] += 1
        elif canned.status == 200 and not canned.hang:
            self.garbled[told] += 1
        else:
            self.refused += 1
        return canned

    async def __aenter__(self) -> Self:
        await self._scripted.__aenter__()
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._shut()
        await self._scripted.__aexit__()

    async def becomes(self, door: Door) -> None:
        """Change what happens to connections, also to those that are there."""
        await self._shut()
        self._door = door
        if door is not Door.REFUSES:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._link, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for link in self._links:
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the door changed
        finally:
            self._links.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match self._door:
            case Door.BREAKS:
                await reader.readuntil(b"\r\n\r\n")
            case Door.BABBLES:
                writer.write(b"\x15\x03\x01\x00\x02\x02\x46")
                await writer.drain()
            case Door.DRIPS:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
                while True:
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.05)
            case _:
                await self._through(reader, writer)

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = int(self._scripted.url.rsplit(":", 1)[1].split("/")[0])
        behind, ahead = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(_copy(reader, ahead), _copy(behind, writer))
        finally:
            ahead.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
    writer.close()
