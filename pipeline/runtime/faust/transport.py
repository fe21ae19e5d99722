"""Transport: which offsets Faust commits. What is acknowledged here is acknowledged in order and without gaps (docs/adr/0005, rule 9)."""

from typing import Any

import faust
from faust.transport.drivers import aiokafka
from faust.types import TP


class InOrder(aiokafka.Consumer):
    """Commits what was acknowledged, and nothing else.

    Faust takes records that it has not seen for records that a compaction removed, and commits over them as soon as what lies around
    them is acknowledged. When a partition is read again from an earlier offset, what is still on its way there makes such a gap.
    """

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


class Transport(aiokafka.Transport):
    """Faust's own, with that consumer."""

    Consumer = InOrder


def use(app: faust.App) -> None:
    """Have an app consume in order; before it is started."""
    settings: Any = app.conf
    app.transport = Transport(settings.broker_consumer, app)
