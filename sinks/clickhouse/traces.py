"""Traces back: everything that is stored of some traces, in a fixed number of queries for a batch."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span
from pipeline.model.version import ResultKey, StoredRun, StoredTrace, TraceKey
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.fact_rows import evidence_of, feedback_of, judgment_of, log_record_of, span_of
from sinks.clickhouse.result_rows import result_key_of
from sinks.clickhouse.rows import insert, ns
from sinks.clickhouse.run_rows import stored_run_of

T = TypeVar("T")
BATCH: Final = 1000
"""Traces that one set of queries takes: what a server takes as the text of a parameter is not endless."""

_WRITTEN: Final = """
SELECT project, trace_id FROM traces WHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
UNION DISTINCT
SELECT project, trace_id FROM runs WHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
UNION DISTINCT
SELECT project, trace_id FROM log_records WHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
UNION DISTINCT
SELECT project, trace_id FROM judgments WHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
UNION DISTINCT
SELECT project, trace_id FROM feedback WHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
UNION DISTINCT
SELECT project, trace_id FROM record_reads WHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
"""
# PREWHERE: a condition over the key alone, so all rows of a key meet it or none does. With FINAL the engine would apply it only after
# it has merged all columns of whole granules, which is four times slower.
_SPANS: Final = """
SELECT project, trace_id, span_id, parent_id, name, started_at, ended_at, received_at, kind, status_code, status_message, attributes, events,
    links, resource, scope_name, scope_version, trace_state, flags, dropped, content_hash
FROM spans FINAL
PREWHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
ORDER BY project, trace_id, span_id, content_hash
"""
_LOG_RECORDS: Final = """
SELECT project, trace_id, span_id, event_name, happened_at, received_at, position, severity, body, attributes, resource, scope_name,
    scope_version, dropped, content_hash
FROM log_records FINAL
PREWHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
ORDER BY project, trace_id, span_id, content_hash
"""
_JUDGMENTS: Final = """
SELECT project, trace_id, run_id, run_version, transcript_hash, contract, dimension, outcome, score, unresolved, reason, quote, model, votes,
    input_tokens, output_tokens, cost_usd, flags, judged_at
FROM judgments FINAL
PREWHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
ORDER BY project, trace_id, judgment_id
"""
_FEEDBACK: Final = """
SELECT project, trace_id, feedback_id, run_id, span_id, value, author, comment, received_at
FROM feedback FINAL
PREWHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
ORDER BY project, trace_id, feedback_id
"""
_EVIDENCE: Final = """
SELECT project, trace_id, run_id, source, contract, source_key, calls, found, read_at, body, error, content_hash
FROM record_reads FINAL
PREWHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
ORDER BY project, trace_id, evidence_id
"""
_TRACES: Final = """
SELECT project, trace_id, facts, receipts, version, first_received_at
FROM traces FINAL
PREWHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
"""
_REMEMBERED: Final = """
SELECT * EXCEPT (inserted_at)
FROM traces FINAL
PREWHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
"""
_RUNS: Final = """
SELECT project, trace_id, run_id, version, state, transcript_hash, requested_at, deadline_at, class
FROM runs FINAL
PREWHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
ORDER BY project, trace_id, run_id
"""
_PLACES: Final = """
SELECT DISTINCT project, run_id, cohort_id, minute
FROM places
WHERE (project, trace_id) IN {keys:Array(Tuple(String, String))}
"""
# Every version of a row has its key, so no FINAL. The places are the prefix of the primary key, and a run id holds its project and trace.
_RESULT_KEYS: Final = """
SELECT DISTINCT project, trace_id, run_id, agent, agent_version, environment, cohort_id, minute, dimension, contract
FROM results
WHERE (project, cohort_id, minute) IN {places:Array(Tuple(String, String, DateTime64(0, 'UTC')))}
    AND run_id IN {runs:Array(String)}
"""


def written(database: Database, keys: Sequence[TraceKey]) -> set[TraceKey]:
    """Return those of the traces of which anything but spans is stored: folds, judgments, feedback and log records that came first."""
    found: set[TraceKey] = set()
    for some in _batches(keys):
        found.update((row["project"], row["trace_id"]) for row in database.query(_WRITTEN, {"keys": some}))
    return found


def load(database: Database, keys: Sequence[TraceKey]) -> dict[TraceKey, StoredTrace]:
    """Return all that is stored of each of these traces; of one that nobody heard of, nothing. Nine queries for up to 1000 traces."""
    loaded: dict[TraceKey, StoredTrace] = {}
    for some in _batches(keys):
        loaded.update(_load(database, some))
    return loaded


def remember(database: Database, keys: Sequence[TraceKey]) -> None:
    """Store the rows of these traces once more, as they are: they expire by when they were stored."""
    for some in _batches(keys):
        insert(database, "traces", database.query(_REMEMBERED, {"keys": some}))


def _batches(keys: Sequence[TraceKey]) -> Iterable[list[TraceKey]]:
    unique = sorted(set(keys))
    return (unique[start : start + BATCH] for start in range(0, len(unique), BATCH))


def _load(database: Database, keys: list[TraceKey]) -> Iterable[tuple[TraceKey, StoredTrace]]:
    parameters = {"keys": keys}
    spans: dict[TraceKey, list[Span]] = _by_trace(database.query(_SPANS, parameters), span_of)
    log_records: dict[TraceKey, list[LogRecord]] = _by_trace(database.query(_LOG_RECORDS, parameters), log_record_of)
    judgments: dict[TraceKey, list[Judgment]] = _by_trace(database.query(_JUDGMENTS, parameters), judgment_of)
    feedback: dict[TraceKey, list[Feedback]] = _by_trace(database.query(_FEEDBACK, parameters), feedback_of)
    evidence: dict[TraceKey, list[Evidence]] = _by_trace(database.query(_EVIDENCE, parameters), evidence_of)
    runs: dict[TraceKey, list[StoredRun]] = _by_trace(database.query(_RUNS, parameters), stored_run_of)
    graded = {(row["project"], row["trace_id"]): row for row in database.query(_TRACES, parameters)}
    result_keys = _result_keys(database, keys)
    for key in keys:
        row = graded.get(key)
        yield (
            key,
            StoredTrace(
                project=key[0],
                trace_id=key[1],
                spans=tuple(spans.get(key, ())),
                judgments=tuple(judgments.get(key, ())),
                feedback=tuple(feedback.get(key, ())),
                log_records=tuple(log_records.get(key, ())),
                evidence=tuple(evidence.get(key, ())),
                first_received_ns=ns(row["first_received_at"]) if row else 0,
                graded_facts=row["facts"] if row else 0,
                graded_receipts=row["receipts"] if row else 0,
                version=row["version"] if row else 0,
                runs=tuple(runs.get(key, ())),
                result_keys=frozenset(result_keys.get(key, ())),
            ),
        )


def _result_keys(database: Database, keys: list[TraceKey]) -> dict[TraceKey, list[ResultKey]]:
    rows = database.query(_PLACES, {"keys": keys})
    if not rows:
        return {}
    places = sorted({(row["project"], row["cohort_id"], row["minute"]) for row in rows})
    runs = sorted({row["run_id"] for row in rows})
    return _by_trace(database.query(_RESULT_KEYS, {"places": places, "runs": runs}), result_key_of)


def _by_trace(rows: Iterable[Row], read: Callable[[Row], T]) -> dict[TraceKey, list[T]]:
    found: defaultdict[TraceKey, list[T]] = defaultdict(list)
    for row in rows:
        found[row["project"], row["trace_id"]].append(read(row))
    return found
