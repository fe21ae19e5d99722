"""Whose folder it is, what is temporary, and what a person has to fix."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from unit.clickhouse.records import opened

from pipeline.config.store import StoreSettings
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from sinks.clickhouse.connection import ClickHouse, connect

VARIABLE = "CH_PASSWORD"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def engine(folder: Path) -> Iterator[ClickHouse]:
    with opened(StoreSettings(path=folder)) as database:
        yield database


def elsewhere(body: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python in a process of its own."""
    code = "from pathlib import Path\nfrom pipeline.config.store import StoreSettings\nfrom sinks.clickhouse.connection import connect\n"
    code += f"settings = StoreSettings(path=Path({str(folder)!r}))\n{textwrap.dedent(body)}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_a_folder_that_another_process_has_open_is_refused_with_its_number(folder: Path) -> None:
    body = """
    import subprocess, sys
    held = connect(settings, {})
    print(held.query("SELECT 1 AS one"), flush=True)
    sys.stdin.read()
    """
    code = "from pathlib import Path\nfrom pipeline.config.store import StoreSettings\nfrom sinks.clickhouse.connection import connect\n"
    code += f"settings = StoreSettings(path=Path({str(folder)!r}))\n{textwrap.dedent(body)}"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(ConfigurationError, match=rf"is open in process {holder.pid}, a running `tracegrade up`"):
            connect(StoreSettings(path=folder), {})
        holder.kill()
    connect(StoreSettings(path=folder), {}).close()


def test_what_was_inserted_before_a_kill_is_there_after_it(folder: Path) -> None:
    body = """
    import os, signal
    database = connect(settings, {})
    database.command("CREATE TABLE kept (x UInt64) ENGINE = MergeTree ORDER BY x")
    database.insert("kept", ("x",), [[1, 2, 3]], None)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    assert elsewhere(body, folder).returncode == -9
    with opened(StoreSettings(path=folder)) as database:
        assert database.query("SELECT sum(x) AS total FROM kept") == [{"total": 6}]


def test_one_process_opens_one_folder(engine: ClickHouse, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="this process has another data folder open"):
        connect(StoreSettings(path=tmp_path / "other"), {})
    assert engine.query("SELECT 1 AS one") == [{"one": 1}]


def test_several_connections_of_one_process_share_a_folder(engine: ClickHouse, folder: Path) -> None:
    engine.command("CREATE TABLE shared (x UInt64) ENGINE = MergeTree ORDER BY x")
    engine.insert("shared", ("x",), [[7]], None)
    other = connect(StoreSettings(path=folder), {})
    assert other.query("SELECT x FROM shared") == [{"x": 7}]
    other.close()


def test_a_folder_can_be_opened_again_and_another_after_it(folder: Path, tmp_path: Path) -> None:
    for path in (folder, tmp_path / "other", folder):
        with opened(StoreSettings(path=path)) as database:
            assert database.query("SELECT 1 AS one") == [{"one": 1}]


def test_closing_twice_is_closing_once(folder: Path) -> None:
    database = connect(StoreSettings(path=folder), {})
    database.close()
    database.close()
    with opened(StoreSettings(path=folder)) as again:
        assert again.query("SELECT 1 AS one") == [{"one": 1}]


def test_a_folder_that_cannot_be_made_says_which_and_why(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(ConfigurationError, match=r"file/data cannot be made: Not a directory; choose another as store.path"):
        connect(StoreSettings(path=file / "data"), {})


def test_a_server_that_does_not_answer_is_temporary_trouble() -> None:
    with pytest.raises(TemporaryError, match=r"ClickHouse server at http://ann@127.0.0.1:1 cannot answer now"):
        connect(StoreSettings(url="http://ann@127.0.0.1:1"), {})


def test_a_password_that_is_not_in_the_environment_is_asked_for_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"store\.password_env names CH_PASSWORD, which is not set"):
        connect(StoreSettings(url="http://127.0.0.1:1", password_env=VARIABLE), {})


class _Failing:
    """A client that fails in a given way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        DatabaseError("Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space", code=243, name="NOT_ENOUGH_SPACE"),
        DatabaseError("Code: 241. memory limit exceeded", code=241),
        DatabaseError("Code: 252. too many parts", code=252),
        OperationalError("connection refused"),
        OSError(28, "No space left on device"),
    ],
)
def test_a_full_disk_and_a_broken_network_are_temporary(error: Exception) -> None:
    broken = ClickHouse(_Failing(error))  # type: ignore[arg-type]
    for call in (
        lambda: broken.insert("t", ("x",), [[1]], None),
        lambda: broken.query("SELECT 1"),
        lambda: broken.command("SELECT 1"),
    ):
        with pytest.raises(TemporaryError):
            call()


def test_a_statement_that_the_engine_does_not_understand_is_a_bug_and_stays_one(engine: ClickHouse) -> None:
    with pytest.raises(DatabaseError):
        engine.query("SELECT FROM WHERE")


def test_data_that_no_column_can_hold_is_refused_for_good(engine: ClickHouse) -> None:
    engine.command("CREATE TABLE small (x UInt8, y String) ENGINE = MergeTree ORDER BY x")
    rejected: list[list[list[Any]]] = [[[300], ["a"]], [[1], [None]]]
    for data in rejected:
        with pytest.raises(PermanentError, match="the store cannot hold this"):
            engine.insert("small", ("x", "y"), data, None)
    assert engine.query("SELECT * FROM small") == []


def test_equal_inserts_without_a_token_are_both_stored(engine: ClickHouse) -> None:
    """A row may be written, superseded by an equal version that differs, and written again: that must not be dropped as a repetition."""
    engine.command(
        "CREATE TABLE twice (x UInt8) ENGINE = MergeTree ORDER BY x SETTINGS non_replicated_deduplication_window = 1000"
    )
    for _ in range(2):
        engine.insert("twice", ("x",), [[1]], None)
    for _ in range(2):
        engine.insert("twice", ("x",), [[2]], "token")
    assert engine.query("SELECT x, count() AS rows FROM twice GROUP BY x ORDER BY x") == [
        {"x": 1, "rows": 2},
        {"x": 2, "rows": 1},
    ]


def test_an_insert_of_many_blocks_is_one_part_so_it_is_stored_whole_or_not_at_all(engine: ClickHouse) -> None:
    engine.command("CREATE TABLE big (x UInt64, y String) ENGINE = MergeTree ORDER BY x")
    engine.command("SYSTEM STOP MERGES big")
    engine.insert("big", ("x", "y"), [list(range(10_000)), ["y" * 2000] * 10_000], None)
    parts = engine.query("SELECT rows FROM system.parts WHERE table = 'big' AND active AND database = currentDatabase()")
    assert parts == [{"rows": 10_000}]
