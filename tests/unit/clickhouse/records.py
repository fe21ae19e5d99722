"""What the store's tests share: an engine on a folder, one that keeps a record of its calls, and versions of traces."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from builders import T0

from pipeline.config.store import StoreSettings
from pipeline.model import ids
from pipeline.model.result import Kind, Outcome, Result, Verdict
from pipeline.model.run import CloseReason, Cohort, Ended, Place, Run, RunClass
from pipeline.model.step import Step, ToolCall, ToolDefinition, Usage
from pipeline.model.time import MINUTE, SECOND, minute_of
from pipeline.model.version import Retired, Retraction, RunVersion, Sampling, TraceVersion, Transcript
from pipeline.stages.turn import keys
from sinks.clickhouse.connection import ClickHouse, Database, Row, connect
from sinks.clickhouse.migrate import migrate

M0 = minute_of(T0)
COHORT = Cohort("refunds", "1.4.0", "production")
PLACE = Place(COHORT, M0)
SAMPLED = Sampling(plan="rate:1:1", sampled=True, inclusion_probability=1.0)
UNSAMPLED = Sampling(plan="rate:0.25:1", sampled=False, inclusion_probability=0.25)


@contextmanager
def opened(settings: StoreSettings) -> Iterator[ClickHouse]:
    """A connection, its tables made. One process can hold one folder at a time, and open another afterwards."""
    database = connect(settings, os.environ)
    try:
        migrate(database)
        yield database
    finally:
        database.close()


class Recorder:
    """A database that keeps a record of what it was asked."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.inserts: list[tuple[str, int]] = []
        """(table, rows) of each insert."""
        self.queries: list[str] = []

    def insert(self, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        self.inserts.append((table, len(data[0])))
        self._inner.insert(table, columns, data, token)

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        self.queries.append(sql)
        return self._inner.query(sql, parameters)

    def command(self, sql: str) -> None:
        self._inner.command(sql)

    def close(self) -> None:
        self._inner.close()


def stored(database: Database, table: str, project: str) -> list[Row]:
    """All rows of a project as they lie in the table, superseded ones too."""
    return database.query(
        "SELECT * FROM {table:Identifier} WHERE project = {project:String}", {"table": table, "project": project}
    )


def a_result(
    dimension: str = "answer_present", kind: Kind = Kind.CODE, outcome: Outcome | None = Outcome.PASS, **fields: Any
) -> Result:
    return Result(dimension=dimension, kind=kind, contract=fields.pop("contract", "c1"), outcome=outcome, **fields)


def a_run(project: str, trace_id: str = "ab" * 16, head: str = "00000000000000a1", **fields: Any) -> Run:
    """A run with something in every field."""
    values: dict[str, Any] = {
        "place": PLACE,
        "start_ns": T0,
        "end_ns": T0 + 3 * SECOND + 7,
        "first_received_ns": T0 + 4 * SECOND + 1,
        "steps": (
            Step(span_id=head, parent_id="", name="invoke_agent", start_ns=T0, end_ns=T0 + SECOND, received_ns=T0 + SECOND),
        ),
        "agents": ("researcher",),
        "conversation_id": "conversation-7",
        "request": "Refund order 1042, please.",
        "answer": "Done.",
        "tool_calls": (ToolCall("refund", "call-1", {"order": 1042, "amount": 12.5}, "", "ok", None),),
        "tools": (ToolDefinition("refund", {"type": "object"}), ToolDefinition("search")),
        "models": ("model-a",),
        "model_calls": 2,
        "usage": Usage(input=100, output=20),
        "ended": Ended.ANSWER,
        "dialects": ("genai",),
        "flags": (),
    }
    return Run(
        project=project, trace_id=trace_id, run_id=ids.run_id(project, trace_id, head), head_span_id=head, **(values | fields)
    )


def a_run_version(run: Run, version: int = 4, *results: Result, **fields: Any) -> RunVersion:
    return RunVersion(
        run=run,
        version=version,
        run_class=fields.pop("run_class", RunClass.JUDGED),
        class_reason=fields.pop("class_reason", ""),
        sampling=fields.pop("sampling", SAMPLED),
        results=results or (a_result(),),
        verdict=fields.pop("verdict", Verdict(Outcome.PASS, "")),
        transcript=fields.pop("transcript", Transcript(body=f"transcript of {run.run_id}", hash=f"hash-{run.run_id}")),
        **fields,
    )


def a_version(*runs: RunVersion, **fields: Any) -> TraceVersion:
    """A closed trace with these runs."""
    project = fields.pop("project", runs[0].run.project if runs else "default")
    trace_id = fields.pop("trace_id", runs[0].run.trace_id if runs else "ab" * 16)
    facts = fields.pop("facts", 1)
    return TraceVersion(
        project=project,
        trace_id=trace_id,
        facts=facts,
        version=fields.pop("version", facts * 4),
        runs=runs,
        close_reason=fields.pop("close_reason", CloseReason.HEAD_ENDED),
        closed_ns=fields.pop("closed_ns", T0 + MINUTE),
        **fields,
    )


def retract(run: Run, heir: Run, version: int) -> Retraction:
    return Retraction(run_id=run.run_id, merged_into=heir.run_id, version=version)


def retire(version: RunVersion, at: int) -> tuple[Retired, ...]:
    """Everything that a run version wrote, taken out of everything at version ``at``."""
    return tuple(Retired(key, at) for key in keys(version))
