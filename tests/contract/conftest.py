"""The stores that must all behave alike: in memory, embedded, on a server over HTTP, and on a real server where there is one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from clickhouse_front import Front
from clickhouse_front_databases import ENGINES, a_database, a_database_of_a_real_server
from contract.conformance import Table, Told

from pipeline.config.store import StoreSettings
from sinks.clickhouse.store import Store
from sinks.memory_gates import MemoryGateStore


@pytest.fixture(scope="session")
def told() -> Iterator[Told]:
    """Takes down what was asked and answered; ``pytest -s`` prints it at the end."""
    table = Table()
    yield table.tell
    print("", *table.lines(), sep="\n")  # noqa: T201 - the table is for a reader


@contextmanager
def _opened(settings: StoreSettings) -> Iterator[Store]:
    store = Store.open(settings)
    yield store
    asyncio.run(store.close())


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with _opened(StoreSettings(path=tmp_path_factory.mktemp("store"))) as store:
        yield store


@pytest.fixture(scope="module")
def http(front: Front) -> Iterator[Store]:
    with a_database(front.url) as settings, _opened(settings) as store:
        yield store


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with a_database_of_a_real_server() as settings, _opened(settings) as store:
        yield store


@pytest.fixture(params=ENGINES)
def clickhouse(request: pytest.FixtureRequest) -> Store:
    store: Store = request.getfixturevalue(request.param)
    return store


@pytest.fixture(params=["memory", *ENGINES])
def store(request: pytest.FixtureRequest) -> Store | MemoryGateStore:
    if request.param == "memory":
        return MemoryGateStore()
    store: Store = request.getfixturevalue(request.param)
    return store
