"""Replaying: dead letters back to where they were meant to go, read again by this release.

What is sent twice counts once: spans are facts by their content, and every other record by its id. So a replay can be repeated.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from collectors.kafka.records import Incoming, decode
from collectors.otlp import content
from collectors.otlp.logs import LOGS
from collectors.otlp.traces import TRACES as SPANS
from collectors.redaction.redactor import Redactor
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.model.dead_letter import Outcome, Replay
from pipeline.model.topology import TOPICS, TRACES, DeadLetter, Publish, Topic
from pipeline.runtime.clock import Clock

ASSEMBLE: Final = "assemble"
"""Origin of a trace whose own content broke its reader: its spans are stored."""
_RECORD: Final = re.compile(r"[a-z]+: ([A-Za-z0-9._-]+)\[(\d+)\]@(\d+)")
_BY_NAME: Final = {topic.name: topic for topic in TOPICS}


class Contents(NamedTuple):
    """What a letter says now: the records, the topic on which they travel, and what of it still cannot be read."""

    topic: Topic
    records: Sequence[Any]
    refused: str


class ReplayStore(Protocol):
    """Where it is kept what became of a letter."""

    async def note_replays(self, replays: Sequence[Replay]) -> None:
        """Keep it."""
        ...


def contents(letter: DeadLetter, redactor: Redactor | None = None) -> Contents:
    """Read a letter; what came from outside is redacted, as it would have been then.

    Raises:
        PermanentError: nothing of it can be read, as before.
    """
    if letter.cut:
        raise PermanentError(f"only {len(letter.body)} of its {letter.size} bytes were kept")
    if letter.origin == ASSEMBLE:
        raise PermanentError(
            "its spans are stored, and grading them failed: they are graded again when the trace gets another span, or its worker starts again"
        )
    placed = _RECORD.fullmatch(letter.origin)
    if placed is not None and placed[1] in _BY_NAME:
        incoming = Incoming(placed[1], int(placed[2]), int(placed[3]), letter.received_ns, letter.body, letter.headers)
        read = decode(incoming)
        return Contents(_BY_NAME[placed[1]], read.records, read.refused)
    if letter.origin.endswith(LOGS.path):
        logs = LOGS.decoders[content.encoding_of(letter.body)](letter.body, letter.project, letter.received_ns, redactor)
        return Contents(TRACES, logs.items, logs.message)
    decoded = content.decode(letter.body, SPANS, letter.project, letter.received_ns, redactor=redactor)
    return Contents(TRACES, decoded.items, decoded.message)


class Replayer:
    """Sends letters back, one after the other, and keeps what became of each."""

    def __init__(self, publish: Publish, store: ReplayStore | None, clock: Clock, redactor: Redactor | None) -> None:
        """``store`` None: what became of a letter is told, and kept nowhere."""
        self._publish = publish
        self._store = store
        self._clock = clock
        self._redactor = redactor

    async def replay(self, letters: Sequence[DeadLetter], told: Callable[[Replay], None] = lambda _: None) -> list[Replay]:
        """Send letters back; return what became of each, in order. One that fails costs no other its turn.

        Raises:
            TemporaryError: brokers or store are away; those before it are back, and all can be sent again.
        """
        done: list[Replay] = []
        for letter in letters:
            outcome, detail = await self._one(letter)
            replay = Replay(letter.project, letter.id, outcome, detail, self._clock.now())
            if self._store is not None:
                await self._store.note_replays([replay])
            told(replay)
            done.append(replay)
        return done

    async def _one(self, letter: DeadLetter) -> tuple[Outcome, str]:
        try:
            found = contents(letter, self._redactor)
            await self._publish(found.topic, found.records)
        except (PermanentError, ConfigurationError) as error:
            return Outcome.FAILED, str(error)
        except TemporaryError:
            raise
        except Exception as error:  # noqa: BLE001 - one letter that nobody foresaw must not hold up the others
            return Outcome.FAILED, f"{type(error).__name__}: {error}"
        masked = "; what was masked in it stays so" if letter.masked else ""
        if found.refused:
            return Outcome.FAILED, f"{len(found.records)} sent, and the rest cannot be read: {found.refused}"
        return Outcome.SENT, f"{len(found.records)} to {found.topic.name}{masked}"
