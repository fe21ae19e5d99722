"""Facts in: stored before anything is folded from them (promise 1). Every insert can be repeated."""

from collections.abc import Iterable, Sequence

from pipeline.model import ids
from pipeline.model.contract import Contract
from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span
from sinks.clickhouse.connection import Database
from sinks.clickhouse.fact_rows import SPAN_IDENTITY, contract_row, feedback_row, judgment_row, span_row
from sinks.clickhouse.rows import insert, insert_facts


def insert_spans(database: Database, spans: Sequence[Span]) -> None:
    """Store sealed spans, durably when this returns. Of one (span id, content hash) the least ``received_ns`` stays."""
    insert_facts(database, "spans", [span_row(span) for span in spans], SPAN_IDENTITY)


def insert_judgments(database: Database, judgments: Sequence[Judgment]) -> None:
    """Store judgments. Of two answers to one question the earlier stays."""
    insert_facts(database, "judgments", [judgment_row(judgment) for judgment in judgments])


def insert_feedback(database: Database, feedback: Sequence[Feedback]) -> None:
    """Store feedback. Of one id what was received first stays."""
    insert_facts(database, "feedback", [feedback_row(one) for one in feedback])


def insert_contracts(database: Database, contracts: Iterable[Contract]) -> None:
    """Store what results are made under, so that a hash in a row can be read."""
    insert(database, "contracts", [contract_row(contract) for contract in contracts])


def bury(database: Database, project: str, origin: str, reason: str, body: bytes) -> None:
    """Keep what could not be processed, with its bytes and the reason (promise 7). The same failure again is the same row."""
    name = ids.digest(16, project, origin, reason, body.hex())
    insert(
        database, "dead_letters", [{"project": project, "dead_letter_id": name, "origin": origin, "reason": reason, "body": body}]
    )
