"""Desk: feedback into facts of their traces, stored before the client hears that they are."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from collectors.feedback.said import Said, fact, read
from collectors.otlp.status import NotFoundError
from collectors.redaction.redactor import Redactor
from collectors.redaction.walk import Counts
from pipeline.errors import PermanentError
from pipeline.model.result import Feedback
from pipeline.model.run import RunAddress


class Runs(Protocol):
    """Where runs are looked up. Both raise TemporaryError where they cannot be now."""

    async def run(self, project: str, run_id: str) -> RunAddress | None:
        """Return the run of this id, None where none is known."""
        ...

    async def last_of(self, project: str, conversation_id: str) -> RunAddress | None:
        """Return the run of the conversation that ended last, None where none is known."""
        ...


class FeedbackStore(Protocol):
    """Where feedback goes: the database, or a broker in front of it."""

    async def __call__(self, feedback: Sequence[Feedback], /) -> None:
        """Return when all of it is durable, and not before.

        Raises:
            TemporaryError: some of it may not be; sending all of it again is safe.
            PermanentError: it never will be.
        """
        ...


def _count_nothing(count: int, redacted: Counts) -> None:
    """Take the place of counters where nobody counts."""


class FeedbackDesk:
    """Takes feedback. By trace nothing is looked up, so it may come before the first span."""

    def __init__(
        self,
        store: FeedbackStore,
        runs: Runs | None,
        clock: Callable[[], int],
        redactor: Redactor | None = None,
        on_received: Callable[[int, Counts], None] = _count_nothing,
    ) -> None:
        """Take where runs are looked up, None where there is no such place, and the ``clock`` in ns.

        Texts are redacted before they are stored, where there is a ``redactor``; ``on_received`` hears how many were stored, and what was
        replaced in them.
        """
        self._store = store
        self._runs = runs
        self._clock = clock
        self._redactor = redactor
        self._on_received = on_received

    async def take(self, body: bytes, project: str, key: str = "") -> list[Feedback]:
        """Store what a request says, all of it or nothing, and return it. ``key`` is the request's: its parts are numbered under it.

        Raises:
            NotFoundError: a run or a conversation is not known.
            PermanentError: the body says nothing that can be understood, or the store will never take it.
            TemporaryError: it may not be stored; sending it again is safe.
        """
        received_ns = self._clock()
        found: list[Feedback] = []
        counts: Counts = Counter()
        for index, said in enumerate(read(body)):
            about = await self._about(said, project)
            named = said.id or (f"{key}#{index}" if key else "")
            one = fact(said, project, about.trace_id, about.run_id, named, received_ns)
            found.append(self._redacted(one, counts))
        if found:
            await self._store(found)
        self._on_received(len(found), counts)
        return found

    def _redacted(self, feedback: Feedback, counts: Counts) -> Feedback:
        """The id is of what the client said, so that saying it again is the same whatever is looked for by then."""
        if self._redactor is None:
            return feedback
        author, comment = (self._redactor.text(text, counts) for text in (feedback.author, feedback.comment))
        return msgspec.structs.replace(feedback, author=author, comment=comment)

    async def _about(self, said: Said, project: str) -> RunAddress:
        if said.trace_id:
            return RunAddress(said.trace_id, said.run_id or "")
        if self._runs is None:
            raise PermanentError("there is no store here to look a run or a conversation up in: send its trace_id")
        if said.run_id:
            found, what = await self._runs.run(project, said.run_id), f"run {said.run_id}"
        else:
            conversation = said.conversation_id or ""
            found, what = await self._runs.last_of(project, conversation), f"run of the conversation {conversation[:80]!r}"
        if found is None:
            raise NotFoundError(
                f"no {what} is known; a run is known some seconds after it has ended: try again then, or send its trace_id"
            )
        return found
