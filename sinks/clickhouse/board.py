"""The scoreboard and the accounting: what became of the runs of a project, in lines and in numbers."""

from decimal import Decimal
from typing import Final

import msgspec

from pipeline.model.run import Cohort, RunClass
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.recovery import open_traces_of
from sinks.clickhouse.rows import dollars, ns
from sinks.clickhouse.run_rows import NOT_AN_AGENT_RUN, cohort_of

_PROJECTS: Final = "SELECT DISTINCT project FROM runs ORDER BY project"
LINE: Final = """
    run_id, trace_id, agent, agent_version, environment, steps, tool_call_count, called,
    arrayCount(error -> error IS NOT NULL, JSONExtract(tool_calls, 'Array(Tuple(error Nullable(String)))').error) AS failed_calls,
    verdict, verdict_reason, class, class_reason, converted,
    composite_low, composite_high, started_at, ended_at, dialects, cost
"""
"""The columns of a run in one line."""
_BOARD: Final = """
SELECT {line}
FROM runs FINAL
WHERE project = {project:String} AND state = 'live' AND ({agent:String} = '' OR agent = {agent:String})
    AND ({flag:String} = '' OR has(flags, {flag:String}))
ORDER BY ended_at DESC, run_id
LIMIT {limit:UInt64}
""".replace("{line}", LINE)
_CLASSES: Final = """
SELECT class, class_reason, count() AS runs
FROM runs FINAL
WHERE project = {project:String} AND state = 'live'
GROUP BY class, class_reason
"""
_NO_RUN: Final = "SELECT count() AS traces FROM traces FINAL WHERE project = {project:String} AND state = {state:String}"


class BoardRow(msgspec.Struct, frozen=True):
    """A live run in one line."""

    run_id: str
    trace_id: str
    cohort: Cohort
    steps: int
    tool_calls: int
    tools: tuple[str, ...]
    """Names of the tools that were called, in the order of their first call."""
    failed_calls: int
    """Calls that failed, or that were asked for and never executed."""
    verdict: str | None
    """None while a judgment is outstanding that could still decide."""
    reason: str
    run_class: str
    class_reason: str
    converted: bool
    composite_low: float | None
    composite_high: float | None
    start_ns: int
    end_ns: int
    dialects: tuple[str, ...]
    cost_usd: Decimal | None = None
    """By the price table; None where it is not known."""


class Accounting(msgspec.Struct, frozen=True):
    """What became of the runs of a project: received = judged + unsampled + unresolved + pending (spec section 1)."""

    received: int
    judged: int
    unsampled: int
    pending: int
    unresolved: dict[str, int]
    """By reason."""
    open_traces: int
    """Traces that still wait for spans or grading; beside the runs, not among them."""
    not_an_agent_run: int
    """Closed traces that hold no run."""


def projects(database: Database) -> list[str]:
    """Return the projects that have runs."""
    return [row["project"] for row in database.query(_PROJECTS)]


def scoreboard(database: Database, project: str, limit: int = 100, agent: str = "", flag: str = "") -> list[BoardRow]:
    """Return the live runs that ended last, of one agent or of all, and those with a flag or all."""
    given = {"project": project, "limit": limit, "agent": agent, "flag": flag}
    return [board_row_of(row) for row in database.query(_BOARD, given)]


def accounting(database: Database, project: str) -> Accounting:
    """Count the runs of a project by their class, in one query, so that they add up at every moment; and the traces beside."""
    classes = database.query(_CLASSES, {"project": project})
    by_class = {name: sum(row["runs"] for row in classes if row["class"] == name) for name in RunClass}
    unresolved = {row["class_reason"]: row["runs"] for row in classes if row["class"] == RunClass.UNRESOLVED}
    return Accounting(
        received=sum(row["runs"] for row in classes),
        judged=by_class[RunClass.JUDGED],
        unsampled=by_class[RunClass.UNSAMPLED],
        pending=by_class[RunClass.PENDING],
        unresolved=dict(sorted(unresolved.items())),
        open_traces=len(open_traces_of(database, project)),
        not_an_agent_run=database.query(_NO_RUN, {"project": project, "state": NOT_AN_AGENT_RUN})[0]["traces"],
    )


def board_row_of(row: Row) -> BoardRow:
    """Return a run in one line from its row."""
    return BoardRow(
        run_id=row["run_id"],
        trace_id=row["trace_id"],
        cohort=cohort_of(row),
        steps=row["steps"],
        tool_calls=row["tool_call_count"],
        tools=tuple(row["called"]),
        failed_calls=row["failed_calls"],
        verdict=row["verdict"],
        reason=row["verdict_reason"],
        run_class=row["class"],
        class_reason=row["class_reason"],
        converted=row["converted"],
        composite_low=row["composite_low"],
        composite_high=row["composite_high"],
        start_ns=ns(row["started_at"]),
        end_ns=ns(row["ended_at"]),
        dialects=tuple(row["dialects"]),
        cost_usd=dollars(row["cost"]),
    )
