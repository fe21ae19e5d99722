"""Facts in: stored before anything is folded from them (promise 1). Every insert can be repeated."""

from collections.abc import Iterable, Sequence

from pipeline.model.contract import Contract
from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span
from sinks.clickhouse.connection import Database
from sinks.clickhouse.fact_rows import (
    LOG_RECORD_IDENTITY,
    SPAN_IDENTITY,
    contract_of,
    contract_row,
    evidence_row,
    feedback_row,
    judgment_row,
    log_record_row,
    span_row,
)
from sinks.clickhouse.rows import insert, insert_facts


def insert_spans(database: Database, spans: Sequence[Span]) -> None:
    """Store sealed spans, durably when this returns. Of one (span id, content hash) the least ``received_ns`` stays."""
    insert_facts(database, "spans", [span_row(span) for span in spans], SPAN_IDENTITY)


def insert_log_records(database: Database, records: Sequence[LogRecord]) -> None:
    """Store sealed log records, durably when this returns. Of one (span id, content hash) the least ``received_ns`` stays."""
    insert_facts(database, "log_records", [log_record_row(record) for record in records], LOG_RECORD_IDENTITY)


def insert_judgments(database: Database, judgments: Sequence[Judgment]) -> None:
    """Store judgments. Of two answers to one question the earlier stays."""
    insert_facts(database, "judgments", [judgment_row(judgment) for judgment in judgments])


def insert_feedback(database: Database, feedback: Sequence[Feedback]) -> None:
    """Store feedback. Of one id what was received first stays."""
    insert_facts(database, "feedback", [feedback_row(one) for one in feedback])


def insert_evidence(database: Database, evidence: Sequence[Evidence]) -> None:
    """Store what was read of record sources. Of two answers to one question the earlier stays."""
    insert_facts(database, "record_reads", [evidence_row(one) for one in evidence])


def insert_contracts(database: Database, contracts: Iterable[Contract]) -> None:
    """Store what results are made under, so that a hash in a row can be read."""
    insert(database, "contracts", [contract_row(contract) for contract in contracts])


def contracts(database: Database) -> dict[str, Contract]:
    """Return every contract that results were ever made under, by its hash."""
    return {row["contract"]: contract_of(row) for row in database.query("SELECT contract, body FROM contracts FINAL")}
