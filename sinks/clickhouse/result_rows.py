"""Rows of results: one dimension of a run at its place, as it is stored, and back."""

from collections.abc import Mapping

from pipeline.model.result import Kind, Outcome, Result
from pipeline.model.version import ResultKey, ResultRow, TraceVersion, result_rows
from sinks.clickhouse.connection import Row
from sinks.clickhouse.rows import instant
from sinks.clickhouse.run_rows import LIVE, place_columns, place_of


def results_of_trace(version: TraceVersion) -> list[Row]:
    """Return all results rows of a trace: what its runs are worth now, and weight 0 wherever they counted before."""
    kinds = {result.dimension: result.kind for run in version.runs for result in run.results}
    return [_result_row(row, kinds) for row in result_rows(version)]


def _result_row(row: ResultRow, kinds: Mapping[str, str]) -> Row:
    key = row.key
    said = row.result
    return {
        "project": row.project,
        **place_columns(key.place),
        "dimension": key.dimension,
        "run_id": key.run_id,
        "contract": key.contract,
        "revision": row.revision,
        "version": row.version,
        "trace_id": row.trace_id,
        # A retired row does not know its kind; the series it retires has the one that the dimension has now.
        "kind": row.kind or kinds.get(key.dimension, ""),
        "outcome": said.outcome if said else None,
        "value": said.value if said else None,
        "lower": said.lower if said else None,
        "upper": said.upper if said else None,
        "reason": said.reason if said else "",
        "evidence": said.evidence if said else "",
        "authority": said.authority if said else "",
        "inclusion_probability": row.inclusion_probability,
        "weight": row.weight,
        "transcript_hash": row.transcript_hash,
        "first_received_at": instant(row.first_received_ns),
        "series": LIVE,
        "duration_ns": row.spent.duration_ns if row.spent else None,
        "cost_usd": row.spent.cost_usd if row.spent else None,
        "trouble": row.spent.trouble if row.spent else None,
    }


def result_of(row: Row) -> Result:
    """Return what a results row says of its run."""
    return Result(
        dimension=row["dimension"],
        kind=Kind(row["kind"]),
        contract=row["contract"],
        outcome=Outcome(row["outcome"]) if row["outcome"] is not None else None,
        value=row["value"],
        lower=row["lower"],
        upper=row["upper"],
        reason=row["reason"],
        evidence=row["evidence"],
        authority=row["authority"],
    )


def result_key_of(row: Row) -> ResultKey:
    """Return the key of a results row."""
    return ResultKey(run_id=row["run_id"], place=place_of(row), dimension=row["dimension"], contract=row["contract"])
