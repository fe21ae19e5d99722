"""``tracegrade`` with something broken on purpose: ``python -m faults.sabotage worker …``, and what is broken in SABOTAGE.

Words, with commas between them: mutants, and moments at which the process is stopped (SIGSTOP), killed (SIGKILL) or raises what nobody
foresaw, in the middle of its work and not by luck. A moment is an insert, such as ``stop:before:results:2``, or a point by its name and
which passing of it, such as ``kill:work.after_store_before_ack:3``. The product knows nothing of either.
"""

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, Final

from collectors.kafka.publisher import SpanBatcher
from collectors.kafka.records import Incoming
from pipeline.apps.cli import main
from pipeline.model.version import TraceKey
from pipeline.runtime.assembling import Assembling
from pipeline.runtime.bridging import Bridge
from pipeline.runtime.owner import TraceOwner
from sinks.alerts.webhook import Webhook
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.judge_table import JudgeTable
from sinks.clickhouse.store import Store

VARIABLE: Final = "SABOTAGE"
ACKNOWLEDGE_FIRST: Final = "acknowledge_first"
NO_VERSIONS: Final = "no_versions"
NO_DEDUPLICATION: Final = "no_deduplication"
TRUST_THE_PARTITION: Final = "trust_the_partition"
NO_CLASS_ONCE: Final = "no_class_once"
POINTS: Final[dict[str, tuple[str, type, str]]] = {
    "recv.after_produce_before_reply": ("after", SpanBatcher, "store"),
    "bridge.after_produce_before_commit": ("after", Bridge, "_publish"),
    "work.after_store_before_ack": ("after", Assembling, "_store_all"),
    "work.after_ack_before_commit": ("after", Assembling, "take"),
    "judge.after_reply_before_store": ("before", JudgeTable, "reply"),
    "gate.after_send_before_mark": ("after", Webhook, "send"),
    "dlq.before_produce": ("after", Store, "bury"),
}
"""By name: just before or after which call."""
INSERTS: Final = {
    "work.mid_batch": "before:runs",
    "gate.after_trip_row_before_send": "after:trips",
    "golden.after_copy_before_index": "before:golden_cases",
}
"""The same where the call is an insert."""
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


def no_deduplication(insert: Insert) -> Insert:
    """Have no token on any insert, and runs that no key holds together: a row that is written twice is there twice."""
    command = ClickHouse.command

    def keyless(self: ClickHouse, sql: str) -> None:
        if "TABLE IF NOT EXISTS runs" in sql:
            sql = sql.replace("ORDER BY (project, trace_id, run_id)", "ORDER BY (project, trace_id, run_id, inserted_at)")
        command(self, sql)

    def bare(self: ClickHouse, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], _: str | None) -> None:
        insert(self, table, columns, data, None)

    ClickHouse.command = keyless  # type: ignore[method-assign]
    return bare


def no_class_once(insert: Insert) -> Insert:
    """Have the first run that is written be in no class."""
    left = 1

    def forgetful(self: ClickHouse, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        nonlocal left
        if table == "runs" and left:
            left -= 1
            data = [["", *cells[1:]] if name == "class" else cells for name, cells in zip(columns, data, strict=True)]
        insert(self, table, columns, data, token)

    return forgetful


def trust_the_partition() -> None:
    """Take every trace for the partition's that it came in, whoever it belongs to."""
    came_in: dict[TraceKey, int] = {}
    rightful = TraceOwner._partition_of
    read = Assembling._read

    def trusting(self: TraceOwner, key: TraceKey) -> int:
        return came_in.get(key, rightful(self, key))

    async def noting(self: Assembling, one: Incoming) -> list[Any]:
        records = (await self._dead_letters.read(one)).records
        came_in.update(((record.project, record.trace_id), one.partition) for record in records)
        return await read(self, one)

    TraceOwner._partition_of = trusting  # type: ignore[method-assign]
    Assembling._read = noting  # type: ignore[method-assign]


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


def at_point(how: str, point: str, nth: int) -> None:
    """The same at the n-th passing of a point."""
    when, owner, method = POINTS[point]
    call = getattr(owner, method)
    left = nth

    async def fatal(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        struck = left == 0
        if struck and when == "before":
            strike(how)
        result = await call(*args, **kwargs)
        if struck and when == "after":
            strike(how)
        return result

    setattr(owner, method, fatal)


def strike(how: str) -> None:
    """Do what the word says, now."""
    if how == "raise":
        raise RuntimeError("sabotage")
    os.kill(os.getpid(), _SIGNALS[how])


def sabotage(words: Sequence[str]) -> None:
    """Break what these words name."""
    insert: Insert = ClickHouse.insert
    calls = {ACKNOWLEDGE_FIRST: acknowledge_first, TRUST_THE_PARTITION: trust_the_partition}
    wraps = {NO_VERSIONS: no_versions, NO_DEDUPLICATION: no_deduplication, NO_CLASS_ONCE: no_class_once}
    for word in words:
        if word in calls:
            calls[word]()
        elif word in wraps:
            insert = wraps[word](insert)
        elif "." in word:
            how, point, nth = word.split(":")
            if point in POINTS:
                at_point(how, point, int(nth))
            else:
                insert = at(f"{how}:{INSERTS[point]}:{nth}", insert)
        else:
            insert = at(word, insert)
    ClickHouse.insert = insert  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    sabotage(os.environ[VARIABLE].split(","))
    main()
