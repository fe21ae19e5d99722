"""A server over HTTP: whose trouble it is, what is sent again, and that nothing is stored twice."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import clickhouse_connect
import pytest
from builders import a_span
from clickhouse_connect.driver.exceptions import DatabaseError, ProgrammingError
from clickhouse_front import Front
from clickhouse_front_databases import a_database

from pipeline.config.store import StoreSettings
from pipeline.errors import ConfigurationError, TemporaryError
from sinks.clickhouse import connection
from sinks.clickhouse.connection import ClickHouse, connect
from sinks.clickhouse.store import Store

VARIABLE = "CH_PASSWORD"
QUIET = {"down_s": 0, "apply_then_500": 0, "apply_then_close": 0, "cut": 0, "fail_500": 0, "delay_ms": 0}
projects = (f"http-{number}" for number in count())


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A front of this module's own, which may be killed."""
    with Front(tmp_path_factory.mktemp("own")) as made:
        yield made


@pytest.fixture
def faulty(own: Front) -> Iterator[Front]:
    yield own
    if own.running:
        own.faults(**QUIET)
    else:
        own.start()


@pytest.fixture
def server(faulty: Front) -> Iterator[ClickHouse]:
    database = connect(StoreSettings(url=faulty.url), {})
    database.command("DROP TABLE IF EXISTS t")
    database.command("CREATE TABLE t (x UInt64) ENGINE = MergeTree ORDER BY x SETTINGS non_replicated_deduplication_window = 100")
    yield database
    database.close()


def stored(database: ClickHouse) -> int:
    (row,) = database.query("SELECT count() AS n FROM t")
    number: int = row["n"]
    return number


CALLS: list[Callable[[ClickHouse], Any]] = [
    lambda database: database.insert("t", ("x",), [[1, 2]], "token"),
    lambda database: database.query("SELECT number FROM numbers(1000)"),
    lambda database: database.command("SELECT 1"),
]


@pytest.mark.parametrize("fault", ["fail_500", "down_s"])
@pytest.mark.parametrize("call", CALLS, ids=["insert", "query", "command"])
def test_an_answer_without_a_code_of_the_engine_is_temporary_trouble(
    server: ClickHouse, faulty: Front, call: Callable[[ClickHouse], Any], fault: str
) -> None:
    stored(server)
    faulty.faults(**{fault: 30})
    with pytest.raises(TemporaryError, match="cannot answer now: HTTP driver received HTTP status 50"):
        call(server)
    faulty.faults(**QUIET)
    call(server)


@pytest.mark.parametrize("call", CALLS, ids=["insert", "query", "command"])
def test_a_server_that_was_killed_is_temporary_trouble_and_found_again_by_the_same_connection(
    server: ClickHouse, faulty: Front, call: Callable[[ClickHouse], Any]
) -> None:
    call(server)
    faulty.kill()
    with pytest.raises(TemporaryError, match="Connection refused"):
        call(server)
    faulty.start()
    call(server)


@pytest.mark.parametrize("call", CALLS, ids=["insert", "query", "command"])
def test_a_server_that_dies_over_a_request_is_temporary_trouble(
    server: ClickHouse, faulty: Front, call: Callable[[ClickHouse], Any]
) -> None:
    stored(server)
    faulty.faults(delay_ms=60_000)
    before = faulty.counted["requests"]

    def kill_once_it_is_asked() -> None:
        while faulty.counted["requests"] == before:
            pass
        faulty.kill()

    killer = threading.Thread(target=kill_once_it_is_asked)
    killer.start()
    with pytest.raises(TemporaryError):
        call(server)
    killer.join()


@pytest.mark.parametrize("call", CALLS, ids=["insert", "query", "command"])
def test_a_server_that_says_nothing_is_not_waited_for_for_ever(
    faulty: Front, monkeypatch: pytest.MonkeyPatch, call: Callable[[ClickHouse], Any]
) -> None:
    monkeypatch.setattr(connection, "_SILENCE_TIMEOUT_S", 1)
    server = connect(StoreSettings(url=faulty.url), {})
    server.command("CREATE TABLE IF NOT EXISTS t (x UInt64) ENGINE = MergeTree ORDER BY x")
    call(server)
    os.kill(faulty.pid, signal.SIGSTOP)
    try:
        with pytest.raises(TemporaryError, match="Read timed out"):
            call(server)
    finally:
        os.kill(faulty.pid, signal.SIGCONT)


def test_an_answer_that_ends_in_its_middle_is_no_shorter_answer(server: ClickHouse, faulty: Front) -> None:
    faulty.faults(cut=1)
    with pytest.raises(TemporaryError):
        server.query("SELECT number FROM numbers(100000)")
    assert len(server.query("SELECT number FROM numbers(100000)")) == 100_000


