"""The store as the owner of traces sees it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from pipeline.model.topology import DeadLetter
from pipeline.model.version import StoredTrace, TraceKey, TraceVersion


class TraceStore(Protocol):
    """What an owner needs of the store."""

    async def written(self, trace_keys: Sequence[TraceKey]) -> set[TraceKey]:
        """Return those of the traces of which anything but spans is stored: folds, judgments, feedback and log records that came first."""
        ...

    async def load(self, trace_keys: Sequence[TraceKey]) -> dict[TraceKey, StoredTrace]:
        """Return all that is stored of these traces."""
        ...

    async def remember(self, trace_keys: Sequence[TraceKey]) -> None:
        """Keep what is known of these traces for as long as if it were stored now."""
        ...

    async def clocks(self) -> dict[int, int]:
        """Return up to when everything that was due is written, by partition."""
        ...

    async def write_clocks(self, clocks: Mapping[int, int], at_ns: int) -> None:
        """Write up to when everything that was due is written, by partition."""
        ...

    async def unfinished(self, buckets: Collection[int], since_ns: int) -> list[TraceKey]:
        """Return the traces that have facts no traces row accounts for, pending runs, or rows at a place they left.

        ``since_ns``: what was finished before needs no look.
        """
        ...

    async def misplaced(self, buckets: Collection[int], since_ns: int) -> list[TraceKey]:
        """Return the traces that have weighted rows at a place their runs left; ``since_ns`` as for :meth:`unfinished`."""
        ...

    async def write(self, versions: Sequence[TraceVersion]) -> None:
        """Write places, results, runs and traces, in this order."""
        ...

    async def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Keep what could not be processed."""
        ...
