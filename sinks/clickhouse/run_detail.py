"""One run as a person reads it: what it did, and everything that was said of it, by whom."""

from decimal import Decimal
from typing import Any, Final

import msgspec

from pipeline.errors import ConfigurationError
from pipeline.judges.votes import Vote
from pipeline.model.result import Feedback, Judgment, Result
from pipeline.model.run import Part
from pipeline.model.spending import HandOff
from pipeline.model.step import ToolCall
from pipeline.model.window import Trip
from sinks.clickhouse.board import BoardRow, board_row_of
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.fact_rows import feedback_of, judgment_of
from sinks.clickhouse.gate_rows import trip_of
from sinks.clickhouse.result_rows import result_of
from sinks.clickhouse.rows import ns, ns_or_zero
from sinks.clickhouse.run_rows import LIVE, cost_of, hand_offs_of, parts_of, tool_calls_of
from sinks.clickhouse.votes import votes_of_run

CANDIDATES: Final = 10
"""Runs that are listed where a prefix fits several."""
_NAMED: Final = """
SELECT run_id
FROM runs FINAL
WHERE project = {project:String} AND startsWith(run_id, {prefix:String})
ORDER BY run_id
LIMIT {limit:UInt64}
"""
_OF_TRACE: Final = """
SELECT run_id
FROM runs FINAL
WHERE project = {project:String} AND trace_id = {trace:String} AND state = 'live'
ORDER BY run_id
LIMIT {limit:UInt64}
"""
_RUN: Final = "SELECT * FROM runs FINAL WHERE project = {project:String} AND run_id = {run:String}"
# A retired row has no first receipt; an unsampled one, which counts for nothing either, has.
_RESULTS: Final = """
SELECT dimension, kind, contract, outcome, value, lower, upper, reason, evidence, authority
FROM results FINAL
WHERE project = {project:String} AND (cohort_id, minute) IN (
        SELECT cohort_id, minute FROM runs FINAL WHERE project = {project:String} AND run_id = {run:String} AND state = 'live'
    )
    AND run_id = {run:String} AND series = 'live' AND toUnixTimestamp64Nano(first_received_at) != 0
ORDER BY kind, dimension, contract
"""
_JUDGMENTS: Final = """
SELECT *
FROM judgments FINAL
WHERE project = {project:String} AND trace_id = {trace:String} AND run_id = {run:String}
ORDER BY judged_at, dimension, judgment_id
"""
_FEEDBACK: Final = """
SELECT *
FROM feedback FINAL
WHERE project = {project:String} AND trace_id = {trace:String} AND run_id IN ('', {run:String})
    AND (span_id = '' OR feedback_id IN {counted:Array(String)})
ORDER BY received_at, feedback_id
"""
_TRANSCRIPT: Final = "SELECT body FROM transcripts WHERE project = {project:String} AND transcript_hash = {hash:String} LIMIT 1"
_TRIPS: Final = (
    "SELECT * FROM trips FINAL WHERE project = {project:String} AND run_id = {run:String} ORDER BY at, gate, transition"
)


class UnknownRunError(ConfigurationError):
    """No run of the project has an id that starts so."""


