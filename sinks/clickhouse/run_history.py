"""The history of a run: its versions as far as their rows are still there, and what each said with which weight.

A later version supersedes the ones before it, and the engine drops those some time after (reliability D7, D8): what it dropped is not shown,
and nothing stands in for it.
"""

from typing import Any, Final

import msgspec

from pipeline.model.result import Result
from pipeline.model.version import StoredTrace
from sinks.clickhouse.connection import Database
from sinks.clickhouse.line import Line
from sinks.clickhouse.result_rows import result_of
from sinks.clickhouse.rows import minute_ns, ns, ns_or_zero
from sinks.clickhouse.run_detail import RunDetail, UnknownRunError, detail_of, transcript_of
from sinks.clickhouse.run_rows import LIVE
from sinks.clickhouse.traces import load

_VERSIONS: Final = """
SELECT version, state, class, class_reason, verdict, verdict_reason, min(inserted_at) AS stored_at
FROM runs
WHERE project = {project:String} AND trace_id = {trace:String} AND run_id = {run:String}
GROUP BY version, state, class, class_reason, verdict, verdict_reason
ORDER BY version DESC
LIMIT {limit:UInt64}
"""
_RUN: Final = """
SELECT *
FROM runs
WHERE project = {project:String} AND trace_id = {trace:String} AND run_id = {run:String} AND version = {version:UInt64}
LIMIT 1
"""
# Not merged: of the rows that are there those of one version. A retired row has no first receipt.
_RESULTS: Final = """
SELECT DISTINCT dimension, kind, contract, outcome, value, lower, upper, reason, evidence, authority, weight, inclusion_probability
FROM results
WHERE project = {project:String} AND cohort_id = {cohort:String} AND minute = {minute:DateTime64(0, 'UTC')} AND run_id = {run:String}
    AND version = {version:UInt64} AND series = 'live' AND toUnixTimestamp64Nano(first_received_at) != 0
ORDER BY kind, dimension, contract
"""
_PLACE: Final = """
SELECT cohort_id, minute, version
FROM runs
WHERE project = {project:String} AND trace_id = {trace:String} AND run_id = {run:String} AND version = {version:UInt64}
LIMIT 1
"""
_CLOSE: Final = "SELECT close_reason, closed_at FROM traces FINAL WHERE project = {project:String} AND trace_id = {trace:String}"
_CONTRACTS: Final = "SELECT contract, body FROM contracts FINAL WHERE contract IN {contracts:Array(String)}"
MOST_VERSIONS: Final = 100


class StoredVersion(msgspec.Struct, frozen=True):
    """A version of a run that is still stored, in one line."""

    version: int
    live: bool
    run_class: str
    class_reason: str
    verdict: str | None
    reason: str
    stored_ns: int

    @property
    def facts(self) -> int:
        """How many facts it knew of (design section 3)."""
        return self.version // 4

    @property
    def expired(self) -> bool:
        """Whether a judgment was waited for in vain."""
        return bool(self.version % 4)


class Weighted(msgspec.Struct, frozen=True):
    """A result with what it counts: its weight, and the inclusion probability of its run."""

    result: Result
    weight: float
    inclusion_probability: float


class RunHistory(msgspec.Struct, frozen=True):
    """What is known of a run beside itself. ``minute_ns`` is where it counts, ``results`` those of the version that was asked for."""

    versions: tuple[StoredVersion, ...]
    minute_ns: int
    results: tuple[Weighted, ...]
    close_reason: str
    """Empty while a part of the trace is still open."""
    closed_ns: int
    contracts: dict[str, str]
    """Canonical JSON by hash."""


class RunHistories:
    """Versions of runs."""

    def __init__(self, reads: Line) -> None:
        self._reads = reads

    async def of(self, project: str, detail: RunDetail) -> RunHistory:
        """Return what is known beside a run in the version that ``detail`` has."""
        return await self._reads.call(history, project, detail)

    async def trace(self, project: str, detail: RunDetail) -> StoredTrace:
        """Return all that is stored of a run's trace."""
        key = (project, detail.line.trace_id)
        return (await self._reads.call(load, [key]))[key]

    async def at(self, project: str, latest: RunDetail, version: int) -> RunDetail:
        """Return a run as an earlier version said it; what was said of it apart from its results is as it is now.

        Raises:
            UnknownRunError: no row of that version is stored.
        """
        return await self._reads.call(at_version, project, latest, version)


def history(database: Database, project: str, detail: RunDetail) -> RunHistory:
    """Return what is known beside a run; see :class:`RunHistories`."""
    of_run = {"project": project, "trace": detail.line.trace_id, "run": detail.line.run_id, "version": detail.version}
    place = next(iter(database.query(_PLACE, of_run)), None)
    results = _results(database, of_run, place) if place is not None and detail.live else ()
    closed = next(iter(database.query(_CLOSE, of_run)), None)
    hashes = sorted({one.result.contract for one in results} | {one.contract for one in detail.judgments})
    return RunHistory(
        versions=tuple(_version_of(row) for row in database.query(_VERSIONS, {**of_run, "limit": MOST_VERSIONS})),
        minute_ns=minute_ns(place["minute"]) if place is not None else 0,
        results=results,
        close_reason=closed["close_reason"] if closed else "",
        closed_ns=ns(closed["closed_at"]) if closed else 0,
        contracts={row["contract"]: row["body"] for row in database.query(_CONTRACTS, {"contracts": hashes})},
    )


def _results(database: Database, of_run: dict[str, Any], place: dict[str, Any]) -> tuple[Weighted, ...]:
    rows = database.query(_RESULTS, {**of_run, "cohort": place["cohort_id"], "minute": place["minute"]})
    return tuple(Weighted(result_of(row), row["weight"], row["inclusion_probability"]) for row in rows)


def at_version(database: Database, project: str, latest: RunDetail, version: int) -> RunDetail:
    """Return a run as an earlier version said it; see :class:`RunHistories`."""
    line = latest.line
    rows = database.query(_RUN, {"project": project, "trace": line.trace_id, "run": line.run_id, "version": version})
    if not rows:
        raise UnknownRunError(
            f"version {version} of run {line.run_id} is not stored (any more); the run's page lists those that are"
        )
    beside = {name: getattr(latest, name) for name in ("judgments", "votes", "feedback", "trips")}
    transcript = transcript_of(database, project, rows[0]["transcript_hash"])
    return msgspec.structs.replace(detail_of(rows[0]), transcript=transcript, **beside)


def _version_of(row: dict[str, Any]) -> StoredVersion:
    return StoredVersion(
        version=row["version"],
        live=row["state"] == LIVE,
        run_class=row["class"],
        class_reason=row["class_reason"],
        verdict=row["verdict"],
        reason=row["verdict_reason"],
        stored_ns=ns_or_zero(row["stored_at"]),
    )
