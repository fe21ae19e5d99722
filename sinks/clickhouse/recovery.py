"""Recovery: which traces their owner has to take up again after a start, a gain of partitions, or a sweep (design sections 3 and 5).

``since_ns`` keeps it from reading all history; 0 reads it all. Let ``c`` be the clock of a partition as its owner last wrote it: all
that was due by then is written. Then ``c`` minus the idle timeout, the time between sweeps and a margin for clocks that differ is safe:

- Open traces. They have more facts than their last version knew of, or as many of which one turned out to have come earlier. A run is
  due at the latest one idle timeout after its last span or log record. So a trace whose facts were folded by ``c`` and that is open
  has one received after ``c`` minus the idle timeout. Facts that were stored and not folded are delivered again; for
  facts that were on their way for longer (a bridge's backlog, a dead letter that was sent back) their owner puts ``c`` back before it
  acknowledges them. Left out are only traces that nobody closes: dead letters, and log records, judgments or feedback of traces without
  spans.
- Pending runs. They are found without a bound. A run that is asked for anew after a start gets all its time again and no new row, so
  after some starts it can be pending for any time after its ``deadline_at``.
- Rows at a former place. What made a row stray, the row itself or the move of its run, inserted rows of ``results`` or ``runs``; what
  was inserted before the last sweep, that one has found.
- Runs that never were. The last version of a trace wrote or retracted every run of it that its owner knew of. A live run that is older
  than that was written by a former owner, after the read-back of the present one. Which of them wrote last made it what it is, and
  inserted a row of ``runs`` or of ``traces``. The trace may be closed a day after its ghost came, so the ghost's row alone is no bound.
"""

from collections.abc import Collection, Mapping
from typing import Final

from pipeline.model import ids
from pipeline.model.version import TraceKey
from sinks.clickhouse.connection import Database
from sinks.clickhouse.rows import LATEST, insert, instant, ns

ALL_BUCKETS: Final = range(ids.BUCKETS)
_TIMES: Final = {
    "spans": "received_at",
    "log_records": "received_at",
    "judgments": "judged_at",
    "feedback": "received_at",
    "record_reads": "read_at",
}
"""The tables of facts, each with its column of when a fact came."""
_CAME: Final = """
    SELECT project, trace_id FROM {table}
    WHERE {time} >= fromUnixTimestamp64Nano({since:Int64}, 'UTC') AND bucket IN {buckets:Array(UInt16)}
"""


def _recent(times: Mapping[str, str]) -> str:
    """Return the SQL that names the traces of which any of these tables has a row since then, each by its own column."""
    found = "    UNION DISTINCT".join(_CAME.replace("{table}", table).replace("{time}", time) for table, time in times.items())
    return f"WITH recent AS ({found})\n"


_FACTS: Final = """SELECT project, trace_id, toInt64(count()) AS facts, sum(toInt128({latest} - earliness)) AS receipts FROM {table} FINAL
    PREWHERE {which} GROUP BY project, trace_id""".replace("{latest}", str(LATEST))
