"""Threads: calls that block, each in a thread that may be given up. One that hangs for ever keeps no process from ending."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Generic, TypeVar

from pipeline.errors import TemporaryError

T = TypeVar("T")


class Threads(Generic[T]):
    """So many calls at once, those that nobody waits for any more included."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running = 0

    async def call(self, function: Callable[[], T]) -> T:
        """Return what the function returns, or raise what it raises.

        Raises:
            TemporaryError: as many calls as there may be still run, given up or not.
        """
        if self._running >= self._most:
            raise TemporaryError("earlier reads of the source have not ended")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def finish(result: T | None, error: BaseException | None) -> None:
            self._running -= 1
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type] # what the function returned

        def work() -> None:
            result: T | None = None
            error: BaseException | None = None
            try:
                result = function()
            except BaseException as raised:  # noqa: BLE001 - it is raised again where it is awaited
                error = RuntimeError(type(raised).__name__) if isinstance(raised, StopIteration | SystemExit) else raised
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(finish, result, error)

        self._running += 1
        Thread(target=work, daemon=True, name="record source").start()
        return await done
