"""Rows of facts: spans, log records, judgments, feedback, and the contracts that judgments name. Each as it is stored, and back."""

from typing import Any, Final

import msgspec

from pipeline.model import ids
from pipeline.model.contract import Contract
from pipeline.model.evidence import Evidence, Found
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, Judgment, Outcome, content_hash
from pipeline.model.span import TRUNCATED_FIELDS, Event, Link, Span
from sinks.clickhouse.connection import Row
from sinks.clickhouse.rows import count, earliness, instant, ns
from sinks.clickhouse.text import readable, to_json, without_surrogates

_attributes = msgspec.json.Decoder(dict[str, Any]).decode
_events = msgspec.json.Decoder(tuple[Event, ...]).decode
_links = msgspec.json.Decoder(tuple[Link, ...]).decode
_body = msgspec.json.Decoder().decode

SPAN_IDENTITY: Final = ("project", "trace_id", "span_id", "content_hash", "received_at")
"""The content hash covers every other column."""
LOG_RECORD_IDENTITY: Final = (*SPAN_IDENTITY, "position")
"""The same."""


def span_row(span: Span) -> Row:
    """Return a span as it is stored."""
    return {
        "project": span.project,
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "content_hash": span.content_hash,
        "bucket": ids.bucket(span.project, span.trace_id),
        "parent_id": span.parent_id,
        "name": span.name,
        "kind": span.kind,
        "started_at": instant(span.start_ns),
        "ended_at": instant(span.end_ns),
        "received_at": instant(span.received_ns),
        "earliness": earliness(span.received_ns),
        "status_code": span.status_code,
        "status_message": span.status_message,
        "attributes": to_json(span.attributes),
        "events": to_json(span.events) if span.events else "[]",
        "links": to_json(span.links) if span.links else "[]",
        "resource": to_json(span.resource),
        "scope_name": span.scope_name,
        "scope_version": span.scope_version,
        "trace_state": span.trace_state,
        "flags": span.flags,
        "dropped": span.dropped,
    }


def span_of(row: Row) -> Span:
    """Return the span of a row, sealed with the hash it was stored under."""
    return Span(
        project=row["project"],
        trace_id=row["trace_id"],
        span_id=row["span_id"],
        parent_id=row["parent_id"],
        name=row["name"],
        start_ns=ns(row["started_at"]),
        end_ns=ns(row["ended_at"]),
        received_ns=ns(row["received_at"]),
        kind=row["kind"],
        status_code=row["status_code"],
        status_message=row["status_message"],
        attributes=readable(_attributes, row["attributes"], {TRUNCATED_FIELDS: ["attributes"]}),
        events=readable(_events, row["events"], ()),
        links=readable(_links, row["links"], ()),
        resource=readable(_attributes, row["resource"], {TRUNCATED_FIELDS: ["resource"]}),
        scope_name=row["scope_name"],
        scope_version=row["scope_version"],
        trace_state=row["trace_state"],
        flags=row["flags"],
        dropped=row["dropped"],
        content_hash=row["content_hash"],
    )


def log_record_row(record: LogRecord) -> Row:
    """Return a log record as it is stored."""
    return {
        "project": record.project,
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "content_hash": record.content_hash,
        "bucket": ids.bucket(record.project, record.trace_id),
        "event_name": record.event_name,
        "happened_at": instant(record.time_ns),
        "received_at": instant(record.received_ns),
        "earliness": earliness(record.received_ns),
        "position": record.position,
        "severity": record.severity,
        "body": to_json(record.body),
        "attributes": to_json(record.attributes),
        "resource": to_json(record.resource),
        "scope_name": record.scope_name,
        "scope_version": record.scope_version,
        "dropped": record.dropped,
    }


def log_record_of(row: Row) -> LogRecord:
    """Return the log record of a row, sealed with the hash it was stored under."""
    return LogRecord(
        project=row["project"],
        trace_id=row["trace_id"],
        span_id=row["span_id"],
        event_name=row["event_name"],
        time_ns=ns(row["happened_at"]),
        received_ns=ns(row["received_at"]),
        position=row["position"],
        severity=row["severity"],
        body=_body(row["body"]),
        attributes=readable(_attributes, row["attributes"], {TRUNCATED_FIELDS: ["attributes"]}),
        resource=readable(_attributes, row["resource"], {TRUNCATED_FIELDS: ["resource"]}),
        scope_name=row["scope_name"],
        scope_version=row["scope_version"],
        dropped=row["dropped"],
        content_hash=row["content_hash"],
    )


