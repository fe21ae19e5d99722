"""Logical: what a reader sees of every table, as bytes, to hold that reading everything again changes none of them (I12)."""

from collections.abc import Mapping
from typing import Final

from clickhouse_front import Front
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from collectors.kafka.lag import group_of
from pipeline.model.topology import TOPOLOGY

OF_THE_MOMENT: Final = frozenset({"clocks", "gate_clocks", "schema_migrations"})
"""Tables that say how far something is."""
WHEN_WRITTEN: Final = frozenset({"inserted_at", "written_at", "buried_at"})
"""Columns that say when a row was written last; and of dead letters the last arrival, see :func:`logical`."""

Tables = Mapping[str, list[tuple[str, ...]]]


def logical(front: Front, database: str) -> Tables:
    """Return the rows that a reader sees, table by table, without when they were written."""
    among = f"WHERE database = '{database}'"
    found: dict[str, list[tuple[str, ...]]] = {}
    columns: dict[str, list[str]] = {}
    for table, column in front.look(f"SELECT table, name FROM system.columns {among} ORDER BY table, position"):  # noqa: S608 - a name of ours
        written = column in WHEN_WRITTEN or (table == "dead_letters" and column == "received_at")
        if table not in OF_THE_MOMENT and not written:
            columns.setdefault(table, []).append(f"`{column}`")
    for table, names in columns.items():
        chosen = ", ".join(names)
        found[table] = front.look(f"SELECT {chosen} FROM {database}.{table} FINAL ORDER BY ALL FORMAT TSV")  # noqa: S608 - names of ours
    return found


def differing(before: Tables, after: Tables) -> dict[str, list[tuple[str, ...]]]:
    """Return by table the rows that only one of the two has."""
    return {
        table: rows
        for table in sorted({*before, *after})
        if (rows := sorted(set(before.get(table, [])) ^ set(after.get(table, []))) or _counts(before, after, table))
    }


def _counts(before: Tables, after: Tables, table: str) -> list[tuple[str, ...]]:
    counts = len(before.get(table, [])), len(after.get(table, []))
    return [] if counts[0] == counts[1] else [tuple(map(str, counts))]


def back_to_the_beginning(admin: AdminClient, partitions: int) -> None:
    """Have every stage read its topic from the first record on; nobody may be a member."""
    for node in TOPOLOGY:
        parts = [TopicPartition(node.reads.name, at, 0) for at in range(partitions)]
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group_of(node), parts)])
        for done in asked.values():
            done.result(30)
