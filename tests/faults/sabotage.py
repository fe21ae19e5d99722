"""``tracegrade`` with something broken on purpose: ``python -m faults.sabotage worker …``, and what is broken in SABOTAGE.

Words, with commas between them: the mutants ``acknowledge_first`` and ``no_versions``, and moments at which the process is stopped
(SIGSTOP), killed (SIGKILL) or raises what nobody foresaw, such as ``stop:before:results:2``: in the middle of its work, not by luck.
"""

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, Final

from collectors.kafka.records import Incoming
from pipeline.apps.cli import main
from pipeline.runtime.assembling import Assembling
from sinks.clickhouse.connection import ClickHouse

VARIABLE: Final = "SABOTAGE"
ACKNOWLEDGE_FIRST: Final = "acknowledge_first"
NO_VERSIONS: Final = "no_versions"
_VERSIONED: Final = frozenset({"runs", "results", "traces"})
_SIGNALS: Final = {"stop": signal.SIGSTOP, "kill": signal.SIGKILL}
Insert = Callable[[ClickHouse, str, Sequence[str], Sequence[Sequence[Any]], str | None], None]


def acknowledge_first() -> None:
    """Say that records are done before they are stored."""
    take = Assembling.take

    async def hasty(self: Assembling, incoming: Sequence[Incoming]) -> None:
        for one in incoming:
            self._acknowledge(one.partition, one.offset)
        await take(self, incoming)

    Assembling.take = hasty  # type: ignore[method-assign]


def no_versions(insert: Insert) -> Insert:
    """Number all rows alike, so that of equal keys the one that was inserted last stays."""

    def flat(self: ClickHouse, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        if table in _VERSIONED:
            data = [[1] * len(cells) if name == "version" else cells for name, cells in zip(columns, data, strict=True)]
        insert(self, table, columns, data, token)

    return flat


def at(moment: str, insert: Insert) -> Insert:
    """Stop or kill the process, or raise, just before or after the n-th insert into a table."""
    how, when, where, nth = moment.split(":")
    left = int(nth)

    def fatal(self: ClickHouse, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        nonlocal left
        left -= table == where
        struck = table == where and left == 0
        if struck and when == "before":
            strike(how)
        insert(self, table, columns, data, token)
        if struck and when == "after":
            strike(how)

    return fatal


def strike(how: str) -> None:
    """Do what the word says, now."""
    if how == "raise":
        raise RuntimeError("sabotage")
    os.kill(os.getpid(), _SIGNALS[how])


def sabotage(words: Sequence[str]) -> None:
    """Break what these words name."""
    insert: Insert = ClickHouse.insert
    for word in words:
        if word == ACKNOWLEDGE_FIRST:
            acknowledge_first()
        elif word == NO_VERSIONS:
            insert = no_versions(insert)
        else:
            insert = at(word, insert)
    ClickHouse.insert = insert  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    sabotage(os.environ[VARIABLE].split(","))
    main()
