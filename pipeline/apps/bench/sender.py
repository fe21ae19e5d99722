"""The sender: a process of its own that posts request bodies from a file to an OTLP endpoint, four at a time."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import aiohttp

CONCURRENCY: Final = 4
LENGTH: Final = 4


def write(path: Path, bodies: list[bytes]) -> None:
    """Write bodies, each after its length."""
    path.write_bytes(b"".join(len(body).to_bytes(LENGTH, "big") + body for body in bodies))


def read(path: Path) -> list[bytes]:
    """Read what :func:`write` wrote."""
    raw, bodies, at = path.read_bytes(), [], 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + LENGTH], "big")
        bodies.append(raw[at + LENGTH : at + LENGTH + size])
        at += LENGTH + size
    return bodies


async def post(url: str, bodies: list[bytes]) -> None:
    """Post all bodies; anything but 200 is an error."""
    waiting = iter(bodies)

    async def one(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            async with session.post(url, data=body, headers={"Content-Type": "application/x-protobuf"}) as answer:
                answer.raise_for_status()

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(one(session) for _ in range(CONCURRENCY)))


def main() -> None:
    """Say that all is read, wait for a line, post, end."""
    url, path = sys.argv[1:]
    bodies = read(Path(path))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    asyncio.run(post(url, bodies))


if __name__ == "__main__":
    main()
