"""Migrations are applied once, survive a death in between, and refuse tables that another version made."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import T0, a_log_record, a_span
from msgspec.structs import replace
from unit.clickhouse.records import Recorder, a_run, a_run_version, a_version

from pipeline.config.store import StoreSettings
from pipeline.errors import ConfigurationError
from pipeline.model.time import MINUTE
from pipeline.model.version import TraceVersion
from pipeline.model.window import Notification, Transition
from sinks.clickhouse.connection import ClickHouse, Row, connect
from sinks.clickhouse.fact_rows import span_row
from sinks.clickhouse.facts import insert_log_records
from sinks.clickhouse.gate_rows import notification_row
from sinks.clickhouse.gates import notifications, write_notifications
from sinks.clickhouse.migrate import Migration, migrate, shipped
from sinks.clickhouse.recovery import misplaced_traces, unfinished_traces
from sinks.clickhouse.rows import insert
from sinks.clickhouse.run_detail import run_detail
from sinks.clickhouse.run_finder import last_of
from sinks.clickhouse.run_rows import run_rows, trace_row
from sinks.clickhouse.traces import load

NAMES = [one.name for one in shipped()]
REPEATABLE = r"CREATE TABLE IF NOT EXISTS |ALTER TABLE \w+ (ADD (COLUMN|INDEX) IF NOT EXISTS|MATERIALIZE (INDEX|COLUMN)|MODIFY (TTL|SETTING)) "


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ClickHouse]:
    database = connect(StoreSettings(path=tmp_path / "data"), {})
    yield database
    database.close()


def tables(engine: ClickHouse) -> set[str]:
    return {row["name"] for row in engine.query("SELECT name FROM system.tables WHERE database = currentDatabase()")}


def test_every_migration_is_applied_in_order_and_only_once(engine: ClickHouse) -> None:
    assert migrate(engine) == NAMES == sorted(NAMES)
    assert migrate(engine) == []
    assert {"spans", "results", "notifications", "schema_migrations"} <= tables(engine)


def test_every_statement_can_be_repeated() -> None:
    for migration in shipped():
        for statement in migration.statements:
            assert re.match(REPEATABLE, statement), f"{migration.name}: {statement[:60]}"


def test_every_table_deduplicates_inserts_by_token_and_has_the_project_in_its_key() -> None:
    for migration in shipped():
        for statement in migration.statements:
            if not statement.startswith("CREATE"):
                continue
            name = statement.split()[5]
            assert "non_replicated_deduplication_window" in statement, name
            assert "ORDER BY (project" in statement or name in (
                "clocks",
                "gate_clocks",
                "contracts",
                "rubrics",
                "judge_endpoints",
            ), name
            assert "PARTITION BY" not in statement, name


class _Dying(Recorder):
    """Dies before its n-th statement."""

    def __init__(self, inner: ClickHouse, after: int) -> None:
        super().__init__(inner)
        self._left = after

    def _live(self) -> None:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1

    def command(self, sql: str) -> None:
        self._live()
        super().command(sql)

    def insert(self, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        self._live()
        super().insert(table, columns, data, token)


def test_a_death_before_any_statement_leaves_tables_that_the_next_start_completes(engine: ClickHouse) -> None:
    migrations = (Migration(1, "0001_a.sql", _table("a") + _table("b")), Migration(2, "0002_c.sql", _table("c")))
    for after in range(6):
        for name in ("schema_migrations", "a", "b", "c"):
            engine.command(f"DROP TABLE IF EXISTS {name}")
        with pytest.raises(KeyboardInterrupt):
            migrate(_Dying(engine, after), migrations)
        migrate(engine, migrations)
        assert tables(engine) == {"schema_migrations", "a", "b", "c"}
        assert migrate(engine, migrations) == []


def _table(name: str) -> str:
    return (
        f"-- a comment; with a semicolon\nCREATE TABLE IF NOT EXISTS {name} (x UInt8 -- why\n) ENGINE = MergeTree ORDER BY x;\n"
    )


def test_tables_of_a_newer_version_are_refused(engine: ClickHouse) -> None:
    migrate(engine, (*shipped(), Migration(9999, "9999_future.sql", "")))
    with pytest.raises(ConfigurationError, match=r"newer tracegrade \(it has 9999_future.sql\)"):
        migrate(engine)


def test_a_migration_that_says_something_else_than_what_was_applied_is_refused(engine: ClickHouse) -> None:
    first = shipped()[0]
    migrate(engine, (Migration(first.number, first.name, _table("other")),))
    with pytest.raises(ConfigurationError, match=f"{first.name} differs"):
        migrate(engine)


def test_notifications_from_before_their_agent_was_kept_are_nobodys(engine: ClickHouse) -> None:
    migrate(engine, shipped()[:3])
    noted = Notification("shop", "trip-1", Transition.FIRED, "pager", "{}", due_ns=T0, agent="refunds")
    insert(engine, "notifications", [{name: value for name, value in notification_row(noted).items() if name != "agent"}])
    assert migrate(engine) == NAMES[3:]
    assert notifications(engine) == [replace(noted, agent="")]
    write_notifications(engine, [replace(noted, attempts=1)])
    assert notifications(engine) == [replace(noted, attempts=1)]


def _without_their_parts(version: TraceVersion) -> list[Row]:
    """Run rows as they were before migrations 9, 11 and 18."""
    later = {
        "parts",
        "cost_usd",
        "feedback",
        "cost",
        "cost_unknown",
        "cost_prices",
        "task_kind",
        "retries",
        "hand_offs",
        "revision",
    }
    return [{name: row[name] for name in row if name not in later} for row in run_rows(version)]


def _without_its_beginning(version: TraceVersion) -> Row:
    """The row of a trace as it was stored before migrations 7 and 8."""
    row = trace_row(version)
    assert row is not None
    return {name: value for name, value in row.items() if name not in ("first_received_at", "receipts")}


def test_traces_from_before_their_beginning_was_kept_began_at_the_latest_when_they_closed(engine: ClickHouse) -> None:
    migrate(engine, shipped()[:6])
    insert(engine, "traces", [_without_its_beginning(a_version(a_run_version(a_run("old"), 4), facts=1, closed_ns=T0))])
    assert migrate(engine) == NAMES[6:]
    key = ("old", a_run("old").trace_id)
    assert load(engine, [key])[key].first_received_ns == T0


def test_traces_from_before_their_insertion_was_kept_are_searched_for_runs_that_never_were(engine: ClickHouse) -> None:
    migrate(engine, shipped()[:3])
    whole = _without_its_beginning(a_version(a_run_version(a_run("old"), 12), facts=3))
    insert(engine, "runs", _without_their_parts(a_version(a_run_version(a_run("old", head="a2"), 4))))
    insert(engine, "traces", [whole])
    migrate(engine)
    (row,) = engine.query("SELECT trace_id, toInt64(toUnixTimestamp64Nano(now64(9))) AS now FROM traces")
    assert misplaced_traces(engine) == [("old", row["trace_id"])]
    assert misplaced_traces(engine, since_ns=row["now"] - MINUTE) == [("old", row["trace_id"])], "once more than needed"


def test_a_database_from_before_log_records_has_no_log_records_and_its_traces_as_they_were(engine: ClickHouse) -> None:
    migrate(engine, shipped()[:4])
    span = a_span(project="old")
    whole = _without_its_beginning(a_version(a_run_version(a_run("old"), 4), facts=1))
    insert(engine, "spans", [span_row(span)])
    insert(engine, "runs", _without_their_parts(a_version(a_run_version(a_run("old"), 4), facts=1)))
    insert(engine, "traces", [whole])
    assert migrate(engine) == NAMES[4:]
    key = ("old", span.trace_id)
    assert load(engine, [key])[key].spans == (span,)
    assert unfinished_traces(engine) == []
    assert last_of(engine, "old", "conversation-7") == (span.trace_id, a_run("old").run_id)
    found = run_detail(engine, "old", "")
    assert (found.parts, found.cost_usd, found.revision) == ((), None, ""), "what was not kept is unknown"
    insert_log_records(engine, [a_log_record(project="old")])
    assert unfinished_traces(engine) == [key]
    assert load(engine, [key])[key].log_records == (a_log_record(project="old"),)


def test_comments_and_layout_are_not_what_a_migration_says() -> None:
    one = Migration(1, "a", "-- why\nCREATE TABLE a (x UInt8)\n  ENGINE = Memory;")
    other = Migration(1, "a", "CREATE TABLE a (x UInt8) -- how\nENGINE = Memory;\n-- end\n")
    assert one.content_hash == other.content_hash != Migration(1, "a", "CREATE TABLE a (x UInt16) ENGINE = Memory").content_hash


def test_rows_can_be_asked_for_by_name(engine: ClickHouse) -> None:
    rows: list[Row] = engine.query("SELECT {x:UInt8} AS one, {y:String} AS other", {"x": 1, "y": "b"})
    parameters: Mapping[str, Any] = rows[0]
    assert parameters == {"one": 1, "other": "b"}
