"""Run finder: which run feedback is about, where it names no trace. A connection of its own, opened when it is first asked."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from pipeline.config.store import StoreSettings
from pipeline.errors import TemporaryError
from pipeline.model.run import RunAddress
from sinks.clickhouse.connection import Database, connect

# A run of any version is in the same trace, so no FINAL: an index over the ids finds it.
_RUN: Final = "SELECT trace_id, run_id FROM runs WHERE project = {project:String} AND run_id = {run:String} LIMIT 1"
_LAST: Final = """
SELECT trace_id, run_id
FROM runs FINAL
PREWHERE (project, trace_id, run_id) IN (
    SELECT project, trace_id, run_id FROM runs WHERE project = {project:String} AND conversation_id = {conversation:String}
)
WHERE conversation_id = {conversation:String} AND state = 'live'
ORDER BY ended_at DESC, run_id
LIMIT 1
"""
_RETRY_AFTER_S: Final = 5.0

log = structlog.get_logger(__name__)


def run(database: Database, project: str, run_id: str) -> RunAddress | None:
    """Return the run of this id, retracted or not."""
    return next((RunAddress(**row) for row in database.query(_RUN, {"project": project, "run": run_id})), None)


def last_of(database: Database, project: str, conversation_id: str) -> RunAddress | None:
    """Return the live run of the conversation that ended last."""
    parameters = {"project": project, "conversation": conversation_id}
    return next((RunAddress(**row) for row in database.query(_LAST, parameters)), None)


class RunFinder:
    """Looks runs up in the store. While the store is away nothing else suffers from it."""

    def __init__(self, settings: StoreSettings, environment: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._environment = environment
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-runs")
        self._database: Database | None = None
        self._again_at = 0.0

    async def run(self, project: str, run_id: str) -> RunAddress | None:
        """Return the run of this id; raise TemporaryError where the store does not answer."""
        return await asyncio.wrap_future(self._thread.submit(self._ask, run, project, run_id))

    async def last_of(self, project: str, conversation_id: str) -> RunAddress | None:
        """Return the run of the conversation that ended last; raise TemporaryError where the store does not answer."""
        return await asyncio.wrap_future(self._thread.submit(self._ask, last_of, project, conversation_id))

    def _ask(self, find: Callable[[Database, str, str], RunAddress | None], project: str, name: str) -> RunAddress | None:
        if time.monotonic() < self._again_at:  # those who wait in line need not each find out that the store is away
            raise _away()
        try:
            if self._database is None:
                self._database = connect(self._settings, self._environment)
            return find(self._database, project, name)
        # Whatever it is (the tables are not made yet, a password is wrong): a client can do nothing about it, and somebody may be about to.
        except Exception as error:
            self._again_at = time.monotonic() + _RETRY_AFTER_S
            log.warning("runs cannot be looked up", reason=str(error))
            raise _away() from error

    async def close(self) -> None:
        """Let go of the connection; safe to call twice."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._thread.shutdown()
        if self._database is not None:
            self._database.close()


def _away() -> TemporaryError:
    """Return what a client is told: it need not know where the store is, or what is wrong with it."""
    return TemporaryError("runs cannot be looked up now: send the trace_id, or try again", _RETRY_AFTER_S)
