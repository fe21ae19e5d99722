"""Line: one connection, and the calls that are made on it one after another."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from sinks.clickhouse.connection import Database

P = ParamSpec("P")
R = TypeVar("R")
Work = Callable[Concatenate[Database, P], R]


class Line:
    """A connection and the one thread that uses it: its calls come one after another."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"store-{name}")

    async def call(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run this with the connection, after what was asked before."""
        return await asyncio.wrap_future(self._thread.submit(work, self._database, *args, **kwargs))

    def close(self) -> None:
        """Finish what was asked and let go of the engine; safe to call twice."""
        self._thread.shutdown()
        self._database.close()
