"""Facts, other writes and reads do not wait for each other, and all of them are finished before the store is closed."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import a_span
from unit.clickhouse.records import Recorder, a_run, a_run_version, a_version

from pipeline.config.store import StoreSettings
from sinks.clickhouse.connection import Database, connect
from sinks.clickhouse.migrate import migrate
from sinks.clickhouse.store import Store


class Held(Recorder):
    """A database whose inserts wait until they are let go."""

    def __init__(self, inner: Database) -> None:
        super().__init__(inner)
        self.reached, self.let_go = threading.Event(), threading.Event()
        self.closed = False

    def insert(self, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        self.reached.set()
        assert self.let_go.wait(30)
        assert not self.closed
        super().insert(table, columns, data, token)

    def close(self) -> None:
        self.closed = True
        super().close()


@pytest.fixture
def settings(tmp_path: Path) -> StoreSettings:
    return StoreSettings(path=tmp_path / "data")


@pytest.fixture
def held(settings: StoreSettings) -> Iterator[Held]:
    inner = connect(settings, {})
    migrate(inner)
    database = Held(inner)
    yield database
    database.let_go.set()
    database.close()


async def test_spans_and_reads_do_not_wait_for_results(settings: StoreSettings, held: Held) -> None:
    store = Store(connect(settings, {}), held, connect(settings, {}))
    version = a_version(a_run_version(a_run("default")))
    writing = asyncio.ensure_future(store.write([version]))
    await asyncio.to_thread(held.reached.wait, 30)
    await store.insert_spans([a_span()])
    loaded = await store.load([("default", version.trace_id)])
    assert not writing.done()
    assert [len(one.spans) for one in loaded.values()] == [1], "what a write stored, every later read sees"
    held.let_go.set()
    await writing
    await store.close()


async def test_closing_waits_for_what_was_begun_and_may_be_repeated(settings: StoreSettings, held: Held) -> None:
    store = Store(held, connect(settings, {}), connect(settings, {}))
    writing = asyncio.ensure_future(store.insert_spans([a_span()]))
    await asyncio.to_thread(held.reached.wait, 30)
    closing = asyncio.ensure_future(store.close())
    held.let_go.set()
    await asyncio.gather(writing, closing)
    await store.close()
    again = Store.open(settings, {})
    assert [len(one.spans) for one in (await again.load([("default", a_span().trace_id)])).values()] == [1]
    await again.close()
