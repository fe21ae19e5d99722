"""Dead letters as people see them: a list without the bytes, and what became of a letter that was sent back."""

from enum import StrEnum

import msgspec

from pipeline.model.topology import DeadLetter


class Outcome(StrEnum):
    """What became of a letter that was sent back."""

    SENT = "sent"
    """All of it is where it was meant to go."""
    FAILED = "failed"
    """It, or a part of it, cannot be processed now either; the letter stays."""


class Replay(msgspec.Struct, frozen=True):
    """One attempt to send a letter back. ``detail`` says what was sent, or why not."""

    project: str
    letter_id: str
    outcome: Outcome
    detail: str
    replayed_ns: int


class LetterSummary(msgspec.Struct, frozen=True):
    """A letter without its bytes."""

    id: str
    project: str
    origin: str
    reason: str
    size: int
    """Bytes that there were; ``kept`` of them are left."""
    kept: int
    masked: bool
    received_ns: int
    outcome: str = ""
    """Of the last time that it was sent back; empty where it never was."""
    detail: str = ""

    @property
    def waiting(self) -> bool:
        """Whether nobody has sent it back with success."""
        return self.outcome != Outcome.SENT


def summary(letter: DeadLetter) -> LetterSummary:
    """Return a letter without its bytes, as one that was never sent back."""
    kept = len(letter.body)
    size = max(letter.size, kept)
    return LetterSummary(letter.id, letter.project, letter.origin, letter.reason, size, kept, letter.masked, letter.received_ns)