# In the order of the key the groups are streamed, not held. Facts and graded facts are added with opposite signs, and so is when they came,
# so that no join has to hold every trace there ever was. PREWHERE: each condition holds for all rows of a key or for none.
_COUNTED: Final = """
{recent}SELECT project, trace_id
FROM (
    {facts}
    UNION ALL
    SELECT project, trace_id, -toInt64(facts) AS facts, -toInt128(receipts) AS receipts FROM traces FINAL
    PREWHERE {which}
)
GROUP BY project, trace_id
HAVING sum(facts) > 0 OR sum(facts) = 0 AND sum(receipts) < 0
ORDER BY project, trace_id
SETTINGS optimize_aggregation_in_order = 1
""".replace("{facts}", " UNION ALL ".join(_FACTS.replace("{table}", table) for table in _TIMES))
_OPEN: Final = _COUNTED.replace("{recent}", "").replace("{which}", "bucket IN {buckets:Array(UInt16)}")
_OPEN_OF_PROJECT: Final = _COUNTED.replace("{recent}", "").replace("{which}", "project = {project:String}")
# Indexes over the times of facts find the parts to look into. Of the traces found there all facts are counted, old ones too, by key.
_OPEN_SINCE: Final = _COUNTED.replace("{which}", "(project, trace_id) IN recent").replace("{recent}", _recent(_TIMES))
# A run that was ever pending is found by columns of a byte a row, and only such runs are looked at as they are now.
_PENDING: Final = """
SELECT DISTINCT project, trace_id
FROM runs FINAL
PREWHERE (project, trace_id, run_id) IN (
    SELECT project, trace_id, run_id FROM runs WHERE class = 'pending' AND state = 'live' AND bucket IN {buckets:Array(UInt16)}
)
WHERE state = 'live' AND class = 'pending'
ORDER BY project, trace_id
"""
# Only a run that was at several places, that is retracted, or of which nothing but results was written before its owner died, can have
# rows that count where it is not.
_STRAYS: Final = """
WITH {recent}moved AS (
    SELECT project, trace_id, run_id FROM places PREWHERE {which}
    GROUP BY project, trace_id, run_id HAVING uniqExact(cohort_id, minute) > 1
    UNION DISTINCT
    SELECT project, trace_id, run_id
    FROM runs FINAL
    PREWHERE (project, trace_id, run_id) IN (SELECT project, trace_id, run_id FROM runs WHERE state = 'retracted' AND {which})
    WHERE state = 'retracted'
    UNION DISTINCT
    SELECT project, trace_id, run_id FROM places PREWHERE {which}
    WHERE (project, trace_id, run_id) NOT IN (SELECT project, trace_id, run_id FROM runs WHERE {which})
), homes AS (
    SELECT project, cohort_id, minute, run_id FROM runs FINAL PREWHERE (project, trace_id, run_id) IN moved WHERE state = 'live'
), left_places AS (
    SELECT project, cohort_id, minute, run_id
    FROM places
    PREWHERE (project, trace_id, run_id) IN moved
    WHERE (project, cohort_id, minute, run_id) NOT IN homes
)
SELECT DISTINCT project, trace_id
FROM results FINAL
PREWHERE (project, cohort_id, minute, run_id) IN left_places
WHERE weight > 0 AND series = 'live'
ORDER BY project, trace_id
SETTINGS optimize_aggregation_in_order = 1
"""
_MISPLACED: Final = _STRAYS.replace("{recent}", "").replace("{which}", "true")
_MISPLACED_SINCE: Final = _STRAYS.replace("{which}", "(project, trace_id, run_id) IN recent").replace(
    "{recent}",
    """recent AS (
    SELECT project, trace_id, run_id FROM results WHERE inserted_at >= fromUnixTimestamp64Nano({since:Int64}, 'UTC')
    UNION DISTINCT
    SELECT project, trace_id, run_id FROM runs WHERE inserted_at >= fromUnixTimestamp64Nano({since:Int64}, 'UTC')
), """,
)
# Of all versions of a trace the last one knows the most facts, so no FINAL. A trace without a row, and one without runs, has no ghosts.
_GHOSTS: Final = """
{recent}SELECT project, trace_id
FROM (
    SELECT project, trace_id, version AS run_version, toUInt64(0) AS facts
    FROM runs FINAL PREWHERE {which} WHERE state = 'live'
    UNION ALL
    SELECT project, trace_id, toUInt64(-1) AS run_version, facts FROM traces PREWHERE {which}
)
GROUP BY project, trace_id
HAVING min(run_version) < 4 * max(facts)
ORDER BY project, trace_id
SETTINGS optimize_aggregation_in_order = 1
"""
_GHOSTLY: Final = _GHOSTS.replace("{recent}", "").replace("{which}", "bucket IN {buckets:Array(UInt16)}")
_GHOSTLY_SINCE: Final = _GHOSTS.replace("{which}", "(project, trace_id) IN recent").replace(
    "{recent}", _recent({"runs": "inserted_at", "traces": "inserted_at"})
)
_DERIVED: Final = "SELECT partition, derived_at FROM gate_clocks FINAL ORDER BY partition"
_CLOCKS: Final = "SELECT partition, clock_at FROM clocks FINAL ORDER BY partition"


