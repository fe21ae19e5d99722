"""A database is read by one statement, its parameters bound; what it cannot say was not read."""

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from collectors.records.sql import MOST_ROWS, sql_source
from collectors.records.threads import Threads
from pipeline.config.records import SqlSource, source_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError

QUERY = "SELECT order_id, amount, state FROM refunds WHERE order_id = :order"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A database with one refund."""
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE refunds (order_id TEXT, amount TEXT, state TEXT, body BLOB)")
        connection.execute("INSERT INTO refunds VALUES ('A-1', '12.50', 'committed', x'00')")
    connection.close()
    return path


def settings(path: Path, query: str = QUERY, **written: Any) -> SqlSource:
    return SqlSource.model_validate({"url": f"sqlite:///{path}", "query": query} | written)


async def ask(one: SqlSource, **key: Any) -> Any:
    async with sql_source(one, 2) as source:
        return await source(key)


async def test_each_row_is_a_record_and_none_is_an_empty_list(ledger: Path) -> None:
    assert await ask(settings(ledger), order="A-1") == [{"order_id": "A-1", "amount": "12.50", "state": "committed"}]
    assert await ask(settings(ledger), order="B-7") == []


@pytest.mark.parametrize("key", ["' OR '1'='1", "A-1'; DROP TABLE refunds; --", "%", ":order", "{order}"])
async def test_what_an_agent_writes_is_a_value_and_never_a_part_of_the_statement(ledger: Path, key: str) -> None:
    assert await ask(settings(ledger), order=key) == []
    assert await ask(settings(ledger), order="A-1") != []


async def test_reads_beside_each_other_and_one_after_the_other(ledger: Path) -> None:
    memory = SqlSource.model_validate({"url": "sqlite://", "query": "SELECT :order AS order_id"})
    for one in (settings(ledger), memory):
        async with sql_source(one, 4) as source:
            for _ in range(3):
                found = await asyncio.gather(*(source({"order": "A-1"}) for _ in range(4)))
                assert {rows[0]["order_id"] for rows in found} == {"A-1"}


async def test_nothing_can_be_written(ledger: Path) -> None:
    writing = settings(ledger).model_copy(update={"query": "DELETE FROM refunds WHERE order_id = :order"})
    with pytest.raises(TemporaryError, match="OperationalError"):
        await ask(writing, order="A-1")
    assert await ask(settings(ledger), order="A-1") != []


async def test_a_database_that_is_not_there_is_temporary_and_its_url_is_told_nobody(tmp_path: Path) -> None:
    with pytest.raises(TemporaryError, match=r"^the database cannot answer \(OperationalError\)$"):
        await ask(settings(tmp_path / "hunter2" / "ledger.db"), order="A-1")


async def test_what_json_cannot_say_and_what_is_too_much_was_not_read(ledger: Path) -> None:
    with pytest.raises(PermanentError, match="the answer has a bytes, which JSON cannot say; cast it in the query"):
        await ask(settings(ledger, "SELECT body FROM refunds"))
    counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most) SELECT i FROM n"
    assert len(await ask(settings(ledger, counting), most=MOST_ROWS)) == MOST_ROWS
    with pytest.raises(PermanentError, match=f"more than {MOST_ROWS} rows"):
        await ask(settings(ledger, counting), most=MOST_ROWS + 1)


async def test_the_url_may_stand_in_a_file(ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"sqlite:///{ledger}\n")
    named = SqlSource.model_validate({"url_file": str(tmp_path / "url"), "query": QUERY})
    assert len(await ask(named, order="A-1")) == 1
    with pytest.raises(ConfigurationError, match=r"url_file cannot be read \(FileNotFoundError\); name a file"):
        await ask(named.model_copy(update={"url_file": tmp_path / "none"}), order="A-1")


@pytest.mark.parametrize("url", ["hunter2", "nothing://hunter2@host/db", "postgresql+hunter2://host/db"])
async def test_a_url_that_names_no_database_is_a_sentence_without_the_url(url: str) -> None:
    with pytest.raises(ConfigurationError, match="url names no database that can be read here") as raised:
        await ask(SqlSource.model_validate({"url": url, "query": QUERY}), order="A-1")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "query", ["DELETE FROM refunds", "UPDATE refunds SET amount = 1", "SELECT 1; DROP TABLE refunds", "", "selection"]
)
def test_a_query_that_does_more_than_read_is_refused(query: str) -> None:
    with pytest.raises(ValidationError, match="write one statement that begins with SELECT or WITH"):
        SqlSource.model_validate({"url": "sqlite://", "query": query})


def test_parameters_are_what_is_bound_and_the_url_is_in_no_contract() -> None:
    query = "SELECT a::text, ':x', b FROM t WHERE c = :order AND d > :since"
    written = TracegradeSettings.model_validate({"records": {"ledger": {"sql": {"url": "sqlite:///hunter2", "query": query}}}})
    source = source_of("ledger", written.records["ledger"])
    assert source.parameters == frozenset({"order", "since", "x"}), "SQLAlchemy binds inside quotes too: write \\: there"
    assert source.terms == {"kind": "sql", "query": query}
    assert "hunter2" not in repr(written)


async def test_a_call_that_hangs_is_given_up_and_so_many_may_hang() -> None:
    threads: Threads[int] = Threads(2)
    until = time.monotonic() + 30
    release = asyncio.Event()

    def hang() -> int:
        while not release.is_set() and time.monotonic() < until:
            time.sleep(0.005)
        return 1

    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await threads.call(hang)
    with pytest.raises(TemporaryError, match="earlier reads of the source have not ended"):
        await threads.call(lambda: 2)
    release.set()
    async with asyncio.timeout(30):
        while True:
            try:
                assert await threads.call(lambda: 3) == 3
                break
            except TemporaryError:
                await asyncio.sleep(0.005)


async def test_what_a_call_raises_is_raised_where_it_is_awaited() -> None:
    def wrong() -> int:
        raise KeyError("x")

    def ends() -> int:
        raise SystemExit(1)

    with pytest.raises(KeyError):
        await Threads[int](1).call(wrong)
    with pytest.raises(RuntimeError, match="SystemExit"):
        await Threads[int](1).call(ends)
