"""Workers start together, on a server where nobody made anything yet."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from clickhouse_front import Front
from clickhouse_front_databases import a_database

from pipeline.config.retention import RetentionSettings
from sinks.clickhouse.connection import connect
from sinks.clickhouse.migrate import shipped
from sinks.clickhouse.retention import retain

_WORKER = """
import sys
from pipeline.config.retention import RetentionSettings
from pipeline.config.store import StoreSettings
from sinks.clickhouse.connection import connect
from sinks.clickhouse.migrate import migrate
from sinks.clickhouse.retention import retain
print("ready", flush=True)
for line in sys.stdin:
    database = connect(StoreSettings(url=sys.argv[1], database=line.strip()), {})
    for _ in range(2):
        migrate(database)
        retain(database, RetentionSettings())
    database.close()
    print("made", flush=True)
"""


class Worker:
    """A process that makes the tables of each database that it is told, and sets how long their rows are kept."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", _WORKER, url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[3],
            )
        )
        stack.callback(lambda: _pipe(self._process.stdin).close())

    def makes(self, database: str) -> None:
        """Tell it to begin."""
        stdin = _pipe(self._process.stdin)
        stdin.write(f"{database}\n")
        stdin.flush()

    def says(self, word: str) -> bool:
        """Whether this is the next word of it; what libraries print is passed over."""
        return word in iter(lambda: _pipe(self._process.stdout).readline().strip() or None, None)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def test_workers_that_start_together_on_a_server_with_nothing_on_it_make_one_schema_and_agree(front: Front) -> None:
    with ExitStack() as stack:
        workers = [Worker(front.url, stack) for _ in range(3)]
        assert all(worker.says("ready") for worker in workers)
        for _ in range(2):
            settings = stack.enter_context(a_database(front.url))
            for worker in workers:
                worker.makes(settings.database)
            assert all(worker.says("made") for worker in workers)
            database = connect(settings, {})
            (found,) = database.query("SELECT count() AS n FROM system.tables WHERE database = currentDatabase()")
            assert found["n"] == 1 + sum(
                statement.startswith("CREATE TABLE") for one in shipped() for statement in one.statements
            )
            assert database.query("SELECT number, name FROM schema_migrations FINAL ORDER BY number") == [
                {"number": one.number, "name": one.name} for one in shipped()
            ]
            assert retain(database, RetentionSettings()) == []
            database.close()