def open_traces(database: Database, buckets: Collection[int] = ALL_BUCKETS, since_ns: int = 0) -> list[TraceKey]:
    """Return the traces that have more facts than their ``traces`` row knows of, or an earlier one, and a fact received since then."""
    return _keys(database, _OPEN_SINCE if since_ns else _OPEN, buckets, since_ns)


def open_traces_of(database: Database, project: str) -> list[TraceKey]:
    """Return the open traces of one project."""
    return [(row["project"], row["trace_id"]) for row in database.query(_OPEN_OF_PROJECT, {"project": project})]


def pending_traces(database: Database, buckets: Collection[int] = ALL_BUCKETS) -> list[TraceKey]:
    """Return the traces of live runs whose judgment is outstanding."""
    return _keys(database, _PENDING, buckets)


def misplaced_traces(database: Database, buckets: Collection[int] = ALL_BUCKETS, since_ns: int = 0) -> list[TraceKey]:
    """Return the traces with results that count at a place their run left or for a run that is retracted, and those with a ghost.

    A ghost is a live run that is older than the last version of its trace. ``since_ns``: only of runs and traces with a row inserted
    since then, by the engine's clock.
    """
    found = _keys(database, _MISPLACED_SINCE if since_ns else _MISPLACED, buckets, since_ns)
    strays = {key for key in found if ids.bucket(*key) in buckets}
    return sorted(strays.union(_keys(database, _GHOSTLY_SINCE if since_ns else _GHOSTLY, buckets, since_ns)))


def unfinished_traces(database: Database, buckets: Collection[int] = ALL_BUCKETS, since_ns: int = 0) -> list[TraceKey]:
    """Return all traces that their owner has something left to do for; see the module for what ``since_ns`` leaves out."""
    return sorted(
        {
            *open_traces(database, buckets, since_ns),
            *pending_traces(database, buckets),
            *misplaced_traces(database, buckets, since_ns),
        }
    )


def write_clocks(database: Database, clocks: Mapping[int, int], at_ns: int) -> None:
    """Store how far the owners of these partitions are, as of ``at_ns``; what was written later supersedes, also a clock that went back."""
    rows = [
        {"partition": partition, "clock_at": instant(clock), "written_at": instant(at_ns)} for partition, clock in clocks.items()
    ]
    insert(database, "clocks", rows)


def clocks(database: Database) -> dict[int, int]:
    """Return the last written clock of each partition, in ns."""
    return {row["partition"]: ns(row["clock_at"]) for row in database.query(_CLOCKS)}


def derived(database: Database) -> dict[int, int]:
    """Return up to when the owner of each partition of agents derived what is due from the rows, in ns."""
    return {row["partition"]: ns(row["derived_at"]) for row in database.query(_DERIVED)}


def write_derived(database: Database, partitions: Collection[int], at_ns: int) -> None:
    """Store that the owners of these partitions of agents derived from all rows up to ``at_ns``; the latest stays."""
    insert(database, "gate_clocks", [{"partition": partition, "derived_at": instant(at_ns)} for partition in partitions])


def _keys(database: Database, sql: str, buckets: Collection[int], since_ns: int = 0) -> list[TraceKey]:
    parameters = {"buckets": list(buckets), "since": instant(since_ns)}
    return [(row["project"], row["trace_id"]) for row in database.query(sql, parameters)]
