"""Migrate: numbered SQL files, each applied once; the same for the embedded engine and a server.

Every statement can be repeated (``IF NOT EXISTS``), so a process that dies between a migration and its record just runs it again.
"""

from importlib import resources
from typing import Final

import msgspec

from pipeline.errors import ConfigurationError
from pipeline.model import ids
from sinks.clickhouse.connection import Database
from sinks.clickhouse.rows import insert

_RECORD: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number UInt32,
    name String,
    content_hash String,
    applied_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC')
) ENGINE = ReplacingMergeTree(applied_at)
ORDER BY number
"""


class Migration(msgspec.Struct, frozen=True):
    """A file of statements, ``0001_facts.sql`` and so on."""

    number: int
    name: str
    sql: str

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements, without comments. No literal of a migration holds a semicolon or two dashes."""
        bare = "\n".join(line.split("--", 1)[0].rstrip() for line in self.sql.splitlines())
        return tuple(statement.strip() for statement in bare.split(";") if statement.strip())

    @property
    def content_hash(self) -> str:
        """What the statements say, apart from comments and layout."""
        return ids.digest(16, *(" ".join(statement.split()) for statement in self.statements))


def shipped() -> tuple[Migration, ...]:
    """Return the migrations of this version, in order."""
    files = (file for file in resources.files("sinks.clickhouse").joinpath("migrations").iterdir() if file.name.endswith(".sql"))
    read = (Migration(int(file.name.split("_", 1)[0]), file.name, file.read_text(encoding="utf-8")) for file in files)
    return tuple(sorted(read, key=lambda one: one.number))


def migrate(database: Database, migrations: tuple[Migration, ...] | None = None) -> list[str]:
    """Bring the tables up to this version. Returns the names of what was applied.

    Raises:
        ConfigurationError: the tables were made by another version, which this one would misread.
    """
    wanted = shipped() if migrations is None else migrations
    database.command(_RECORD)
    stored = {row["number"]: row for row in database.query("SELECT number, name, content_hash FROM schema_migrations FINAL")}
    _refuse_foreign(stored, wanted)
    missing = [one for one in wanted if one.number not in stored]
    for migration in missing:
        for statement in migration.statements:
            database.command(statement)
        row = {"number": migration.number, "name": migration.name, "content_hash": migration.content_hash}
        insert(database, "schema_migrations", [row])
    return [one.name for one in missing]


def _refuse_foreign(stored: dict[int, dict[str, str]], wanted: tuple[Migration, ...]) -> None:
    known = {one.number: one for one in wanted}
    for number, row in sorted(stored.items()):
        if number not in known:
            raise ConfigurationError(
                f"the store was made by a newer tracegrade (it has {row['name']}); update this one, or use another store"
            )
        if row["content_hash"] != known[number].content_hash:
            raise ConfigurationError(
                f"the store was made by another tracegrade ({row['name']} differs); use the version that made it, or another store"
            )
