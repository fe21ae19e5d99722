"""Shared by all tests."""

import os
from collections.abc import Iterator

import pytest
import structlog
from clickhouse_front import Front
from kafka_broker import Broker
from kafka_jars import UnavailableError

LONGEST = ("test_two_runtimes", "test_kill_nine", "test_demo", "test_compose_commands", "test_gate_owner_laws", "test_bridge")
"""Modules that take minutes: they begin first, so that no process of the tests is left with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One real broker for the session; it stays as tests leave it."""
    try:
        made = Broker()
    except UnavailableError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    with made:
        yield made


@pytest.fixture
def empty_broker(broker: Broker) -> Broker:
    """The session's broker, without topics and groups."""
    broker.clear()
    return broker


@pytest.fixture(scope="session")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """One ClickHouse server for the session: a test takes a database of its own on it, and leaves it as it found it."""
    with Front(tmp_path_factory.mktemp("front")) as made:
        yield made


@pytest.fixture(autouse=True)
def _logs_of_its_own() -> Iterator[None]:
    """A test that configures logs writes to what was its stderr; the next one has another."""
    yield
    structlog.reset_defaults()
