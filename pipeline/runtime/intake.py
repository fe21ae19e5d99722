"""Intake: accepted spans, log records and feedback into the store, many requests an insert, and then to their owner.

A request is answered when the insert that holds its records is durable (promise 1). What is stored and not yet folded holds the
owner's clock back, so that nothing closes half-read (design section 4).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from collectors.dialects.annotations import carried
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback
from pipeline.model.span import Span
from pipeline.runtime.clock import Clock

INSERT: Final = 4000
"""Records that one insert takes at most, unless one request alone has more."""
BACKLOG: Final = 50_000
"""Records stored or on their way and not yet folded, above which senders are asked to wait."""


Accepted: TypeAlias = Span | LogRecord | Feedback
"""What senders hand in; each says when it was received."""
Request: TypeAlias = tuple[Sequence[Accepted], asyncio.Future[None]]
"""Records, and what is answered when they are stored."""


class Intake:
    """Where the receiver stores what it accepted, in the embedded runtime."""

    def __init__(
        self,
        insert: Callable[[Sequence[Accepted]], Awaitable[None]],
        hand_over: Callable[[Sequence[Accepted]], Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._insert = insert
        self._hand_over = hand_over
        self._clock = clock
        self._waiting: deque[Request] = deque()
        self._alone = 0
        """Requests at the front of the queue that are to be inserted one by one."""
        self._arrived = asyncio.Event()
        self._unfolded: deque[tuple[int, int]] = deque()
        """(first receipt, records) of batches in the order in which they will be folded."""
        self._records = 0

    async def store(self, records: Sequence[Accepted]) -> None:
        """Return once the records are durably stored, and what carriers among them say of other traces.

        Raises:
            TemporaryError: the backlog is full, or the store cannot take them now; nothing of the request may be believed stored.
            PermanentError: the store will never take them.
        """
        if not records:
            return
        if found := carried(records):
            records = [*records, *found]
        if self._records >= BACKLOG:
            raise TemporaryError("the backlog is full", retry_after=1.0)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._records += len(records)
        self._waiting.append((records, done))
        self._arrived.set()
        await asyncio.shield(done)

    @property
    def busy(self) -> bool:
        """Whether any record waits for its insert or for its owner."""
        return self._records > 0

    @property
    def waiting(self) -> int:
        """Records that wait for their insert or for their owner."""
        return self._records

    def now(self) -> int:
        """Return the owner's time: the clock's, or that of the first record not yet folded."""
        first = min((record.received_ns for records, _ in self._waiting for record in records[:1]), default=None)
        held = [first] if first is not None else []
        return min([self._clock.now(), *held, *(receipt for receipt, _ in self._unfolded)])

    def folded(self, records: int) -> None:
        """Take note that the owner has folded the oldest ``records`` records."""
        self._records -= records
        while records:
            receipt, count = self._unfolded.popleft()
            if count > records:
                self._unfolded.appendleft((receipt, count - records))
                return
            records -= count

    async def run(self) -> None:
        """Insert what arrives, for ever; cancelled to stop."""
        try:
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                while self._waiting:
                    await self._insert_some()
        finally:
            for records, done in self._waiting:
                self._records -= len(records)
                _answer([done], asyncio.CancelledError())
            self._waiting.clear()

    async def _insert_some(self) -> None:
        taken = self._take()
        records = [record for some, _ in taken for record in some]
        answered = [done for _, done in taken]
        self._unfolded.append((min(record.received_ns for record in records), len(records)))
        try:
            await self._insert(records)
        except BaseException as error:
            self._unfolded.pop()  # the last one still: it is this task alone that appends, and nobody folds what was not handed over
            if isinstance(error, PermanentError) and len(taken) > 1:
                self._waiting.extendleft(reversed(taken))
                self._alone = len(taken)  # one of them is poison, and must not cost the others their insert
                return
            self._records -= len(records)
            _answer(answered, error)
            if not isinstance(error, Exception):
                raise
            return
        _answer(answered, None)
        await self._hand_over(records)

    def _take(self) -> list[Request]:
        """Take the requests of the next insert."""
        taken = [self._waiting.popleft()]
        if self._alone:
            self._alone -= 1
            return taken
        records = len(taken[0][0])
        while self._waiting and (records := records + len(self._waiting[0][0])) <= INSERT:
            taken.append(self._waiting.popleft())
        return taken


def _answer(waiting: Sequence[asyncio.Future[None]], error: BaseException | None) -> None:
    for done in waiting:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        elif isinstance(error, (TemporaryError, PermanentError)):
            done.set_exception(error)
        else:
            done.set_exception(TemporaryError(f"the store cannot take this now: {type(error).__name__}", retry_after=1.0))