def judgment_row(judgment: Judgment) -> Row:
    """Return a judgment as it is stored, with the hash of what is read back."""
    row = _judgment_row(judgment)
    return {**row, "content_hash": content_hash(judgment_of(_as_read(row)))}


def _as_read(row: Row) -> Row:
    return {name: without_surrogates(value) for name, value in row.items()}


def _judgment_row(judgment: Judgment) -> Row:
    return {
        "project": judgment.project,
        "trace_id": judgment.trace_id,
        "judgment_id": judgment.id,
        "bucket": ids.bucket(judgment.project, judgment.trace_id),
        "run_id": judgment.run_id,
        "run_version": judgment.run_version,
        "transcript_hash": judgment.transcript_hash,
        "contract": judgment.contract,
        "dimension": judgment.dimension,
        "outcome": judgment.outcome,
        "score": judgment.score,
        "unresolved": judgment.unresolved,
        "reason": judgment.reason,
        "quote": judgment.quote,
        "model": judgment.model,
        "votes": judgment.votes,
        "input_tokens": count(judgment.input_tokens),
        "output_tokens": count(judgment.output_tokens),
        "cost_usd": judgment.cost_usd,
        "flags": list(judgment.flags),
        "judged_at": instant(judgment.judged_ns),
        "earliness": earliness(judgment.judged_ns),
    }


def judgment_of(row: Row) -> Judgment:
    """Return the judgment of a row."""
    return Judgment(
        project=row["project"],
        trace_id=row["trace_id"],
        run_id=row["run_id"],
        run_version=row["run_version"],
        transcript_hash=row["transcript_hash"],
        contract=row["contract"],
        dimension=row["dimension"],
        outcome=Outcome(row["outcome"]),
        score=row["score"],
        unresolved=row["unresolved"],
        reason=row["reason"],
        quote=row["quote"],
        model=row["model"],
        votes=row["votes"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cost_usd=row["cost_usd"],
        flags=tuple(row["flags"]),
        judged_ns=ns(row["judged_at"]),
    )


def feedback_row(feedback: Feedback) -> Row:
    """Return feedback as it is stored, with the hash of what is read back."""
    row = _feedback_row(feedback)
    return {**row, "content_hash": content_hash(feedback_of(_as_read(row)))}


def _feedback_row(feedback: Feedback) -> Row:
    return {
        "project": feedback.project,
        "trace_id": feedback.trace_id,
        "feedback_id": feedback.id,
        "bucket": ids.bucket(feedback.project, feedback.trace_id),
        "run_id": feedback.run_id,
        "span_id": feedback.span_id,
        "value": feedback.value,
        "author": feedback.author,
        "comment": feedback.comment,
        "received_at": instant(feedback.received_ns),
        "earliness": earliness(feedback.received_ns),
    }


def feedback_of(row: Row) -> Feedback:
    """Return the feedback of a row."""
    return Feedback(
        project=row["project"],
        trace_id=row["trace_id"],
        id=row["feedback_id"],
        value=row["value"],
        run_id=row["run_id"],
        author=row["author"],
        comment=row["comment"],
        received_ns=ns(row["received_at"]),
        span_id=row["span_id"],
    )


def evidence_row(evidence: Evidence) -> Row:
    """Return evidence as it is stored."""
    return {
        "project": evidence.project,
        "trace_id": evidence.trace_id,
        "evidence_id": evidence.id,
        "bucket": ids.bucket(evidence.project, evidence.trace_id),
        "run_id": evidence.run_id,
        "source": evidence.source,
        "contract": evidence.contract,
        "source_key": evidence.key,
        "calls": evidence.calls,
        "found": evidence.found,
        "body": evidence.body,
        "error": evidence.error,
        "read_at": instant(evidence.read_ns),
        "content_hash": evidence.content_hash,
        "earliness": earliness(evidence.read_ns),
    }


def evidence_of(row: Row) -> Evidence:
    """Return the evidence of a row, sealed with the hash it was stored under."""
    return Evidence(
        project=row["project"],
        trace_id=row["trace_id"],
        run_id=row["run_id"],
        source=row["source"],
        contract=row["contract"],
        key=row["source_key"],
        calls=row["calls"],
        found=Found(row["found"]),
        read_ns=ns(row["read_at"]),
        body=row["body"],
        error=row["error"],
        content_hash=row["content_hash"],
    )


def contract_of(row: Row) -> Contract:
    """Return a contract from its row."""
    return msgspec.json.decode(row["body"], type=Contract)


def contract_row(contract: Contract) -> Row:
    """Return a contract as it is stored, under its hash."""
    return {"contract": contract.hash, "dimension": contract.dimension, "kind": contract.kind, "body": contract.canonical}
