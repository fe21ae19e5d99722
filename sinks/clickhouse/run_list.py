"""The list of runs: which of a project's runs meet a filter, newest first, a page at a time; and what became of all that do.

A page begins where the one before ended, by time and id, so that the thousandth costs what the first does (measured at a million runs:
docs/pages.md). Lists never read a transcript, a request or an answer (reliability R59).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.model.result import Outcome
from pipeline.model.run import RunClass
from pipeline.model.time import minute_of
from sinks.clickhouse.board import LINE, BoardRow, board_row_of
from sinks.clickhouse.connection import Database
from sinks.clickhouse.line import Line
from sinks.clickhouse.rows import instant, minute

PENDING: Final = "pending"
"""What stands for the absence of an outcome."""
MOST_CHOICES: Final = 200
_OUTCOME: Final = "(outcome = {outcome:String} OR ({outcome:String} = 'pending' AND outcome IS NULL))"
# A row of results has the version of the run that wrote it, so the run's latest version finds its latest results without merging them.
# A retired row has no first receipt.
_MEASURED: Final = """(run_id, version) IN (
        SELECT run_id, version
        FROM results
        WHERE project = {project:String} AND dimension IN {dimension:Array(String)} AND series = 'live'
            AND toUnixTimestamp64Nano(first_received_at) != 0%s
    )"""
_CONDITIONS: Final[Mapping[str, str]] = {
    "agent": "agent IN {agent:Array(String)}",
    "version": "agent_version IN {version:Array(String)}",
    "environment": "environment IN {environment:Array(String)}",
    "verdict": "(verdict = {verdict:String} OR ({verdict:String} = 'pending' AND verdict IS NULL))",
    "run_class": "class = {run_class:String}",
    "class_reason": "class_reason = {class_reason:String}",
    "tool": "hasAny(called, {tool:Array(String)})",
    "flag": "has(flags, {flag:String})",
    "conversation": "conversation_id IN {conversation:Array(String)}",
    "run": "startsWith(run_id, {run:String})",
    "since_ns": "ended_at >= fromUnixTimestamp64Nano({since_ns:Int64})",
    "until_ns": "ended_at < fromUnixTimestamp64Nano({until_ns:Int64})",
    "before": "(ended_at, run_id) < (fromUnixTimestamp64Nano({before_ns:Int64}), {before_id:String})",
}
_PAGE: Final = """
SELECT {line}
FROM runs FINAL
WHERE {where}
ORDER BY ended_at DESC, run_id DESC
LIMIT {{limit:UInt64}}
"""
_COUNTS: Final = """
SELECT class, class_reason, verdict, count() AS runs
FROM runs FINAL
WHERE {where}
GROUP BY class, class_reason, verdict
"""
_COHORTS: Final = """
SELECT {column} AS name
FROM runs
WHERE project = {{project:String}} AND state = 'live'
GROUP BY name
ORDER BY count() DESC, name
LIMIT {{most:UInt64}}
"""
_DIMENSIONS: Final = (
    "SELECT DISTINCT dimension AS name FROM results WHERE project = {project:String} ORDER BY name LIMIT {most:UInt64}"
)


class Cursor(NamedTuple):
    """Where a page ended: its last run."""

    ended_ns: int
    run_id: str


class RunFilter(msgspec.Struct, frozen=True):
    """Which runs; what is empty admits any. Where several spellings of a name are given, each of them is meant.

    Times are of a run's end, in ns: from ``since_ns`` on, before ``until_ns``.
    """

    agent: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    verdict: str = ""
    """An outcome, or ``pending``."""
    run_class: str = ""
    class_reason: str = ""
    dimension: tuple[str, ...] = ()
    """A run meets it where it has a result of this dimension."""
    outcome: str = ""
    """Of that result; counts with a dimension only."""
    tool: tuple[str, ...] = ()
    """Called by the run or one of its agents."""
    flag: str = ""
    conversation: tuple[str, ...] = ()
    run: str = ""
    """What the run id begins with."""
    since_ns: int = 0
    until_ns: int = 0


class Counts(msgspec.Struct, frozen=True):
    """What became of the runs that meet a filter, of all pages: received = judged + unsampled + unresolved + pending (spec section 1)."""

    received: int
    judged: int
    unsampled: int
    pending: int
    unresolved: dict[str, int]
    """By reason."""
    verdicts: dict[str, int]
    """By outcome, all four of them, and ``pending``."""

    @property
    def decided(self) -> int:
        """Runs whose verdict is pass or fail."""
        return self.verdicts[Outcome.PASS] + self.verdicts[Outcome.FAIL]

    @property
    def coverage(self) -> float | None:
        """Share of the runs whose verdict is decided; None without any run."""
        return self.decided / self.received if self.received else None


class Choices(msgspec.Struct, frozen=True):
    """Names that a filter may be given, the most frequent first, and not all where there are more than MOST_CHOICES."""

    agents: tuple[str, ...]
    versions: tuple[str, ...]
    environments: tuple[str, ...]
    tools: tuple[str, ...]
    dimensions: tuple[str, ...]


class RunList:
    """The runs of a project as people look for them."""

    def __init__(self, reads: Line) -> None:
        self._reads = reads

    async def page(self, project: str, chosen: RunFilter, limit: int, before: Cursor | None = None) -> list[BoardRow]:
        """Return the live runs that meet the filter, those that ended last first, from after ``before`` on."""
        return await self._reads.call(page, project, chosen, limit, before)

    async def counts(self, project: str, chosen: RunFilter) -> Counts:
        """Count the live runs that meet the filter."""
        return await self._reads.call(counts, project, chosen)

    async def choices(self, project: str) -> Choices:
        """Return what runs of the project can be told apart by."""
        return await self._reads.call(choices, project)


def page(database: Database, project: str, chosen: RunFilter, limit: int, before: Cursor | None = None) -> list[BoardRow]:
    """Return a page of runs, in one query; see :class:`RunList`."""
    where, parameters = _where(project, chosen, before)
    return [board_row_of(row) for row in database.query(_PAGE.format(line=LINE, where=where), {**parameters, "limit": limit})]


def counts(database: Database, project: str, chosen: RunFilter) -> Counts:
    """Count runs by class and verdict, in one query, so that they add up at every moment."""
    where, parameters = _where(project, chosen, None)
    rows = database.query(_COUNTS.format(where=where), parameters)
    by_class = {name: sum(row["runs"] for row in rows if row["class"] == name) for name in RunClass}
    reasons = sorted({row["class_reason"] for row in rows if row["class"] == RunClass.UNRESOLVED})
    said = {name: sum(row["runs"] for row in rows if (row["verdict"] or PENDING) == name) for name in (*Outcome, PENDING)}
    return Counts(
        received=sum(row["runs"] for row in rows),
        judged=by_class[RunClass.JUDGED],
        unsampled=by_class[RunClass.UNSAMPLED],
        pending=by_class[RunClass.PENDING],
        unresolved={
            reason: sum(row["runs"] for row in rows if (row["class"], row["class_reason"]) == (RunClass.UNRESOLVED, reason))
            for reason in reasons
        },
        verdicts={str(name): runs for name, runs in said.items()},
    )


def choices(database: Database, project: str) -> Choices:
    """Return the names of what there is."""
    parameters = {"project": project, "most": MOST_CHOICES}

    def names(sql: str) -> tuple[str, ...]:
        return tuple(row["name"] for row in database.query(sql, parameters) if row["name"])

    agents, versions, environments, tools = (
        names(_COHORTS.format(column=column)) for column in ("agent", "agent_version", "environment", "arrayJoin(called)")
    )
    return Choices(agents, versions, environments, tools, names(_DIMENSIONS))


def _where(project: str, chosen: RunFilter, before: Cursor | None) -> tuple[str, dict[str, Any]]:
    """Return the conditions of what is filled in, of our own words alone; what was filled in is bound by the engine."""
    given: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in msgspec.structs.asdict(chosen).items()
        if value
    }
    conditions = ["project = {project:String}", "state = 'live'", *(_CONDITIONS[name] for name in given if name in _CONDITIONS)]
    bound: dict[str, Any] = {**given, "project": project}
    bound |= {name: instant(given[name]) for name in ("since_ns", "until_ns") if name in given}
    if chosen.dimension:
        measured, more = _measured(chosen)
        conditions.append(measured)
        bound |= more
    if before is not None:
        conditions.append(_CONDITIONS["before"])
        bound |= {"before_ns": instant(before.ended_ns), "before_id": before.run_id}
    return " AND ".join(conditions), bound


def _measured(chosen: RunFilter) -> tuple[str, dict[str, Any]]:
    """Return the condition on a dimension. Results are ordered by minute, so a time range spares reading the others."""
    narrower = [_OUTCOME] if chosen.outcome else []
    bound: dict[str, Any] = {}
    if chosen.since_ns:
        narrower.append("minute >= toDateTime64({since_minute:Int64}, 0, 'UTC')")
        bound["since_minute"] = minute(minute_of(chosen.since_ns))
    if chosen.until_ns:
        narrower.append("minute <= toDateTime64({until_minute:Int64}, 0, 'UTC')")
        bound["until_minute"] = minute(minute_of(chosen.until_ns))
    return _MEASURED % "".join(f" AND {one}" for one in narrower), bound


def cursor_of(row: BoardRow) -> Cursor:
    """Return where a page ends whose last run this is."""
    return Cursor(row.end_ns, row.run_id)