def test_a_statement_that_the_engine_does_not_understand_stays_a_bug_over_http(server: ClickHouse) -> None:
    with pytest.raises(DatabaseError, match="Syntax error") as caught:
        server.query("SELECT FROM WHERE")
    assert caught.value.code == 62


@pytest.mark.parametrize("token", ["of-its-own", None])
def test_an_insert_whose_connection_broke_after_it_was_applied_is_sent_again_and_stored_once(
    server: ClickHouse, faulty: Front, token: str | None
) -> None:
    seen = faulty.counted.get("inserts_with_a_token_seen_before", 0)
    faulty.faults(apply_then_close=1)
    server.insert("t", ("x",), [[1, 2, 3]], token)
    assert faulty.counted["inserts_with_a_token_seen_before"] == seen + 1
    assert stored(server) == 3


def test_an_insert_that_was_applied_and_answered_500_is_stored_once_when_it_is_made_again(
    server: ClickHouse, faulty: Front
) -> None:
    faulty.faults(apply_then_500=2)
    for _ in range(2):
        with pytest.raises(TemporaryError):
            server.insert("t", ("x",), [[1, 2, 3]], "token")
    server.insert("t", ("x",), [[1, 2, 3]], "token")
    assert stored(server) == 3


async def test_a_fact_is_one_row_however_often_a_server_applied_it_and_was_killed(faulty: Front) -> None:
    with a_database(faulty.url) as settings:
        store = await asyncio.to_thread(Store.open, settings)
        spans = [a_span(f"{number:016x}", project="once") for number in range(5)]
        faulty.faults(apply_then_500=1)
        with pytest.raises(TemporaryError):
            await store.insert_spans(spans)
        faulty.kill()
        with pytest.raises(TemporaryError):
            await store.insert_spans(spans)
        faulty.start()
        await store.insert_spans(spans)
        assert await store.unfinished() == [("once", spans[0].trace_id)]
        await store.close()
        database = connect(settings, {})
        assert database.query("SELECT count() AS n FROM spans") == [{"n": 5}]
        database.close()


def test_a_password_is_checked_and_a_wrong_one_is_for_a_person_to_fix(tmp_path: Path) -> None:
    with Front(tmp_path, "ann", "secret") as front:
        settings = StoreSettings(url=front.url, password_env=VARIABLE)
        connect(settings, {VARIABLE: "secret"}).close()
        with pytest.raises(ConfigurationError, match=r"refuses the user; check store\.url, store\.password_env") as caught:
            connect(settings, {VARIABLE: "wrong-guess"})
        assert "wrong-guess" not in str(caught.value)


def test_a_user_who_lacks_a_right_is_for_a_person_to_fix_also_later() -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise DatabaseError("Code: 497. DB::Exception: ann: Not enough privileges.", code=497)

    client: Any = SimpleNamespace(query=refuse, command=refuse)
    for call in (CALLS[1], CALLS[2]):
        with pytest.raises(ConfigurationError, match="the user's rights"):
            call(ClickHouse(client))


def test_a_user_who_may_not_make_databases_can_use_the_one_that_was_made_for_it(
    faulty: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(StoreSettings(url=faulty.url), {}).close()
    sent = []
    original = clickhouse_connect.get_client

    def listened(**options: Any) -> Any:
        client = original(**options)
        monkeypatch.setattr(client, "command", lambda sql, **_: sent.append(sql))
        return client

    monkeypatch.setattr(clickhouse_connect, "get_client", listened)
    connect(StoreSettings(url=faulty.url), {})
    assert sent == []


def test_a_profile_that_forbids_what_the_store_sets_is_for_a_person_to_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> Any:
        raise ProgrammingError("Setting async_insert is unknown or readonly")

    monkeypatch.setattr(clickhouse_connect, "get_client", refuse)
    with pytest.raises(ConfigurationError, match="change its profile: Setting async_insert"):
        connect(StoreSettings(url="http://127.0.0.1:1"), {})


def test_another_service_at_the_address_is_for_a_person_to_fix_and_a_proxy_in_trouble_is_not() -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        status = 404

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(self.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """A test's output is its own."""

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        settings = StoreSettings(url=f"http://127.0.0.1:{service.server_port}")
        with pytest.raises(ConfigurationError, match=r"does not answer as a ClickHouse server; check store\.url"):
            connect(settings, {})
        Elsewhere.status = 502
        with pytest.raises(TemporaryError):
            connect(settings, {})
        service.shutdown()
        thread.join()