class AmbiguousRunError(ConfigurationError):
    """Several runs have ids that start so; ``candidates`` are the first of them."""

    def __init__(self, message: str, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class RunDetail(msgspec.Struct, frozen=True):
    """A run, live or retracted, and everything that was said of it. A retracted run has lost all but its name and its heir."""

    line: BoardRow
    live: bool
    merged_into: str
    request: str
    answer: str | None
    error: str | None
    ended: str
    conversation_id: str
    tool_calls: tuple[ToolCall, ...]
    agents: tuple[str, ...]
    parts: tuple[Part, ...]
    """What each agent did and spent; empty in rows from before it was kept."""
    models: tuple[str, ...]
    model_calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: Decimal | None
    """By the price table; None where it is not known, and never a part of it."""
    cost_unknown: str
    """Why it is not."""
    cost_prices: str
    """Version of the price table; empty in rows from before there was one."""
    reported_cost_usd: float | None
    """What the senders of all its model calls say; it counts nowhere."""
    task_kind: str
    retries: int
    """Model calls that only made a failed one again."""
    hand_offs: tuple[HandOff, ...]
    flags: tuple[str, ...]
    failing: tuple[str, ...]
    sampling_plan: str
    sampled: bool
    inclusion_probability: float
    transcript_hash: str
    requested_ns: int
    deadline_ns: int
    version: int
    revision: str = ""
    """Commit of the code that graded this version; empty in rows from before it was kept."""
    graded_ns: int = 0
    """When this version was written."""
    transcript: str | None = None
    results: tuple[Result, ...] = ()
    judgments: tuple[Judgment, ...] = ()
    """All that were ever made, superseded ones too."""
    votes: tuple[Vote, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    trips: tuple[Trip, ...] = ()


def run_detail(database: Database, project: str, prefix: str) -> RunDetail:
    """Return the run whose id starts with ``prefix``, or the one live run of the trace of this id.

    Raises:
        UnknownRunError: there is none.
        AmbiguousRunError: there are several; the message lists them.
    """
    run_id = _resolve(database, project, prefix.strip().lower())
    (row,) = database.query(_RUN, {"project": project, "run": run_id})
    of_run = {"project": project, "run": run_id}
    of_trace = {**of_run, "trace": row["trace_id"]}
    return msgspec.structs.replace(
        detail_of(row),
        transcript=transcript_of(database, project, row["transcript_hash"]),
        results=tuple(result_of(one) for one in database.query(_RESULTS, of_run)),
        judgments=tuple(judgment_of(one) for one in database.query(_JUDGMENTS, of_trace)),
        votes=tuple(votes_of_run(database, project, run_id)),
        feedback=tuple(
            feedback_of(one) for one in database.query(_FEEDBACK, {**of_trace, "counted": sorted(set(row["feedback"]))})
        ),
        trips=tuple(trip_of(one) for one in database.query(_TRIPS, of_run)),
    )


def transcript_of(database: Database, project: str, transcript_hash: str) -> str | None:
    """Return the text that was judged; None where there was none, or it has expired."""
    found = database.query(_TRANSCRIPT, {"project": project, "hash": transcript_hash}) if transcript_hash else []
    return found[0]["body"] if found else None


def _resolve(database: Database, project: str, prefix: str) -> str:
    found = [row["run_id"] for row in database.query(_NAMED, {"project": project, "prefix": prefix, "limit": CANDIDATES + 1})]
    if not found:
        return _of_trace(database, project, prefix)
    if len(found) > 1:
        raise AmbiguousRunError(
            f"several runs start with {prefix!r}: {_listed(found)}; write more digits", tuple(found[:CANDIDATES])
        )
    return str(found[0])


def _of_trace(database: Database, project: str, trace_id: str) -> str:
    found = [row["run_id"] for row in database.query(_OF_TRACE, {"project": project, "trace": trace_id, "limit": CANDIDATES + 1})]
    if not found:
        raise UnknownRunError(f"project {project!r} has no run {trace_id!r}; the scoreboard lists those it has")
    if len(found) > 1:
        raise AmbiguousRunError(
            f"trace {trace_id} has several runs: {_listed(found)}; write one of them", tuple(found[:CANDIDATES])
        )
    return str(found[0])


def _listed(found: list[str]) -> str:
    return ", ".join(found[:CANDIDATES]) + (" and more" if len(found) > CANDIDATES else "")


def detail_of(row: Row) -> RunDetail:
    """Return the run of a row, with nothing of what was said of it elsewhere."""
    calls = tool_calls_of(row)
    called = {"called": dict.fromkeys(call.name for call in calls), "failed_calls": sum(call.error is not None for call in calls)}
    cost = cost_of(row)
    plain: dict[str, Any] = {name: row[name] for name in _PLAIN}
    many: dict[str, Any] = {name: tuple(row[name]) for name in ("agents", "models", "flags")}
    return RunDetail(
        line=board_row_of({**row, **called}),
        live=row["state"] == LIVE,
        tool_calls=calls,
        parts=parts_of(row),
        cost_usd=cost.usd,
        cost_unknown=cost.unknown,
        cost_prices=cost.prices,
        reported_cost_usd=row["cost_usd"],
        hand_offs=hand_offs_of(row),
        failing=tuple(row["failing_reasons"]),
        requested_ns=ns_or_zero(row["requested_at"]),
        deadline_ns=ns_or_zero(row["deadline_at"]),
        graded_ns=ns(row["inserted_at"]),
        **plain,
        **many,
    )


_PLAIN: Final = (
    "merged_into",
    "request",
    "answer",
    "error",
    "ended",
    "conversation_id",
    "model_calls",
    "input_tokens",
    "output_tokens",
    "task_kind",
    "retries",
    "sampling_plan",
    "sampled",
    "inclusion_probability",
    "transcript_hash",
    "version",
    "revision",
)
