"""Process: how a long-running command is told to stop, or finds out that it must."""

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

log = structlog.get_logger(__name__)
WATCH: Final = 0.5
"""Seconds between looks at what may have failed."""
LEFT_BEHIND: Final = 3.0
"""Seconds that tasks and threads of libraries are given to end after everything is closed."""
GIVEN_UP: Final = 5.0
"""Seconds that a start is given to end after it was given up."""


def collect_less_often() -> None:
    """Have the garbage collector pass over what was there at the start, and look less often at the rest: grading makes no cycles.

    Measured: a tenth of what grading costs.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def asked_to_stop() -> asyncio.Event:
    """Return what is set by SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def unless_told(stop: asyncio.Event, start: Awaitable[object]) -> bool:
    """Wait for a start; give it up where a stop is asked for before, since without brokers a start has no end. Returns whether it was made."""
    starting, told = asyncio.ensure_future(start), asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if starting.done():
        starting.result()
        return True
    starting.cancel()
    await asyncio.wait({starting}, timeout=GIVEN_UP)
    return False


async def and_end(work: Awaitable[int]) -> int:
    """Do a command's work, and see to it that the process ends with its code.

    Everything of the product is closed by then. What a library leaves behind, such as a client's tasks that go on asking for a broker
    and take no cancellation, holds the process no longer than seconds.
    """
    code = await work

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    last = threading.Timer(LEFT_BEHIND, end)
    last.daemon = True
    last.start()
    return code


async def until_told(stop: asyncio.Event, failed: Callable[[], BaseException | None]) -> int:
    """Wait for the end; 0 after a stop that was asked for, 1 when a part of the pipeline failed."""
    while not stop.is_set():
        error = failed()
        if error is not None:
            log.error("a part of the pipeline failed", error=repr(error), exc_info=error)
            return 1
        try:
            await asyncio.wait_for(stop.wait(), WATCH)
        except TimeoutError:
            continue
    return 0
