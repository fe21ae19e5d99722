"""Databases of their own for tests: on the front, or on the server that TRACEGRADE_TEST_CLICKHOUSE names."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import pytest

from pipeline.config.store import StoreSettings
from sinks.clickhouse.connection import connect

SERVER: Final = "TRACEGRADE_TEST_CLICKHOUSE"
"""A real server, such as ``http://default@localhost:8123``; its password, if any, is in the variable with ``_PASSWORD`` behind."""
ENGINES: Final = ["embedded", "http", *([pytest.param("server", marks=pytest.mark.server)] if SERVER in os.environ else [])]
"""What every test of the store's SQL runs on. Where there is no real server, one test says so: ``tests/integration``."""


@contextmanager
def a_database(url: str, password_env: str | None = None, environment: Mapping[str, str] = os.environ) -> Iterator[StoreSettings]:
    """A database with a name that nobody else has, dropped afterwards."""
    settings = StoreSettings(url=url, password_env=password_env, database=f"test_{uuid4().hex[:12]}")
    try:
        yield settings
    finally:
        database = connect(settings, environment)
        database.command(f"DROP DATABASE `{settings.database}` SYNC")
        database.close()


@contextmanager
def a_database_of_a_real_server() -> Iterator[StoreSettings]:
    """The same on the server that the environment names; without one the test is skipped."""
    if SERVER not in os.environ:
        pytest.skip(f"no server: name one as {SERVER}")
    password = f"{SERVER}_PASSWORD"
    with a_database(os.environ[SERVER], password if password in os.environ else None) as settings:
        yield settings
