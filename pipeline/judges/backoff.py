"""Backoff: how long to wait before asking again. Chance is a hash, so the same question waits the same everywhere, and two differ."""

from typing import Final

from pipeline.model import ids

FIRST_S: Final = 0.2
GREATEST_S: Final = 30.0
LONGEST_ASKED_S: Final = 900.0
"""What an endpoint may ask for at most: no judgment is waited for longer."""


def backoff(
    failures: int, key: str, retry_after: float | None = None, first: float = FIRST_S, greatest: float = GREATEST_S
) -> float:
    """Return the seconds to wait after so many failures in a row (from 1), of which the last one asked for ``retry_after``.

    Doubles with each failure, of which between a half and all is waited. What an endpoint asks for is waited in full and up to a
    tenth more, so that not everybody comes back at once.
    """
    chance = _chance(key, failures)
    if retry_after is not None:
        return min(retry_after, LONGEST_ASKED_S) * (1 + chance / 10)
    whole = float(min(greatest, first * 2.0 ** min(failures - 1, 32)))
    return whole * (1 + chance) / 2


def _chance(key: str, failures: int) -> float:
    return int(ids.digest(4, "backoff", key, str(failures)), 16) / 2**32
