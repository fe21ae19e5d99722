"""Minutes and windows: results added up by the engine, what was published of them, and which of it is stale (design section 5).

``pipeline.stages.window.fold`` is the oracle of the query here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from pipeline.model.run import Place
from pipeline.model.time import SECOND
from pipeline.model.window import Series, Sums, Window
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.gate_rows import minute_row, series_of, sums_of, window_of, window_row
from sinks.clickhouse.rows import insert, instant, minute, minute_ns
from sinks.clickhouse.run_rows import place_of

Minutes = dict[tuple[Series, int], Sums]
"""What each (series, start of a minute in ns) holds."""

# Sums of floats are taken in the order of size and with compensation, so that the same rows give the same bits however they lie in
# parts (promise 5). A decided result without a value of its own is worth 1 or 0: pass or fail.
_SUMS: Final = """
SELECT project, cohort_id, minute, dimension, contract,
    any(agent) AS agent, any(agent_version) AS agent_version, any(environment) AS environment, max(kind) AS kind,
    countIf(counts) AS n, countIf(is_decided) AS decided, countIf(counts AND outcome IS NULL) AS pending,
    countIf(is_passed) AS passed, countIf(counts AND ifNull(outcome = 'grader_error', false)) AS grader_errors,
    count(trouble) AS runs, count(took) AS timed, ifNull(sum(toUInt128(took)), 0) AS duration_ns,
    count(paid) AS priced, ifNull(sum(paid), 0) AS cost_usd,
    countIf(ifNull(trouble != 'none', false)) AS erring, countIf(ifNull(trouble = 'alarm', false)) AS alarming,
    arrayReduce('sumKahan', arraySort(groupArrayIf(weight, is_decided))) AS w,
    arrayReduce('sumKahan', arraySort(groupArrayIf(weight * weight, is_decided))) AS w2,
    arrayReduce('sumKahan', arraySort(groupArrayIf(weight * y, is_decided))) AS wy,
    arrayReduce('sumKahan', arraySort(groupArrayIf(weight * y * y, is_decided))) AS wy2,
    arrayReduce('sumKahan', arraySort(groupArrayIf(weight, is_passed))) AS wp,
    arrayReduce('sumKahan', arraySort(groupArrayIf(spread, is_decided))) AS v,
    arrayReduce('sumKahan', arraySort(groupArrayIf(spread * y, is_decided))) AS vy,
    arrayReduce('sumKahan', arraySort(groupArrayIf(spread * y * y, is_decided))) AS vy2,
    arrayReduce('sumKahan', arraySort(groupArrayIf(spread, is_passed))) AS vp,
    arrayReduce('sumKahan', arraySort(groupArrayIf(weight, counts AND NOT is_decided))) AS undecided_w,
    arrayReduce('sumKahan', arraySort(groupArrayIf(weight * ifNull(lower, 0), counts AND NOT is_decided))) AS undecided_w_lower,
    arrayReduce('sumKahan', arraySort(groupArrayIf(weight * ifNull(upper, 0), counts AND NOT is_decided))) AS undecided_w_upper,
    minIf(first_received_at, counts) AS first_received_at,
    count() AS rows, sum(version) AS fingerprint
FROM (
    SELECT *,
        weight > 0 AS counts,
        counts AND ifNull(outcome = 'pass', false) AS is_passed,
        is_passed OR counts AND ifNull(outcome = 'fail', false) AS is_decided,
        ifNull(value, toFloat64(is_passed)) AS y,
        weight * (weight - 1) AS spread,
        duration_ns AS took, cost_usd AS paid
    FROM results FINAL
    WHERE project = {project:String} AND cohort_id = {cohort:String} AND minute IN {minutes:Array(DateTime64(0, 'UTC'))} AND series = 'live'
)
GROUP BY project, cohort_id, minute, dimension, contract
ORDER BY minute, dimension, contract
"""
_MINUTES: Final = """
SELECT * EXCEPT (version)
FROM minutes FINAL
WHERE project = {project:String} AND cohort_id = {cohort:String}
    AND minute >= toDateTime64({first:Int64}, 0, 'UTC') AND minute < toDateTime64({end:Int64}, 0, 'UTC')
