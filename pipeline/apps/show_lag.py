"""Show lag: what was declared on the cluster, and how far each stage is behind, for a terminal or a pipe."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collectors.kafka.lag import GroupLag
from collectors.kafka.topics import Declared
from pipeline.apps.show import UNKNOWN, cell, counted, table


def declared(topics: Sequence[Declared]) -> Iterator[str]:
    """Yield a line for each topic, and one for each warning below it."""
    for topic in topics:
        what = f" ({', '.join(topic.altered)})" if topic.altered else ""
        yield f"{topic.topic}: {topic.outcome}, {counted(topic.partitions, 'partition')}{what}"
        if topic.warning:
            yield f"  warning: {topic.warning}"


def lag(groups: Sequence[GroupLag]) -> RenderableType:
    """Return a table for each stage, its total in the last row."""
    return Group(*(part for group in groups for part in (_title(group), _table(group), Text())))


def _title(group: GroupLag) -> Text:
    """Beside the table, which may be narrower."""
    return Text(f"{group.node}: {group.topic} ({group.state})", style="bold")


def _table(group: GroupLag) -> Table:
    made = table("", "partition", "committed", "end", "lag", "owner")
    for column in made.columns[:4]:
        column.justify = "right"
    for part in group.partitions:
        committed = UNKNOWN if part.committed is None else str(part.committed)
        made.add_row(
            str(part.partition),
            committed,
            str(part.end),
            Text(str(part.lag), style="yellow" if part.lag else ""),
            cell(part.owner or UNKNOWN, longest=120),
        )
    made.add_section()
    owners = len({part.owner for part in group.partitions if part.owner})
    made.add_row("all", "", "", Text(str(group.lag), style="bold"), counted(owners, "owner"))
    return made
