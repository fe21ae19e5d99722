"""Rows of what is folded from a trace: runs, results, places, transcripts, and the trace itself."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from pipeline.model import ids
from pipeline.model.run import Cohort, Part, Place
from pipeline.model.spending import Cost, HandOff
from pipeline.model.step import ToolCall
from pipeline.model.version import Retraction, RunVersion, StoredRun, TraceVersion
from sinks.clickhouse.connection import Row
from sinks.clickhouse.rows import count_or_none, dollars, instant, instant_or_none, minute, minute_ns, ns_or_zero
from sinks.clickhouse.text import readable, to_json

LIVE: Final = "live"
"""State of a run that counts, and name of the series that is read unless another is asked for."""
RETRACTED: Final = "retracted"
GRADED: Final = "graded"
NOT_AN_AGENT_RUN: Final = "not_an_agent_run"
CONVERTED: Final = "converted"
"""The flag of runs that were rendered from transcripts instead of traced."""

_tool_calls = msgspec.json.Decoder(tuple[ToolCall, ...]).decode
BEFORE_PRICES: Final = "price_unknown: graded before there were prices"
_hand_offs = msgspec.json.Decoder(tuple[HandOff, ...]).decode
_parts = msgspec.json.Decoder(tuple[Part, ...]).decode


@lru_cache(maxsize=4096)
def cohort_columns(cohort: Cohort) -> Mapping[str, Any]:
    """Return the columns that name a cohort; its id is one of them and belongs to the keys."""
    return {
        "cohort_id": cohort.id,
        "agent": cohort.agent,
        "agent_version": cohort.version,
        "environment": cohort.environment,
    }


def cohort_of(row: Row) -> Cohort:
    """Return the cohort of a row."""
    return Cohort(agent=row["agent"], version=row["agent_version"], environment=row["environment"])


@lru_cache(maxsize=4096)  # every result has a place, and hashing its cohort would cost more than the rest of the row
def place_columns(place: Place) -> Mapping[str, Any]:
    """Return the columns that name a place."""
    return {**cohort_columns(place.cohort), "minute": minute(place.minute_ns)}


def place_of(row: Row) -> Place:
    """Return the place of a row."""
    return Place(cohort=cohort_of(row), minute_ns=minute_ns(row["minute"]))


def run_rows(version: TraceVersion) -> list[Row]:
    """Return all run rows of a trace: the live ones and the retracted ones."""
    return [
        *(_live_row(run, version) for run in version.runs),
        *(_retracted_row(retraction, version) for retraction in version.retractions),
    ]


def _live_row(version: RunVersion, trace: TraceVersion) -> Row:
    run = version.run
    transcript = version.transcript
    return {
        "project": run.project,
        "trace_id": run.trace_id,
        "run_id": run.run_id,
        "version": version.version,
        "bucket": ids.bucket(trace.project, trace.trace_id),
        "state": LIVE,
        "merged_into": "",
        "head_span_id": run.head_span_id,
        **place_columns(run.place),
        "started_at": instant(run.start_ns),
        "ended_at": instant(run.end_ns),
        "first_received_at": instant(run.first_received_ns),
        "class": version.run_class,
        "class_reason": version.class_reason,
        "verdict": version.verdict.outcome,
        "verdict_reason": version.verdict.reason,
        "composite_low": version.verdict.composite_low,
        "composite_high": version.verdict.composite_high,
        "sampling_plan": version.sampling.plan,
        "sampled": version.sampling.sampled,
        "inclusion_probability": version.sampling.inclusion_probability,
        "transcript_hash": transcript.hash if transcript else "",
        "requested_at": instant_or_none(version.requested_ns),
        "deadline_at": instant_or_none(version.deadline_ns),
        **_said(version),
        "failing": bool(version.failing),
        "failing_reasons": list(version.failing),
        "feedback": list(version.feedback),
        "revision": trace.revision,
    }


def _said(version: RunVersion) -> Row:
    """What the run did, as people read it and golden cases quote it."""
    run = version.run
    return {
        "completed": run.completed,
        "converted": CONVERTED in run.flags,
        "ended": run.ended,
        "error": run.error,
        "conversation_id": run.conversation_id,
        "request": run.request,
        "answer": run.answer,
        "tool_calls": to_json(run.tool_calls),
        "tools": [tool.name for tool in run.tools],
        "steps": len(run.steps),
        "tool_call_count": len(run.tool_calls),
        "model_calls": run.model_calls,
        "input_tokens": count_or_none(run.usage.input),
        "output_tokens": count_or_none(run.usage.output),
        "cost_usd": run.usage.cost_usd,
        "cost": version.cost.usd,
        "cost_unknown": version.cost.unknown,
        "cost_prices": version.cost.prices,
        "task_kind": run.task_kind,
        "retries": run.retries,
        "hand_offs": to_json(run.hand_offs),
        "models": list(run.models),
        "agents": list(run.agents),
        "parts": to_json(run.parts),
        "dialects": list(run.dialects),
        "flags": list(run.flags),
    }


def _retracted_row(retraction: Retraction, trace: TraceVersion) -> Row:
    """A row that takes a run out of everything. It keeps nothing of what the run was: its former versions do."""
    return {
        **_NOTHING,
        "project": trace.project,
        "trace_id": trace.trace_id,
        "run_id": retraction.run_id,
        "version": retraction.version,
        "bucket": ids.bucket(trace.project, trace.trace_id),
        "state": RETRACTED,
        "merged_into": retraction.merged_into,
        "revision": trace.revision,
    }


_NOTHING: Final[Row] = {
    "head_span_id": "",
    **place_columns(Place(Cohort("", "", ""), 0)),
    "cohort_id": "",
    "started_at": 0,
    "ended_at": 0,
    "first_received_at": 0,
    "class": "",
    "class_reason": "",
    "verdict": None,
    "verdict_reason": "",
    "composite_low": None,
    "composite_high": None,
    "sampling_plan": "",
    "sampled": False,
    "inclusion_probability": 0.0,
    "transcript_hash": "",
    "requested_at": None,
    "deadline_at": None,
    "completed": False,
    "converted": False,
    "ended": "",
    "error": None,
    "conversation_id": "",
    "request": "",
    "answer": None,
    "tool_calls": "[]",
    "tools": [],
    "steps": 0,
    "tool_call_count": 0,
    "model_calls": 0,
    "input_tokens": None,
    "output_tokens": None,
    "cost_usd": None,
    "cost": None,
    "cost_unknown": "",
    "cost_prices": "",
    "task_kind": "",
    "retries": 0,
    "hand_offs": "[]",
    "models": [],
    "agents": [],
    "parts": "[]",
    "dialects": [],
    "flags": [],
    "failing": False,
    "failing_reasons": [],
    "feedback": [],
}


def tool_calls_of(row: Row) -> tuple[ToolCall, ...]:
    """Return the tool calls of a row of ``runs``."""
    return readable(_tool_calls, row["tool_calls"], ())


def parts_of(row: Row) -> tuple[Part, ...]:
    """Return what each agent of a row of ``runs`` did and spent; nothing in rows from before it was kept."""
    return readable(_parts, row["parts"], ())


def hand_offs_of(row: Row) -> tuple[HandOff, ...]:
    """Return the hand-offs of a row of ``runs``; none in rows from before they were kept."""
    return readable(_hand_offs, row["hand_offs"], ())


def cost_of(row: Row) -> Cost:
    """Return what the run of a row of ``runs`` cost; in rows from before that was made out it is not known."""
    return Cost(dollars(row["cost"]), row["cost_unknown"] or ("" if row["cost_prices"] else BEFORE_PRICES), row["cost_prices"])


def stored_run_of(row: Row) -> StoredRun:
    """Return what a row of ``runs`` tells the owner of its trace."""
    return StoredRun(
        run_id=row["run_id"],
        version=row["version"],
        live=row["state"] == LIVE,
        transcript_hash=row["transcript_hash"],
        requested_ns=ns_or_zero(row["requested_at"]),
        deadline_ns=ns_or_zero(row["deadline_at"]),
        run_class=row["class"],
    )


def place_rows(version: TraceVersion) -> list[Row]:
    """Return where the runs of a trace count now; rows of ``places`` are only ever added."""
    return [
        {"project": version.project, "trace_id": version.trace_id, "run_id": run.run.run_id, **place_columns(run.run.place)}
        for run in version.runs
    ]


def transcript_rows(versions: Iterable[TraceVersion]) -> list[Row]:
    """Return the transcripts of the runs, each once; the hash names the text."""
    held = {
        (run.run.project, run.transcript.hash): run.transcript.body
        for version in versions
        for run in version.runs
        if run.transcript is not None
    }
    return [{"project": project, "transcript_hash": name, "body": body} for (project, name), body in held.items()]


def trace_row(version: TraceVersion) -> Row | None:
    """Return the row that says up to which fact a trace is graded; None while some of its runs are open."""
    if version.close_reason is None:
        return None
    return {
        "project": version.project,
        "trace_id": version.trace_id,
        "bucket": ids.bucket(version.project, version.trace_id),
        "state": NOT_AN_AGENT_RUN if version.not_an_agent_run else GRADED,
        "version": version.version,
        "facts": version.facts,
        "close_reason": version.close_reason,
        "closed_at": instant(version.closed_ns),
        "first_received_at": instant(version.first_received_ns),
        "receipts": version.receipts,
    }