ORDER BY minute, dimension, contract
"""
_WINDOWS: Final = """
SELECT * EXCEPT (version, amended)
FROM windows FINAL
WHERE project = {project:String} AND cohort_id = {cohort:String} AND length_s = {length:UInt32}
    AND window_start >= toDateTime64({first:Int64}, 0, 'UTC') AND window_start < toDateTime64({end:Int64}, 0, 'UTC')
ORDER BY window_start, dimension, contract
"""
# Only minutes that anything was inserted into since are counted; an index over inserted_at finds them.
_STALE: Final = """
WITH touched AS (
    SELECT DISTINCT project, cohort_id, minute FROM results WHERE inserted_at >= fromUnixTimestamp64Nano({since:Int64}, 'UTC')
)
SELECT project, cohort_id, minute, any(agent) AS agent, any(agent_version) AS agent_version, any(environment) AS environment
FROM (
    SELECT project, cohort_id, minute, dimension, contract,
        any(agent) AS agent, any(agent_version) AS agent_version, any(environment) AS environment, count() AS rows, sum(version) AS fingerprint
    FROM results FINAL
    WHERE (project, cohort_id, minute) IN touched AND series = 'live'
    GROUP BY project, cohort_id, minute, dimension, contract
)
WHERE (project, cohort_id, minute, dimension, contract, rows, fingerprint) NOT IN (
    SELECT project, cohort_id, minute, dimension, contract, rows, fingerprint
    FROM minutes FINAL
    WHERE (project, cohort_id, minute) IN touched
)
GROUP BY project, cohort_id, minute
ORDER BY project, cohort_id, minute
"""


def minute_sums(database: Database, project: str, cohort_id: str, minutes_ns: Sequence[int]) -> Minutes:
    """Add up the live results of these minutes, as they are stored now."""
    if not minutes_ns:
        return {}
    parameters = {"project": project, "cohort": cohort_id, "minutes": sorted({minute(at) for at in minutes_ns})}
    return _minutes(database.query(_SUMS, parameters))


def stale_minutes(database: Database, since_ns: int = 0) -> list[tuple[str, Place]]:
    """Return (project, place) of the minutes whose stored count or fingerprint differs from their results.

    ``since_ns``: only minutes with a row inserted since then, by the engine's clock; 0 looks at all there are.
    """
    rows = database.query(_STALE, {"since": instant(since_ns)})
    return [(row["project"], place_of(row)) for row in rows]


def write_minutes(database: Database, minutes: Mapping[tuple[Series, int], Sums]) -> None:
    """Store minutes. What was added up from more rows, or from later versions of them, supersedes."""
    insert(database, "minutes", [minute_row(series, at, sums) for (series, at), sums in minutes.items()])


def load_minutes(database: Database, project: str, cohort_id: str, first_ns: int, end_ns: int) -> Minutes:
    """Return the stored minutes that start in [first, end)."""
    parameters = {"project": project, "cohort": cohort_id, "first": minute(first_ns), "end": -(-end_ns // SECOND)}
    return _minutes(database.query(_MINUTES, parameters))


def write_windows(database: Database, windows: Iterable[Window], *, amended: bool = False) -> None:
    """Store windows. ``amended``: they had been final before, and no gate reads them again."""
    insert(database, "windows", [window_row(window, amended) for window in windows])


def load_windows(database: Database, project: str, cohort_id: str, length_ns: int, first_ns: int, end_ns: int) -> list[Window]:
    """Return the published windows of this length that start in [first, end), by start; see :func:`window_of` for their sums."""
    parameters = {
        "project": project,
        "cohort": cohort_id,
        "length": length_ns // SECOND,
        "first": minute(first_ns),
        "end": -(-end_ns // SECOND),
    }
    return [window_of(row) for row in database.query(_WINDOWS, parameters)]


def _minutes(rows: list[Row]) -> Minutes:
    """A minute that holds nothing but retired rows may not know the kind of its series; its neighbours do."""
    kinds: defaultdict[tuple[str, str], str] = defaultdict(str)
    for row in rows:
        key = row["dimension"], row["contract"]
        kinds[key] = max(kinds[key], row["kind"])
    found: Minutes = {}
    for row in rows:
        series = replace(series_of(row), kind=kinds[row["dimension"], row["contract"]])
        found[series, minute_ns(row["minute"])] = sums_of(row)
    return found
