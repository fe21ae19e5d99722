"""Process: how a long-running command is told to stop, or finds out that it must."""

import asyncio
import gc
import signal
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger(__name__)
WATCH: Final = 0.5
"""Seconds between looks at what may have failed."""


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
