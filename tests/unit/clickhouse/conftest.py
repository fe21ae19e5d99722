"""The engines that the store's SQL must mean the same to."""

from collections.abc import Iterator

import pytest
from clickhouse_front import Front
from clickhouse_front_databases import ENGINES, a_database, a_database_of_a_real_server
from unit.clickhouse.records import opened

from pipeline.config.store import StoreSettings
from sinks.clickhouse.connection import ClickHouse


@pytest.fixture(scope="module", params=ENGINES)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouse]:
    """A connection to an engine, its tables made; the same for all tests of a module."""
    if request.param == "embedded":
        with opened(StoreSettings(path=tmp_path_factory.mktemp("store"))) as engine:
            yield engine
        return
    front: Front = request.getfixturevalue("front")
    with (
        a_database(front.url) if request.param == "http" else a_database_of_a_real_server() as settings,
        opened(settings) as engine,
    ):
        yield engine
