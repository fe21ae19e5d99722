"""Workers start together, on a server where nobody made anything yet."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from clickhouse_front import Front
from clickhouse_front_databases import a_database

from sinks.clickhouse.connection import connect
from sinks.clickhouse.migrate import shipped

_MIGRATE = """
import sys
from pipeline.config.store import StoreSettings
from sinks.clickhouse.connection import connect
from sinks.clickhouse.migrate import migrate
print("ready", flush=True)
for line in sys.stdin:
    database = connect(StoreSettings(url=sys.argv[1], database=line.strip()), {})
    migrate(database)
    migrate(database)
    database.close()
    print("migrated", flush=True)
"""


def test_workers_that_start_together_on_a_server_with_nothing_on_it_make_one_schema(front: Front) -> None:
    with ExitStack() as opened:
        workers = [
            opened.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", _MIGRATE, front.url],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=Path(__file__).parents[3],
                )
            )
            for _ in range(3)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for _ in range(4):
            settings = opened.enter_context(a_database(front.url))
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write(f"{settings.database}\n")
                worker.stdin.flush()
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "migrated\n"
            database = connect(settings, {})
            (found,) = database.query("SELECT count() AS n FROM system.tables WHERE database = currentDatabase()")
            assert found["n"] == 1 + sum(
                statement.startswith("CREATE TABLE") for one in shipped() for statement in one.statements
            )
            assert database.query("SELECT number, name FROM schema_migrations FINAL ORDER BY number") == [
                {"number": one.number, "name": one.name} for one in shipped()
            ]
            database.close()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
