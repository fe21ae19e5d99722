"""Waiting in tests: for something to become so, turn by turn of the event loop, and never for a time to pass."""

import asyncio
from collections.abc import Callable

PATIENCE = 10.0
"""Seconds after which a test fails in which it never comes to hold."""


async def until(holds: Callable[[], object]) -> None:
    """Let other tasks run until it holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - what is waited for is any state of any part
            await asyncio.sleep(0)


async def a_while() -> None:
    """Let other tasks run as far as they get by themselves: none of the parts under test waits for more than a few turns."""
    for _ in range(50):
        await asyncio.sleep(0)
