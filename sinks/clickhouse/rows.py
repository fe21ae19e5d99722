"""Rows: how a noun's values are kept in columns. The one place for times, counts and whole inserts."""

from collections.abc import Sequence
from decimal import Context, Decimal
from hashlib import blake2b
from typing import Final

from pipeline.model.time import SECOND
from sinks.clickhouse.connection import Database, Row

LATEST: Final = 2**64 - 1
_SIGNED: Final = 2**63
_MONEY: Final = Context(prec=40)


def insert(database: Database, table: str, rows: Sequence[Row]) -> None:
    """Store rows that are folded from facts. Equal rows may be stored again: readers see the greatest version of each key."""
    if rows:
        columns = tuple(rows[0])
        database.insert(table, columns, [[row[column] for row in rows] for column in columns], None)


def insert_facts(database: Database, table: str, rows: Sequence[Row], identity: Sequence[str] = ()) -> None:
    """Store rows that never change, with a token over what they say: the same batch sent again is not even stored twice.

    ``identity`` names the columns that determine all others, every column where it is empty. A batch that differs in any of them has
    another token (reliability D7: one token on two batches silently drops the second).
    """
    if rows:
        columns = tuple(rows[0])
        data = {column: [row[column] for row in rows] for column in columns}
        said = repr([table, *(data[column] for column in identity or columns)])
        token = blake2b(said.encode(), digest_size=16).hexdigest()
        database.insert(table, columns, [data[column] for column in columns], token)


def instant(ns: int) -> int:
    """Return nanoseconds as a DateTime64(9) column holds them. A hostile time beyond 2262 wraps, and :func:`ns` unwraps it."""
    return ns if ns < _SIGNED else ns - 2 * _SIGNED


def ns(stored: int) -> int:
    """Return the nanoseconds of a DateTime64(9) column."""
    return stored if stored >= 0 else stored + 2 * _SIGNED


def instant_or_none(ns: int) -> int | None:
    """Return nanoseconds, of which 0 means that it never happened, for a nullable column."""
    return instant(ns) if ns else None


def ns_or_zero(stored: int | None) -> int:
    """Return the nanoseconds of a nullable column, 0 where it never happened."""
    return 0 if stored is None else ns(stored)


def minute(ns: int) -> int:
    """Return the start of a minute as a DateTime64(0) column holds it: in seconds."""
    return ns // SECOND


def minute_ns(stored: int) -> int:
    """Return the nanoseconds of a DateTime64(0) column."""
    return stored * SECOND


def earliness(ns: int) -> int:
    """Return a version that grows as the time shrinks: of equal keys the earliest stays."""
    return LATEST - min(max(ns, 0), LATEST)


def dollars(stored: Decimal | None) -> Decimal | None:
    """Return the money of a Decimal column without the zeros that fill its scale."""
    if stored is None:
        return None
    return stored.quantize(Decimal(1)) if stored == stored.to_integral_value() else _MONEY.normalize(stored)


def count(number: int) -> int:
    """Return a number of tokens as an unsigned column can hold it, whatever a server claimed."""
    return min(max(number, 0), LATEST)


def count_or_none(number: int | None) -> int | None:
    """Return a number of tokens; what no model can have used is unknown."""
    return number if number is not None and 0 <= number <= LATEST else None
