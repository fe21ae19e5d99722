"""The table of rubrics: what runs were graded by, under its hash, whatever the file says today."""

from collections.abc import Iterable
from typing import Final

import msgspec

from pipeline.model.rubric import Rubric
from sinks.clickhouse.connection import Database
from sinks.clickhouse.line import Line
from sinks.clickhouse.rows import insert

_ONE: Final = "SELECT body FROM rubrics FINAL WHERE rubric = {rubric:String} LIMIT 1"


class RubricTable:
    """Rubrics that runs were ever graded by. A rubric is stored as it was in force: with the bar and the gates of its risk."""

    def __init__(self, reads: Line, writes: Line) -> None:
        self._reads = reads
        self._writes = writes

    async def insert(self, rubrics: Iterable[Rubric]) -> None:
        """Store what runs are graded by from now on."""
        await self._writes.call(_insert, tuple(rubrics))

    async def of(self, rubric_hash: str) -> Rubric | None:
        """Return the rubric of that hash; None where it was never stored."""
        return await self._reads.call(_of, rubric_hash)


def _insert(database: Database, rubrics: tuple[Rubric, ...]) -> None:
    insert(database, "rubrics", [_row(rubric) for rubric in rubrics])


def _row(rubric: Rubric) -> dict[str, object]:
    return {"rubric": rubric.hash, "name": rubric.name, "rubric_version": rubric.version, "body": rubric.canonical}


def _of(database: Database, rubric_hash: str) -> Rubric | None:
    found = database.query(_ONE, {"rubric": rubric_hash}) if rubric_hash else []
    return msgspec.json.decode(found[0]["body"], type=Rubric) if found else None
