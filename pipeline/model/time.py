"""Time as the pipeline counts it: whole nanoseconds since the epoch, UTC, always an argument."""

from typing import Final

SECOND: Final = 1_000_000_000
MILLISECOND: Final = SECOND // 1000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


def minute_of(ns: int) -> int:
    """Return the start, in nanoseconds, of the UTC minute that holds ``ns``."""
    return ns - ns % MINUTE
