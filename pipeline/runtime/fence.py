"""Fence: what is done on behalf of an assignment stops when its partitions are taken away (reliability I-rules; feasibility 9).

Every call of the store and the broker goes through it, so that no loop has to remember to ask, and a retry ends too.
"""

from collections.abc import Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from pipeline.model.topology import Publish, Topic

S = TypeVar("S")


class LostOwnershipError(Exception):
    """Nobody's fault: the partitions belong to another process now, which reads back what is stored."""


class Fence:
    """Stands while the assignment does."""

    def __init__(self) -> None:
        self.stands = True

    def fall(self) -> None:
        """Take the assignment away."""
        self.stands = False

    def check(self) -> None:
        """Raise LostOwnershipError once the assignment is gone."""
        if not self.stands:
            raise LostOwnershipError

    def around(self, store: S) -> S:
        """Return the store, all of whose calls raise LostOwnershipError once the assignment is gone, also while they are under way."""
        return cast("S", _Fenced(store, self))

    def around_publish(self, publish: Publish) -> Publish:
        """Return the same for publishing."""

        async def fenced(topic: Topic, records: Sequence[Any]) -> None:
            self.check()
            await publish(topic, records)
            self.check()

        return fenced


class _Fenced:
    def __init__(self, store: Any, fence: Fence) -> None:
        self._store = store
        self._fence = fence

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        @wraps(call)
        async def fenced(*args: Any, **kwargs: Any) -> Any:
            self._fence.check()
            result = await call(*args, **kwargs)
            self._fence.check()
            return result

        return fenced
