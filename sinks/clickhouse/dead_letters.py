"""Dead letters: kept for a week, read by whoever runs the installation, and what became of those that were sent back."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from pipeline.model.dead_letter import LetterSummary, Outcome, Replay
from pipeline.model.topology import DeadLetter
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.rows import insert, instant, ns

MOST: Final = 100_000
"""Letters that a list can have: 100 bytes of each are in memory."""
_REPLAYED: Final = """
    LEFT JOIN (
        SELECT dead_letter_id, argMax(outcome, replayed_at) AS last_outcome, argMax(detail, replayed_at) AS last_detail
        FROM dead_letter_replays
        GROUP BY dead_letter_id
    ) AS replays USING dead_letter_id
"""
_SUMMARIES: Final = f"""
SELECT dead_letter_id, project, origin, reason, greatest(size, length(body)) AS whole, length(body) AS kept, masked, received_at,
    last_outcome, last_detail
FROM dead_letters FINAL
{_REPLAYED}
ORDER BY received_at DESC, dead_letter_id
LIMIT {{most:UInt64}}
"""  # noqa: S608 - nothing in it comes from anybody
# Bytes travel as base64: the client reads a column of strings as text.
_BY_ID: Final = """
SELECT project, origin, reason, base64Encode(body) AS bytes, headers, base64Encode(assumeNotNull(record_key)) AS key_bytes,
    isNull(record_key) AS keyless, size, masked, received_at
FROM dead_letters FINAL
WHERE dead_letter_id IN {letters:Array(String)}
ORDER BY received_at DESC, dead_letter_id
"""

_REPLAYS: Final = (
    "SELECT project, dead_letter_id, outcome, detail, replayed_at FROM dead_letter_replays FINAL ORDER BY replayed_at"
)


def bury(database: Database, letters: Sequence[DeadLetter]) -> None:
    """Keep what could not be processed, with its bytes and the reason (promise 7). The same failure again is the same row."""
    insert(database, "dead_letters", [_row(letter) for letter in letters])


def summaries(database: Database, most: int = MOST) -> list[LetterSummary]:
    """Return the latest of what is kept, of every project, the latest first."""
    return [
        LetterSummary(
            id=row["dead_letter_id"],
            project=row["project"],
            origin=row["origin"],
            reason=row["reason"],
            size=row["whole"],
            kept=row["kept"],
            masked=row["masked"],
            received_ns=ns(row["received_at"]),
            outcome=row["last_outcome"],
            detail=row["last_detail"],
        )
        for row in database.query(_SUMMARIES, {"most": most})
    ]


def by_id(database: Database, letter_ids: Sequence[str]) -> list[DeadLetter]:
    """Return these letters, as far as they are kept."""
    return [_letter(row) for row in database.query(_BY_ID, {"letters": list(letter_ids)})] if letter_ids else []


def replays(database: Database) -> dict[str, Replay]:
    """Return what became of letters that were sent back, the last time, by the letter's id."""
    found = (
        Replay(row["project"], row["dead_letter_id"], Outcome(row["outcome"]), row["detail"], ns(row["replayed_at"]))
        for row in database.query(_REPLAYS)
    )
    return {replay.letter_id: replay for replay in found}


def note_replays(database: Database, replays: Iterable[Replay]) -> None:
    """Keep what became of letters that were sent back; nothing is overwritten."""
    rows = [
        {
            "project": replay.project,
            "dead_letter_id": replay.letter_id,
            "outcome": replay.outcome.value,
            "detail": replay.detail,
            "replayed_at": instant(replay.replayed_ns),
        }
        for replay in replays
    ]
    insert(database, "dead_letter_replays", rows)


def _row(letter: DeadLetter) -> Row:
    return {
        "project": letter.project,
        "dead_letter_id": letter.id,
        "origin": letter.origin,
        "reason": letter.reason,
        "body": letter.body,
        "received_at": instant(letter.received_ns),
        "headers": msgspec.json.encode([(name, b64encode(value).decode()) for name, value in letter.headers]).decode(),
        "record_key": letter.key,
        "size": max(letter.size, len(letter.body)),
        "masked": letter.masked,
    }


def _letter(row: Row) -> DeadLetter:
    headers = msgspec.json.decode(row["headers"] or "[]", type=list[tuple[str, str]])
    return DeadLetter(
        project=row["project"],
        origin=row["origin"],
        reason=row["reason"],
        body=b64decode(row["bytes"]),
        headers=tuple((name, b64decode(value)) for name, value in headers),
        key=None if row["keyless"] else b64decode(row["key_bytes"]),
        received_ns=ns(row["received_at"]),
        size=row["size"],
        masked=row["masked"],
    )
