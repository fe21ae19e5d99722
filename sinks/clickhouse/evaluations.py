"""Evaluations: the quality scores of windows, each whole in its row; found by id, or the latest of an agent."""

from collections.abc import Iterable
from typing import Final

import msgspec

from pipeline.model.evaluation import Evaluation
from pipeline.model.time import SECOND
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.line import Line
from sinks.clickhouse.rows import insert, minute
from sinks.clickhouse.run_rows import cohort_columns
from sinks.clickhouse.text import to_json

_ONE: Final = """
SELECT body FROM evaluations FINAL WHERE project = {project:String} AND startsWith(evaluation_id, {prefix:String})
ORDER BY evaluation_id LIMIT {limit:UInt64}
"""
# The ids are chosen without the bodies: a body is some kilobytes, and there is one a minute and cohort.
_LATEST: Final = """
SELECT body
FROM evaluations FINAL
WHERE project = {project:String} AND evaluation_id IN (
    SELECT evaluation_id
    FROM evaluations FINAL
    WHERE project = {project:String} AND ({agent:String} = '' OR agent = {agent:String}) AND n > 0
    ORDER BY addSeconds(window_start, length_s) DESC, length_s, evaluation_id
    LIMIT {limit:UInt64}
)
ORDER BY addSeconds(window_start, length_s) DESC, length_s, evaluation_id
"""
_evaluation = msgspec.json.Decoder(Evaluation).decode


def write_evaluations(database: Database, evaluations: Iterable[Evaluation]) -> None:
    """Store evaluations. What was made of more rows, or of later versions of them, supersedes."""
    insert(database, "evaluations", [evaluation_row(one) for one in evaluations])


def evaluations_named(database: Database, project: str, prefix: str, limit: int) -> list[Evaluation]:
    """Return the evaluations whose ids start with ``prefix``."""
    return [evaluation_of(row) for row in database.query(_ONE, {"project": project, "prefix": prefix, "limit": limit})]


def latest_evaluations(database: Database, project: str, agent: str, limit: int) -> list[Evaluation]:
    """Return the evaluations of the windows that ended last, of one agent or of all; a window of nothing but retired rows is none."""
    return [evaluation_of(row) for row in database.query(_LATEST, {"project": project, "agent": agent, "limit": limit})]


def evaluation_row(evaluation: Evaluation) -> Row:
    """Return an evaluation as it is stored."""
    return {
        "project": evaluation.project,
        "evaluation_id": evaluation.id,
        "kind": evaluation.kind,
        **cohort_columns(evaluation.cohort),
        "length_s": evaluation.length_ns // SECOND,
        "window_start": minute(evaluation.start_ns),
        "series": evaluation.series,
        "n": evaluation.rates["pass"].n,
        "score": None if evaluation.quality is None else evaluation.quality.score,
        "body": to_json(evaluation),
        "version": evaluation.version,
    }


def evaluation_of(row: Row) -> Evaluation:
    """Return the evaluation of a row."""
    return _evaluation(row["body"])


class EvaluationTable:
    """Evaluations as people read them; each method raises TemporaryError where the same call may work later."""

    def __init__(self, reads: Line) -> None:
        self._reads = reads

    async def named(self, project: str, prefix: str, limit: int) -> list[Evaluation]:
        """Return the evaluations whose ids start with ``prefix``."""
        return await self._reads.call(evaluations_named, project, prefix, limit)

    async def latest(self, project: str, agent: str = "", limit: int = 50) -> list[Evaluation]:
        """Return the evaluations of the windows that ended last."""
        return await self._reads.call(latest_evaluations, project, agent, limit)
