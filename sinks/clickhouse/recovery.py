"""Recovery: which traces their owner has to take up again after a start, a gain of partitions, or a sweep (design sections 3 and 5)."""

from collections.abc import Collection
from typing import Final

from pipeline.model import ids
from pipeline.model.version import TraceKey
from sinks.clickhouse.connection import Database

ALL_BUCKETS: Final = range(ids.BUCKETS)

# In the order of the key the groups are streamed, not held. Counts of facts and of graded facts are added with opposite signs, so that
# no join has to hold every trace there ever was.
_OPEN: Final = """
SELECT project, trace_id
FROM (
    SELECT project, trace_id, toInt64(uniqExact(span_id, content_hash)) AS facts FROM spans
    WHERE bucket IN {buckets:Array(UInt16)} GROUP BY project, trace_id
    UNION ALL
    SELECT project, trace_id, toInt64(uniqExact(judgment_id)) AS facts FROM judgments
    WHERE bucket IN {buckets:Array(UInt16)} GROUP BY project, trace_id
    UNION ALL
    SELECT project, trace_id, toInt64(uniqExact(feedback_id)) AS facts FROM feedback
    WHERE bucket IN {buckets:Array(UInt16)} GROUP BY project, trace_id
    UNION ALL
    SELECT project, trace_id, -toInt64(facts) AS facts FROM traces FINAL
    WHERE bucket IN {buckets:Array(UInt16)}
)
GROUP BY project, trace_id
HAVING sum(facts) > 0
ORDER BY project, trace_id
SETTINGS optimize_aggregation_in_order = 1
"""
_OPEN_OF_PROJECT: Final = _OPEN.replace("bucket IN {buckets:Array(UInt16)}", "project = {project:String}")
_PENDING: Final = """
SELECT DISTINCT project, trace_id
FROM runs FINAL
WHERE state = 'live' AND class = 'pending' AND bucket IN {buckets:Array(UInt16)}
ORDER BY project, trace_id
"""
# Only a run that was at several places, or that is retracted, can have rows that count where it is not.
_MISPLACED: Final = """
WITH moved AS (
    SELECT project, trace_id, run_id FROM places GROUP BY project, trace_id, run_id HAVING uniqExact(cohort_id, minute) > 1
    UNION DISTINCT
    SELECT project, trace_id, run_id FROM runs FINAL WHERE state = 'retracted'
), stations AS (
    SELECT project, run_id, cohort_id, minute FROM places WHERE (project, trace_id, run_id) IN moved
)
SELECT DISTINCT project, trace_id
FROM results FINAL
WHERE (project, cohort_id, minute) IN (SELECT project, cohort_id, minute FROM stations)
    AND (project, run_id) IN (SELECT project, run_id FROM stations)
    AND weight > 0 AND series = 'live'
    AND (project, run_id, cohort_id, minute) NOT IN (
        SELECT project, run_id, cohort_id, minute FROM runs FINAL WHERE state = 'live' AND (project, trace_id, run_id) IN moved
    )
ORDER BY project, trace_id
"""


def open_traces(database: Database, buckets: Collection[int] = ALL_BUCKETS) -> list[TraceKey]:
    """Return the traces that have more distinct facts than their ``traces`` row knows of."""
    return _keys(database, _OPEN, buckets)


def open_traces_of(database: Database, project: str) -> list[TraceKey]:
    """Return the open traces of one project."""
    return [(row["project"], row["trace_id"]) for row in database.query(_OPEN_OF_PROJECT, {"project": project})]


def pending_traces(database: Database, buckets: Collection[int] = ALL_BUCKETS) -> list[TraceKey]:
    """Return the traces of live runs whose judgment is outstanding."""
    return _keys(database, _PENDING, buckets)


def misplaced_traces(database: Database, buckets: Collection[int] = ALL_BUCKETS) -> list[TraceKey]:
    """Return the traces with results that count at a place their run left, or for a run that is retracted."""
    found = [(row["project"], row["trace_id"]) for row in database.query(_MISPLACED)]
    return [key for key in found if ids.bucket(*key) in buckets]


def unfinished_traces(database: Database, buckets: Collection[int] = ALL_BUCKETS) -> list[TraceKey]:
    """Return all traces that their owner has something left to do for."""
    return sorted(
        {
            *open_traces(database, buckets),
            *pending_traces(database, buckets),
            *misplaced_traces(database, buckets),
        }
    )


def _keys(database: Database, sql: str, buckets: Collection[int]) -> list[TraceKey]:
    return [(row["project"], row["trace_id"]) for row in database.query(sql, {"buckets": list(buckets)})]
