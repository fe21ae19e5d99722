"""Shared by all tests."""

import logging
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
from clickhouse_front import Front
from hypothesis import settings
from kafka_broker import Broker
from machine import UnavailableError
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")  # how long one example takes says more of the machine than of the code

LONGEST = ("test_two_runtimes", "test_bridge", "test_compose_commands", "test_kill_nine", "test_up", "test_demo")
"""Modules that take minutes, the longest first: they begin first, so that no process of the tests is left with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    items.sort(key=lambda item: not _on_the_broker(item.path))


@cache
def _on_the_broker(module: Path) -> bool:
    return "pytest.mark.kafka" in module.read_text(encoding="utf-8")


class Together(LoadScopeScheduling):  # type: ignore[misc]
    """Says which tests run in one process: all on the broker, so that there is one; all that share a browser; and those of a module, which share what it starts.

    Laws share nothing that is started, and each of them takes long enough to go wherever there is room.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = self.config.rootpath / nodeid.partition("::")[0]
        if _on_the_broker(module):
            return "broker"
        if module.parent.name == "browser":
            return "browser"
        return nodeid if module.parent.name == "laws" else str(module)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    """Schedule them so, where there are several processes."""
    return Together(config, log)


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
    root = logging.getLogger()
    for handler in [one for one in root.handlers if type(one) is logging.StreamHandler]:  # pytest's own are subclasses
        root.removeHandler(handler)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which modules are imported, and forgotten afterwards: other tests call theirs the same."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(f"{tmp_path}/"):
            del sys.modules[name]
