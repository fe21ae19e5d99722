"""Facts: what travels on the traces topic is stored before it is folded (design section 3)."""

from collections.abc import Sequence
from typing import Protocol

from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span
from pipeline.model.topology import Record
from pipeline.runtime.guard import until_it_works


class FactStore(Protocol):
    """What storing facts needs of the store."""

    async def insert_spans(self, spans: Sequence[Span]) -> None:
        """Store sealed spans durably."""
        ...

    async def insert_judgments(self, judgments: Sequence[Judgment]) -> None:
        """Store judgments durably."""
        ...

    async def insert_feedback(self, feedback: Sequence[Feedback]) -> None:
        """Store feedback durably."""
        ...


async def store_facts(store: FactStore, records: Sequence[Record]) -> None:
    """Store records, each where its kind is; return once all of them are durable, however long the store is away.

    Raises:
        PermanentError: the store will never take one of them.
    """
    spans = [record for record in records if isinstance(record, Span)]
    judgments = [record for record in records if isinstance(record, Judgment)]
    feedback = [record for record in records if isinstance(record, Feedback)]
    if spans:
        await until_it_works("store spans", lambda: store.insert_spans(spans))
    if judgments:
        await until_it_works("store judgments", lambda: store.insert_judgments(judgments))
    if feedback:
        await until_it_works("store feedback", lambda: store.insert_feedback(feedback))
