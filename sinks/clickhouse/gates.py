"""Gates: the windows they read, their states, what they said and to whom. What the gate process starts from."""

from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.model.time import SECOND
from pipeline.model.window import GateState, Notification, Trip, Window
from sinks.clickhouse.connection import Database
from sinks.clickhouse.gate_rows import (
    gate_state_of,
    gate_state_row,
    notification_of,
    notification_row,
    trip_of,
    trip_row,
    window_of,
)
from sinks.clickhouse.rows import insert, instant, minute

_STATES: Final = "SELECT * FROM gate_states FINAL ORDER BY project, gate, cohort_id"
_TRIPS: Final = "SELECT * FROM trips FINAL ORDER BY at, project, gate, cohort_id, trip_id, transition, run_id"
_TRIPPED: Final = "SELECT DISTINCT project, gate, cohort_id, run_id FROM trips WHERE run_id IN {runs:Array(String)}"
_NOTIFICATIONS: Final = "SELECT * FROM notifications FINAL ORDER BY due_at, project, trip_id, transition, destination"
_UNCONFIRMED: Final = """
SELECT * FROM notifications FINAL WHERE confirmed_at IS NULL ORDER BY due_at, project, trip_id, transition, destination
"""
# Notifications of a transition are stored in one insert: a transition has all of them or none.
_UNNOTIFIED: Final = """
SELECT *
FROM trips FINAL
WHERE transition != 'run' AND at >= fromUnixTimestamp64Nano({since:Int64}, 'UTC')
    AND (project, trip_id, transition) NOT IN (SELECT project, trip_id, transition FROM notifications)
ORDER BY at, project, gate, cohort_id, trip_id, transition, run_id
"""
# A verdict that fails says nothing of a check, and a composite never does.
_STILL_FAILING: Final = """
WITH live AS (
    SELECT cohort_id, minute, run_id
    FROM runs FINAL
    WHERE project = {project:String} AND run_id IN {runs:Array(String)} AND state = 'live'
)
SELECT DISTINCT run_id
FROM results FINAL
WHERE project = {project:String} AND (cohort_id, minute) IN (SELECT cohort_id, minute FROM live) AND run_id IN (SELECT run_id FROM live)
    AND kind IN ('code', 'judged') AND outcome = 'fail' AND weight > 0 AND series = 'live'
ORDER BY run_id
"""
_UNREAD: Final = """
SELECT * EXCEPT (version, amended)
FROM windows FINAL
WHERE project = {project:String} AND cohort_id = {cohort:String} AND length_s = {length:UInt32} AND dimension = {dimension:String}
    AND window_start > toDateTime64({after:Int64}, 0, 'UTC')
ORDER BY window_start, contract
"""


def write_gate_states(database: Database, states: Iterable[GateState]) -> None:
    """Store gate states; the greater version supersedes."""
    insert(database, "gate_states", [gate_state_row(state) for state in states])


def gate_states(database: Database) -> list[GateState]:
    """Return where every gate stands, by project, gate and cohort."""
    return [gate_state_of(row) for row in database.query(_STATES)]


def write_trips(database: Database, made: Iterable[Trip]) -> None:
    """Store transitions of gates. The same transition written again supersedes, such as one that is ``retracted`` now."""
    insert(database, "trips", [trip_row(trip) for trip in made])


def trips(database: Database) -> list[Trip]:
    """Return all transitions of all gates, in the order of the gates' clock."""
    return [trip_of(row) for row in database.query(_TRIPS)]


def tripped_runs(database: Database, run_ids: Sequence[str]) -> set[tuple[str, str, str, str]]:
    """Return (project, gate, cohort id, run id) of the trips that name these runs, retracted or not."""
    rows = database.query(_TRIPPED, {"runs": list(run_ids)})
    return {(row["project"], row["gate"], row["cohort_id"], row["run_id"]) for row in rows}


def unread_windows(
    database: Database, project: str, cohort_id: str, dimension: str, length_ns: int, after_ns: int
) -> list[Window]:
    """Return the published windows of one dimension that start after a time, by start."""
    parameters = {
        "project": project,
        "cohort": cohort_id,
        "dimension": dimension,
        "length": length_ns // SECOND,
        "after": minute(after_ns),
    }
    return [window_of(row) for row in database.query(_UNREAD, parameters)]


def write_notifications(database: Database, made: Iterable[Notification]) -> None:
    """Store notifications: all of a transition at once, and again after each attempt."""
    insert(database, "notifications", [notification_row(one) for one in made])


def notifications(database: Database) -> list[Notification]:
    """Return all notifications, by due time."""
    return [notification_of(row) for row in database.query(_NOTIFICATIONS)]


def unconfirmed_notifications(database: Database) -> list[Notification]:
    """Return what is due to be heard and not known to be, by due time; what was refused for good is due in the far future."""
    return [notification_of(row) for row in database.query(_UNCONFIRMED)]


def unnotified_trips(database: Database, since_ns: int = 0) -> list[Trip]:
    """Return the firings and clearings since ``since_ns``, on the gates' clock, that have no notification stored at all.

    With :func:`unconfirmed_notifications` these are the trips without a confirmed notification: a process died between the two writes,
    or the gate notifies nobody.
    """
    return [trip_of(row) for row in database.query(_UNNOTIFIED, {"since": instant(since_ns)})]


def still_failing(database: Database, project: str, run_ids: Sequence[str]) -> set[str]:
    """Return those of the runs that are live and fail a check or a judged dimension now."""
    return {row["run_id"] for row in database.query(_STILL_FAILING, {"project": project, "runs": list(run_ids)})}
