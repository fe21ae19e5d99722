"""A process that is told to stop while it starts."""

import asyncio
import subprocess
import sys

import pytest

from pipeline.apps.process import unless_told


async def test_a_start_that_is_made_is_waited_for() -> None:
    made: list[str] = []

    async def start() -> None:
        await asyncio.sleep(0)
        made.append("made")

    assert await unless_told(asyncio.Event(), start())
    assert made == ["made"]


async def test_a_start_without_an_end_is_given_up_when_a_stop_is_asked_for() -> None:
    stop, given_up = asyncio.Event(), asyncio.Event()

    async def start() -> None:
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    async with asyncio.timeout(10):
        assert not await unless_told(stop, start())
    assert given_up.is_set()


async def test_what_a_start_fails_with_is_raised() -> None:
    async def start() -> None:
        raise RuntimeError("no such broker")

    with pytest.raises(RuntimeError, match="no such broker"):
        await unless_told(asyncio.Event(), start())


STUBBORN = """
import asyncio, sys
from pipeline.apps import process

async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def work():
    work.left = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    print("closed")
    return 7

process.LEFT_BEHIND = 0.2
sys.exit(asyncio.run(process.and_end(work())))
"""


def test_what_takes_no_cancellation_does_not_hold_a_process_that_is_done() -> None:
    ended = subprocess.run([sys.executable, "-c", STUBBORN], check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (7, "closed\n")
