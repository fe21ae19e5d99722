"""Retention: when rows expire. The engine deletes what has, in its own time, from the embedded engine and from a server alike.

- Facts, transcripts and the judge's calls expire by when they were received or made.
- What is folded from facts stays 30 days longer, and expires by when it was stored. A later version is stored later, whatever it says, so
  none outlives the one that superseded it. Not by ``first_received_at``: a later version may have an earlier one, and the row that retires
  a result has none.
- What runs add up to (minutes, windows, trips), golden cases, labels and calibrations stay. Results expire long after the last span that
  could change them, and a minute of which results are gone stays as it was (:func:`pipeline.runtime.windows.recompute`).
"""

from typing import Final

import structlog

from pipeline.config.retention import RUNS_LONGER, RetentionSettings
from pipeline.model.time import SECOND
from sinks.clickhouse.connection import Database

FACTS: Final = {
    "spans": "received_at",
    "log_records": "received_at",
    "feedback": "received_at",
    "judgments": "judged_at",
    "record_reads": "read_at",
    "transcripts": "inserted_at",
    "judge_votes": "at",
}
"""Tables that expire with the spans, each with the column that says since when a row is kept."""
FOLDS: Final = {"traces": "inserted_at", "places": "inserted_at", "runs": "inserted_at", "results": "inserted_at"}
"""Tables that expire 30 days later."""

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"})
_TABLES: Final = "SELECT name, engine_full FROM system.tables WHERE database = currentDatabase()"

log = structlog.get_logger(__name__)


def retain(database: Database, settings: RetentionSettings) -> list[str]:
    """Have rows expire as the settings say. Returns the names of the tables for which that is new.

    Several processes may do this at once. Where their settings differ, those of the last one hold.
    """
    told = {row["name"]: row["engine_full"] for row in database.query(_TABLES)}
    changed: list[str] = []
    for table, expression in expressions(settings).items():
        # The engine repeats an expression as it is written here, or else it is told again, which changes nothing.
        if f" TTL {expression} SETTINGS " in told[table]:
            continue
        database.command(f"ALTER TABLE {table} MODIFY TTL {expression} SETTINGS materialize_ttl_after_modify = 0")
        database.command(f"ALTER TABLE {table} MATERIALIZE TTL")
        changed.append(table)
    if changed:
        log.info("retention", spans_days=settings.spans // (86_400 * SECOND), projects=len(settings.projects), tables=changed)
    return changed


def expressions(settings: RetentionSettings) -> dict[str, str]:
    """Return, by table, since when and for how long a row is kept, as ClickHouse writes it."""
    facts = {table: _expression(column, settings, 0) for table, column in FACTS.items()}
    return facts | {table: _expression(column, settings, RUNS_LONGER) for table, column in FOLDS.items()}


def _expression(column: str, settings: RetentionSettings, longer: int) -> str:
    kept = str(_seconds(settings.spans + longer))
    if settings.projects:
        single = [f"project = {_literal(name)}, {_seconds(one + longer)}" for name, one in sorted(settings.projects.items())]
        kept = f"multiIf({', '.join(single)}, {kept})"
    return f"toDateTime({column}) + toIntervalSecond({kept})"


def _seconds(nanoseconds: int) -> int:
    return nanoseconds // SECOND


def _literal(text: str) -> str:
    return f"'{text.translate(_ESCAPES)}'"
