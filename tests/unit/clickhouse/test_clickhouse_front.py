"""The front is a server as far as a client can see: encodings, settings, parameters, many clients, and an end with its parent."""

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError
from clickhouse_front import PATIENCE_S, Front
from clickhouse_front_databases import a_database

from pipeline.config.store import StoreSettings
from sinks.clickhouse.connection import connect


@pytest.fixture(scope="module")
def settings(front: Front) -> Iterator[StoreSettings]:
    with a_database(front.url) as made:
        connect(made, {}).close()
        yield made


def a_client(settings: StoreSettings, *, compress: str | bool = True) -> Client:
    parts = urlsplit(settings.url or "")
    return clickhouse_connect.get_client(
        host=parts.hostname, port=parts.port, database=settings.database, compress=compress, autogenerate_session_id=False
    )


@pytest.mark.parametrize("compress", ["lz4", "zstd", "gzip", False])
def test_a_body_of_many_blocks_arrives_whole_in_every_encoding(settings: StoreSettings, compress: str | bool) -> None:
    client = a_client(settings, compress=compress)
    client.command("CREATE OR REPLACE TABLE blocks (x UInt64, y String) ENGINE = MergeTree ORDER BY x")
    rows = 10_000
    summary = client.insert("blocks", [list(range(rows)), ["y" * 2000] * rows], column_names=["x", "y"], column_oriented=True)
    assert summary.written_rows == rows
    assert client.query("SELECT count(), sum(x), min(y), max(y) FROM blocks").result_rows == [
        (rows, rows * (rows - 1) // 2, "y" * 2000, "y" * 2000)
    ]
    assert len(client.query("SELECT x, y FROM blocks").result_rows) == rows


def test_settings_are_of_one_request_and_a_client_that_names_none_has_the_defaults(settings: StoreSettings) -> None:
    client = a_client(settings)
    ask = "SELECT value, changed FROM system.settings WHERE name = 'max_threads'"
    for _ in range(4):
        assert client.query(ask, settings={"max_threads": 3}).result_rows == [("3", 1)]
        assert client.query(ask).result_rows[0][1] == 0
    with pytest.raises(DatabaseError) as caught:
        client.query("SELECT 1", settings={"no_such_setting": 1})
    assert caught.value.code == 115


def test_parameters_come_in_the_address_and_in_a_form_that_refuses_what_a_server_refuses(settings: StoreSettings) -> None:
    client = a_client(settings)
    form = clickhouse_connect.get_client(
        host=urlsplit(settings.url or "").hostname,
        port=urlsplit(settings.url or "").port,
        database=settings.database,
        form_encode_query_params=True,
    )
    for one in (client, form):
        assert one.query("SELECT {a:Array(String)}, {b:UInt64}", parameters={"a": ["x'\\\n", "é"], "b": 7}).result_rows == [
            (["x'\\\n", "é"], 7)
        ]
    with pytest.raises(DatabaseError, match="Field value too long"):
        form.query("SELECT length({a:String})", parameters={"a": "x" * (128 * 1024 + 2)})


def test_many_clients_at_once_do_not_disturb_each_other(settings: StoreSettings) -> None:
    with ThreadPoolExecutor(8) as pool:

        def work(number: int) -> int:
            client = a_client(settings)
            client.command(f"CREATE TABLE many_{number} (x UInt64) ENGINE = MergeTree ORDER BY x")
            for step in range(10):
                client.insert(f"many_{number}", [[step] * 100], column_names=["x"], column_oriented=True)
            ask = "SELECT count() FROM {table:Identifier}"
            counted: int = client.query(ask, {"table": f"many_{number}"}, {"max_threads": number + 1}).result_rows[0][0]
            return counted

        assert list(pool.map(work, range(8))) == [1000] * 8


def test_a_front_ends_with_the_process_that_started_it_however_that_ends(tmp_path: Path) -> None:
    code = f"""
    import os, signal
    from pathlib import Path
    from clickhouse_front import Front
    front = Front(Path({str(tmp_path)!r}))
    front.start()
    print(front.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    tests = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env={"PYTHONPATH": str(tests)}, capture_output=True, text=True, check=False
    )
    process = Path(f"/proc/{int(ended.stdout)}")
    deadline = time.monotonic() + PATIENCE_S
    while process.exists() and process.joinpath("stat").read_text().split()[2] != "Z":
        assert time.monotonic() < deadline
