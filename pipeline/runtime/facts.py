"""Facts: what must be stored before it is folded (promise 1, design section 5)."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span
from pipeline.model.topology import Record
from pipeline.runtime.guard import until_it_works


class FactStore(Protocol):
    """What storing facts needs of the store."""

    async def insert_spans(self, spans: Sequence[Span]) -> None:
        """Store sealed spans durably."""
        ...

    async def insert_log_records(self, records: Sequence[LogRecord]) -> None:
        """Store sealed log records durably."""
        ...

    async def insert_judgments(self, judgments: Sequence[Judgment]) -> None:
        """Store judgments durably."""
        ...

    async def insert_feedback(self, feedback: Sequence[Feedback]) -> None:
        """Store feedback durably."""
        ...

    async def insert_evidence(self, evidence: Sequence[Evidence]) -> None:
        """Store what was read of record sources durably."""
        ...


async def insert_facts(store: FactStore, records: Sequence[Record]) -> None:
    """Store records, each where its kind is; return once all of them are durable.

    Raises:
        TemporaryError: some of them may not be; storing all of them again is safe.
        PermanentError: the store will never take one of them.
    """
    for _, insert in _inserts(store, records):
        await insert()


async def store_facts(store: FactStore, records: Sequence[Record]) -> None:
    """Store records, each where its kind is; return once all of them are durable, however long the store is away.

    Raises:
        PermanentError: the store will never take one of them.
    """
    for what, insert in _inserts(store, records):
        await until_it_works(f"store {what}", insert)


def _inserts(store: FactStore, records: Sequence[Record]) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
    """Yield what is stored, and the call that stores it; feedback last, since it may be about any of the others."""
    spans = [record for record in records if isinstance(record, Span)]
    log_records = [record for record in records if isinstance(record, LogRecord)]
    judgments = [record for record in records if isinstance(record, Judgment)]
    feedback = [record for record in records if isinstance(record, Feedback)]
    evidence = [record for record in records if isinstance(record, Evidence)]
    if spans:
        yield "spans", lambda: store.insert_spans(spans)
    if log_records:
        yield "log records", lambda: store.insert_log_records(log_records)
    if judgments:
        yield "judgments", lambda: store.insert_judgments(judgments)
    if evidence:
        yield "evidence", lambda: store.insert_evidence(evidence)
    if feedback:
        yield "feedback", lambda: store.insert_feedback(feedback)
