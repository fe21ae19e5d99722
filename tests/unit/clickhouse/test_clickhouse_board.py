"""What is counted adds up while runs are written."""

from collections.abc import Mapping, Sequence
from typing import Any

from sinks.clickhouse.board import accounting
from sinks.clickhouse.connection import Row


class Growing:
    """An engine into which a judged run is written between any two queries."""

    def __init__(self) -> None:
        self._runs = 0

    def query(self, sql: str, _parameters: Mapping[str, Any] | None = None) -> list[Row]:
        self._runs += 1
        if "FROM runs" in sql:
            return [{"class": "judged", "class_reason": "", "runs": self._runs}]
        return [{"traces": 0}] if "FROM traces FINAL WHERE" in sql else []

    def insert(self, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None: ...

    def command(self, sql: str) -> None: ...

    def close(self) -> None: ...


def test_what_was_received_is_what_became_of_it_at_every_moment() -> None:
    found = accounting(Growing(), "default")
    assert found.received == found.judged + found.unsampled + found.pending + sum(found.unresolved.values()) > 0
