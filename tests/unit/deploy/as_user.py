"""Statements on a folder, with the rights that a user of deploy/clickhouse/users.xml has on a server.

The embedded engine reads its users where it starts: from a `config.xml` in the working directory, and it works as `default`. So the
user is written there under that name, and each question is a process of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree as ET

import clickhouse_connect
from clickhouse_connect.driver.exceptions import DatabaseError

from pipeline.config.store import StoreSettings
from pipeline.errors import ConfigurationError
from sinks.clickhouse.connection import ClickHouse, connect
from sinks.clickhouse.migrate import migrate
from sinks.clickhouse.rows import insert

ROOT: Final = Path(__file__).parents[3]
USERS: Final = ROOT / "deploy" / "clickhouse" / "users.xml"
# As strict as a server can be told to be.
_CONFIG: Final = """
<clickhouse>
    <user_directories><users_xml><path>{users}</path></users_xml></user_directories>
    <access_control_improvements>
        <table_engines_require_grant>true</table_engines_require_grant>
        <select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
        <users_without_row_policies_can_read_rows>true</users_without_row_policies_can_read_rows>
    </access_control_improvements>
</clickhouse>
"""


class Said(NamedTuple):
    """What became of a statement: its rows, or the engine's error."""

    rows: list[dict[str, Any]]
    error: str


def ask(
    user: str, folder: Path, statements: Sequence[str], rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
) -> list[Said]:
    """Run statements as a user, after storing rows by table. The user tracegrade comes as the product does: it makes the tables."""
    (folder / user).mkdir(parents=True, exist_ok=True)
    users = folder / user / "users.xml"
    users.write_text(_under_the_engine_s_name(user), encoding="utf-8")
    (folder / user / "config.xml").write_text(_CONFIG.format(users=users), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, __file__, user, str(folder / "data")],
        input=json.dumps({"statements": list(statements), "rows": rows or {}}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=folder / user,
        # The engine signs in without a password, so the one that the file takes from the environment is empty.
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRACEGRADE_PASSWORD": "", "GRAFANA_PASSWORD": ""},
    )
    assert ended.returncode == 0, ended.stderr
    return [Said(**one) for one in json.loads(ended.stdout)]


def _under_the_engine_s_name(user: str) -> str:
    tree = ET.parse(USERS)  # noqa: S314 - a file of this tree
    users = tree.getroot().find("users")
    assert users is not None
    for one in list(users):
        if one.tag == user:
            one.tag = "default"
        else:
            users.remove(one)
    # What the server's own files say beside it.
    for kind in ("profiles", "quotas"):
        section = tree.getroot().find(kind)
        ET.SubElement(ET.SubElement(tree.getroot(), kind) if section is None else section, "default")
    return ET.tostring(tree.getroot(), encoding="unicode")


def _opened(user: str, path: str) -> ClickHouse:
    if user == "tracegrade":
        database = connect(StoreSettings(path=Path(path)), {})
        migrate(database)
        return database
    return ClickHouse(clickhouse_connect.get_client(interface="chdb", path=path, database="tracegrade"))


def _said(database: ClickHouse, statement: str) -> dict[str, Any]:
    try:
        if statement.startswith(("SELECT", "SHOW")):
            return {"rows": database.query(statement), "error": ""}
        database.command(statement)
    except (DatabaseError, ConfigurationError) as error:
        return {"rows": [], "error": str(error)}
    return {"rows": [], "error": ""}


def main() -> None:
    """Read what to do as JSON, and write what came of it."""
    user, path = sys.argv[1:]
    asked = json.load(sys.stdin)
    database = _opened(user, path)
    for table, rows in asked["rows"].items():
        insert(database, table, rows)
    json.dump([_said(database, statement) for statement in asked["statements"]], sys.stdout)
    database.close()


if __name__ == "__main__":
    main()
