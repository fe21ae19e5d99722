"""A thread for a client that blocks: calls of an event loop, one after another, and an end that nothing can hold up."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Aside:
    """One thread. It ends with the process, whatever it waits for then: a broker that is frozen is waited for by its client without an end."""

    def __init__(self, name: str) -> None:
        self._calls: Final[queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def call(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return what the function returns, after what was asked before."""
        future: Future[T] = Future()
        self._calls.put((future, lambda: function(*arguments, **named)))
        return await asyncio.wrap_future(future)

    def _run(self) -> None:
        while True:
            future, call = self._calls.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - whoever asked is told
                future.set_exception(error)
