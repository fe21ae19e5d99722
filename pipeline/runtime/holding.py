"""Holding: what one node does with the partitions that it was assigned, and how it says what is done."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

import structlog

from collectors.kafka.records import Incoming, Read, decode
from pipeline.errors import PermanentError
from pipeline.model.topology import DEAD_LETTERS, DeadLetter, Publish
from pipeline.runtime.clock import Times
from pipeline.runtime.dead_letters import a_letter, as_it_is
from pipeline.runtime.fence import Fence
from pipeline.runtime.guard import until_it_works
from pipeline.runtime.telemetry import Telemetry

log = structlog.get_logger(__name__)

Acknowledge = Callable[[int, int], None]
"""(partition, offset): everything of the partition up to and with the offset is done, and need never come again."""


class Holding(Protocol):
    """The partitions of one assignment, from their gain to their loss.

    A runtime takes and ticks one at a time each, and may do the one while the other waits for the store.
    """

    async def recover(self) -> None:
        """Read back what is open, before any new record is taken."""
        ...

    async def take(self, incoming: Sequence[Incoming]) -> None:
        """Take records, in the order of their offsets. What is durable may be acknowledged at once or later, in order."""
        ...

    async def tick(self, times: Times) -> None:
        """Do what is due, whether anything came or not."""
        ...

    async def close(self) -> None:
        """Let go, with or without the partitions: nothing may be written any more when this returns."""
        ...


Hold = Callable[[Collection[int], Fence, Acknowledge], Holding]
"""(partitions, fence, acknowledge) → what a node does with them."""


class DeadLetters:
    """Where a record goes that cannot be processed: with its bytes and the reason, counted (promise 7)."""

    def __init__(
        self,
        node: str,
        bury: Callable[[Sequence[DeadLetter]], Awaitable[None]],
        publish: Publish,
        telemetry: Telemetry,
        mask: Callable[[bytes], bytes] = as_it_is,
    ) -> None:
        self._node = node
        self._bury = bury
        self._publish = publish
        self._telemetry = telemetry
        self._mask = mask

    async def read(self, incoming: Incoming) -> Read:
        """Return the records that can be read; of the rest nothing is lost."""
        try:
            found = decode(incoming)
        except PermanentError as error:
            await self.add(incoming, str(error))
            return Read([], "")
        if found.refused:
            await self.add(incoming, found.refused)
        return found

    async def add(self, incoming: Incoming, reason: str) -> None:
        """Keep a record and why it could not be processed."""
        origin = f"{self._node}: {incoming.topic}[{incoming.partition}]@{incoming.offset}"
        project = dict(incoming.headers).get("project", b"").decode(errors="replace")
        letter = a_letter(
            project, origin, reason, incoming.value, incoming.timestamp_ns, headers=incoming.headers, mask=self._mask
        )
        log.error("dead letter", origin=origin, reason=reason)
        await until_it_works("bury", lambda: self._bury([letter]))
        await until_it_works("publish a dead letter", lambda: self._publish(DEAD_LETTERS, [letter]))
        self._telemetry.dead_letter(self._node)
