"""Published windows as people read them: the latest of a dimension, or the last one of each cohort."""

from typing import Final

from pipeline.model.time import SECOND
from pipeline.model.window import Window
from sinks.clickhouse.connection import Database
from sinks.clickhouse.gate_rows import window_of
from sinks.clickhouse.line import Line

_LATEST: Final = """
SELECT * EXCEPT (version, amended)
FROM windows FINAL
WHERE project = {project:String} AND ({agent:String} = '' OR agent = {agent:String}) AND dimension = {dimension:String}
    AND length_s = {length:UInt32} AND n > 0
ORDER BY window_start DESC, agent, agent_version, environment, contract
LIMIT {limit:UInt64}
"""
# A page asks for it every few seconds: it reads no more than a day, however long windows have been kept.
_CURRENT: Final = """
SELECT * EXCEPT (version, amended)
FROM windows FINAL
WHERE project = {project:String} AND dimension = {dimension:String} AND length_s = {length:UInt32} AND n > 0
    AND window_start >= now('UTC') - INTERVAL 1 DAY
ORDER BY window_start DESC, agent, agent_version, environment, contract
LIMIT 1 BY cohort_id
LIMIT {limit:UInt64}
"""
_STORED: Final = "SELECT DISTINCT dimension, length_s FROM windows WHERE project = {project:String} AND n > 0"


def latest_windows(
    database: Database, project: str, dimension: str, length_ns: int, agent: str = "", limit: int = 50
) -> list[Window]:
    """Return the published windows of a dimension that start last and hold a run."""
    wanted = {"project": project, "agent": agent, "dimension": dimension, "length": length_ns // SECOND, "limit": limit}
    return [window_of(row) for row in database.query(_LATEST, wanted)]


def current_windows(database: Database, project: str, dimension: str, length_ns: int, limit: int = 50) -> list[Window]:
    """Return the last window of each cohort that had one within a day."""
    wanted = {"project": project, "dimension": dimension, "length": length_ns // SECOND, "limit": limit}
    return [window_of(row) for row in database.query(_CURRENT, wanted)]


def stored_windows(database: Database, project: str) -> set[tuple[str, int]]:
    """Return the dimensions of which windows are stored, each with their lengths in ns."""
    return {(row["dimension"], row["length_s"] * SECOND) for row in database.query(_STORED, {"project": project})}


class WindowTable:
    """Windows as people read them; each method raises TemporaryError where the same call may work later."""

    def __init__(self, reads: Line) -> None:
        self._reads = reads

    async def latest(self, project: str, dimension: str, length_ns: int, agent: str = "", limit: int = 50) -> list[Window]:
        """Return the published windows of a dimension that start last."""
        return await self._reads.call(latest_windows, project, dimension, length_ns, agent, limit)

    async def current(self, project: str, dimension: str, length_ns: int, limit: int = 50) -> list[Window]:
        """Return the last window of each cohort that had one within a day."""
        return await self._reads.call(current_windows, project, dimension, length_ns, limit)

    async def stored(self, project: str) -> set[tuple[str, int]]:
        """Return the dimensions of which windows are stored, each with their lengths in ns."""
        return await self._reads.call(stored_windows, project)
