"""Transport: Faust's own, mended where it commits what nobody has done, ends a worker for nothing, or lets two threads meet."""

from collections.abc import Mapping
from typing import Any, Final, cast

import faust
from faust.transport.drivers import aiokafka
from faust.types import TP

from collectors.kafka.records import Incoming

MILLISECOND_NS: Final = 1_000_000


class InOrder(aiokafka.Consumer):
    """Commits what was acknowledged, and nothing else: here that is in order and without gaps (docs/adr/0005, rule 9).

    Faust takes records that it has not seen for records that a compaction removed, and commits over them as soon as what lies around
    them is acknowledged. When a partition is read again from an earlier offset, what is still on its way there makes such a gap.
    """

    def _new_consumer_thread(self) -> "CalmThread":
        return CalmThread(self, loop=self.loop, beacon=self.beacon)

    async def _seek(self, partition: TP, offset: int) -> None:
        """In the thread that fetches: the client belongs to it, and is broken by two at once."""
        await self._thread.call_thread(cast("Any", self._thread.seek), partition, offset)

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Records that are missing are fetched again."""

    def _new_offset(self, tp: TP) -> int | None:
        """Everything up to the last one that was acknowledged is done, also over records that were deleted before anybody read them."""
        acknowledged: list[int] = self._acked[tp]
        if not acknowledged:
            return None
        newest = max(acknowledged)
        acknowledged.clear()
        self._acked_index[tp].clear()
        return newest + 1

    def _should_commit(self, tp: TP, offset: int) -> bool:  # noqa: ARG002
        """Also where Faust believes it committed: it does not look at how that went."""
        return True

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        done = await super()._commit(offsets)
        if not done:
            for tp in offsets.keys() & self.assignment():
                self._acked[tp].append(offsets[tp] - 1)
        return done


class CalmThread(aiokafka.AIOKafkaConsumerThread):
    """A commit that fails is tried again by the next one, or its records come again; that is no reason to end a worker."""

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        owned = {aiokafka.ensure_aiokafka_TP(tp): offset for tp, offset in offsets.items() if tp in self.assignment()}
        if not owned:  # they went elsewhere between the wish and now
            return False
        try:
            await self._ensure_consumer().commit(owned)
        except aiokafka.KafkaError as error:  # type: ignore[attr-defined]  # the driver's own import of its client's errors
            self.log.warning("offsets are not committed yet: %r", error)
            return False
        return True


class Transport(aiokafka.Transport):
    """With that consumer."""

    Consumer = InOrder


def consume_in_order(app: faust.App) -> None:
    """Have an app use this transport; before it is started."""
    settings: Any = app.conf
    app.transport = Transport(settings.broker_consumer, app)


def incoming(message: faust.types.tuples.Message) -> Incoming:
    """Return a record as the stages read it."""
    headers = message.headers or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return Incoming(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp_ns=round(message.timestamp * 1000) * MILLISECOND_NS,
        value=message.value or b"",
        headers=tuple((str(name), bytes(value or b"")) for name, value in pairs),
    )
