"""The table of dead letters, as whoever runs the installation reads it."""

from collections.abc import Sequence

from pipeline.model.dead_letter import LetterSummary, Replay
from pipeline.model.topology import DeadLetter
from sinks.clickhouse import dead_letters
from sinks.clickhouse.line import Line


class LetterTable:
    """What is kept of what could not be processed, of every project, and what became of those that were sent back."""

    def __init__(self, reads: Line, writes: Line) -> None:
        self._reads = reads
        self._writes = writes

    async def summaries(self) -> list[LetterSummary]:
        """Return what is kept, the latest first, without the bytes."""
        return await self._reads.call(dead_letters.summaries)

    async def by_id(self, letter_ids: Sequence[str]) -> list[DeadLetter]:
        """Return these letters, as far as they are kept."""
        return await self._reads.call(dead_letters.by_id, letter_ids)

    async def replays(self) -> dict[str, Replay]:
        """Return what became of letters that were sent back, the last time, by the letter's id."""
        return await self._reads.call(dead_letters.replays)

    async def note_replays(self, replays: Sequence[Replay]) -> None:
        """Keep what became of letters that were sent back."""
        await self._writes.call(dead_letters.note_replays, replays)
