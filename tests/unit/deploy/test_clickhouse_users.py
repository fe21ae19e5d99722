"""deploy/clickhouse/users.xml: the product can do what it does, the dashboard can read, and neither can do more."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from unit.deploy.as_user import USERS, ask
from unit.deploy.composition import services

DENIED = "ACCESS_DENIED"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An engine whose tables the product has made with its own rights."""
    made = tmp_path_factory.mktemp("users")
    ask("tracegrade", made, [])
    return made


def test_workers_make_their_tables_and_no_migration_needs_more_than_they_may(folder: Path) -> None:
    (tables, grants) = ask("tracegrade", folder, ["SELECT name FROM system.tables WHERE database = 'tracegrade'", "SHOW GRANTS"])
    assert {"spans", "runs", "results", "windows", "dead_letters"} <= {row["name"] for row in tables.rows}
    assert "GRANT" in str(grants.rows)
    assert "*.*" not in str(grants.rows)


def test_workers_can_neither_delete_nor_leave_their_database(folder: Path) -> None:
    statements = [
        "DROP TABLE spans",
        "TRUNCATE TABLE spans",
        "DELETE FROM spans WHERE 1",
        "ALTER TABLE spans DELETE WHERE 1",
        "ALTER TABLE spans DROP COLUMN name",
        "DROP DATABASE tracegrade",
        "CREATE DATABASE other",
        "CREATE TABLE read_files (a String) ENGINE = File(CSV, '/etc/passwd')",
        "CREATE USER somebody",
        "SELECT * FROM url('http://127.0.0.1:1/', CSV, 'a String')",
        "SELECT name FROM system.users",
    ]
    assert {
        one: DENIED in said.error for one, said in zip(statements, ask("tracegrade", folder, statements), strict=True)
    } == dict.fromkeys(statements, True)


def test_a_column_can_be_added_by_a_later_migration(folder: Path) -> None:
    added, seen = ask(
        "tracegrade",
        folder,
        [
            "ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS note String",
            "SELECT name FROM system.columns WHERE database = 'tracegrade' AND table = 'evaluations' AND name = 'note'",
        ],
    )
    assert (added.error, seen.rows) == ("", [{"name": "note"}])


def test_the_dashboard_reads_and_does_nothing_else(folder: Path) -> None:
    read, written, dropped, made, elsewhere = ask(
        "grafana",
        folder,
        [
            "SELECT count() AS rows FROM spans",
            "INSERT INTO evaluations (project) VALUES ('p')",
            "DROP TABLE spans",
            "CREATE TABLE mine (a String) ENGINE = Memory",
            "SELECT name FROM system.users",
        ],
    )
    assert read.rows == [{"rows": 0}]
    for said in (written, dropped, made, elsewhere):
        assert DENIED in said.error or "readonly" in said.error or "READONLY" in said.error, said


def test_the_dashboard_may_set_a_time_limit_and_no_larger_share_of_the_machine(folder: Path) -> None:
    allowed, memory, threads = ask(
        "grafana",
        folder,
        [
            "SELECT 1 AS one SETTINGS max_execution_time = 30",
            "SELECT 1 AS one SETTINGS max_memory_usage = 2000000000",
            "SELECT 1 AS one SETTINGS max_threads = 16",
        ],
    )
    assert allowed.rows == [{"one": 1}]
    for said in (memory, threads):
        assert "SETTING_CONSTRAINT_VIOLATION" in said.error


def test_there_is_nobody_else_and_every_password_comes_from_the_environment() -> None:
    users = ET.parse(USERS).getroot().find("users")  # noqa: S314 - a file of this tree
    assert users is not None
    assert {one.tag: one.attrib for one in users if one.attrib} == {"default": {"remove": "remove"}}
    named = {one.tag: one for one in users if not one.attrib}
    assert set(named) == {"tracegrade", "grafana"}
    handed = services()["clickhouse"]["environment"]
    for one in named.values():
        (password,) = (child for child in one if child.tag.startswith("password"))
        assert password.text is None
        assert password.attrib["from_env"] in handed
