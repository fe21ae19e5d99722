"""Connection: the one place that knows clickhouse-connect. An embedded engine on a folder, or a server; the same calls for both.

Times are whole numbers in both directions: nanoseconds in DateTime64(9), seconds in DateTime64(0). No ``datetime`` and no time zone of
the machine ever takes part.
"""

import fcntl
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DataError, Error, ProgrammingError

from pipeline.config.store import StoreSettings
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from sinks.clickhouse.engine_errors import may_pass, ours, sentence, status_of
from sinks.clickhouse.long_lists import in_pieces
from sinks.clickhouse.text import without_surrogates

Row: TypeAlias = dict[str, Any]
"""One row by column name, as plain values."""

_WHOLE_NUMBERS: Final = {"DateTime*": "int"}
_SETTINGS: Final = {"async_insert": 0}
"""An insert that returned is stored, and its deduplication token was read (reliability D7: asynchronous inserts ignore it)."""
_CONNECT_TIMEOUT_S: Final = 5
"""The client tries twice."""
_SILENCE_TIMEOUT_S: Final = 60
"""How long a server may say nothing. While it works it says so every 55 s, so what takes longer is waited for."""


class Database(Protocol):
    """What the store needs of an engine. Used by one thread at a time.

    Every method raises TemporaryError where the same call may work later.
    """

    def insert(self, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        """Store columns of equal length, durably and whole.

        The same token with the same data is stored once; without a token nothing is compared.

        Raises:
            PermanentError: the engine will never take this data.
        """
        ...

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        """Return the rows of a query; parameters are bound by the engine, never written into the SQL."""
        ...

    def command(self, sql: str) -> None:
        """Run a statement that returns nothing."""
        ...

    def close(self) -> None:
        """Let go of the engine; safe to call twice."""
        ...


class ClickHouse:
    """A connection of its own to the embedded engine or a server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._types: dict[tuple[str, tuple[str, ...]], Sequence[Any]] = {}

    def insert(self, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        """Store columns durably; see :class:`Database`."""
        with _translated(), _refused():
            try:
                self._insert(table, columns, data, token)
            except UnicodeEncodeError:
                self._insert(table, columns, [[without_surrogates(cell) for cell in column] for column in data], token)

    def _insert(self, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]], token: str | None) -> None:
        self._client.insert(
            table,
            data,
            column_names=list(columns),
            column_types=self._types_of(table, columns),
            column_oriented=True,
            # Engines compare the blocks themselves where there is no token, and what turns that off differs from one version to the next.
            settings={"insert_deduplication_token": token if token is not None else uuid4().hex},
        )

    def _types_of(self, table: str, columns: Sequence[str]) -> Sequence[Any]:
        """Types are asked for once a table, not once an insert."""
        key = (table, tuple(columns))
        if key not in self._types:
            self._types[key] = self._client.create_insert_context(table, list(columns)).column_types
        return self._types[key]

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        """Return rows by column name; see :class:`Database`."""
        with _translated():
            sql, bound = in_pieces(sql, parameters or {})
            result = self._client.query(sql, parameters=bound, query_formats=_WHOLE_NUMBERS)
            return [dict(zip(result.column_names, row, strict=True)) for row in result.result_rows]

    def command(self, sql: str) -> None:
        """Run a statement; see :class:`Database`."""
        with _translated():
            self._client.command(sql)

    def ping(self) -> bool:
        """Whether the engine answers; unlike the rest, from any thread and while another call runs."""
        return self._client.ping()

    def close(self) -> None:
        """Close the connection; the engine is left when its last connection is closed."""
        self._client.close()


def connect(settings: StoreSettings, environment: Mapping[str, str]) -> ClickHouse:
    """Open a connection, and make the database where there is none. Several connections of one process share a folder.

    Raises:
        ConfigurationError: a person can fix it: the folder belongs to another process, no such user, no engine installed.
        TemporaryError: the server does not answer now.
    """
    # What it says of failures is in what it raises, which the caller tells or retries.
    for library in ("clickhouse_connect", "urllib3.connectionpool"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    options = _server(settings, environment) if settings.url is not None else _folder(settings.path)
    # The database is made through a connection without one: with a missing one every statement fails.
    first = _client(settings, options)
    try:
        with _translated():
            _make_database(first, settings.database)
        return ClickHouse(_client(settings, {**options, "database": settings.database}))
    finally:
        first.close()


def _make_database(client: Client, name: str) -> None:
    # A user who may not make databases is given one, and is refused even with IF NOT EXISTS.
    if not client.query("SELECT 1 FROM system.databases WHERE name = {name:String}", parameters={"name": name}).row_count:
        client.command("CREATE DATABASE IF NOT EXISTS {name:Identifier}", parameters={"name": name})


def _client(settings: StoreSettings, options: Mapping[str, Any]) -> Client:
    try:
        return clickhouse_connect.get_client(**options, settings=dict(_SETTINGS))
    except ImportError as error:
        raise ConfigurationError(
            'the embedded store is not installed; run pip install "tracegrade[embedded]", or set store.url to a ClickHouse server'
        ) from error
    except Error as error:
        if settings.url is None:
            raise ConfigurationError(_why_not(settings.path, str(error))) from error
        where = f"the ClickHouse server at {settings.url}"
        status = status_of(error)
        if isinstance(error, ProgrammingError):
            raise ConfigurationError(
                f"{where} does not let the user set what the store needs; change its profile: {sentence(error)}"
            ) from error
        if status is not None and not may_pass(status):
            raise ConfigurationError(
                f"{settings.url} does not answer as a ClickHouse server; check store.url: {sentence(error)}"
            ) from error
        raise ours(error, where) from error


def _server(settings: StoreSettings, environment: Mapping[str, str]) -> dict[str, Any]:
    parts = urlsplit(settings.url or "")
    password = ""
    if settings.password_env is not None:
        if settings.password_env not in environment:
            raise ConfigurationError(f"store.password_env names {settings.password_env}, which is not set in the environment")
        password = environment[settings.password_env]
    return {
        "interface": parts.scheme,
        "host": parts.hostname,
        "port": parts.port or (8443 if parts.scheme == "https" else 8123),
        "username": unquote(parts.username) if parts.username else "default",
        "password": password,
        # Lists of keys can be longer than a server takes in an address; one session would serialise threads (reliability R91).
        "form_encode_query_params": True,
        "autogenerate_session_id": False,
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "send_receive_timeout": _SILENCE_TIMEOUT_S,
    }


def _folder(path: Path) -> dict[str, Any]:
    folder = path.expanduser().resolve()
    holder = _holder(folder)
    if holder is not None and holder != os.getpid():
        raise ConfigurationError(_in_use(folder, holder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the data folder {folder} cannot be made: {error.strerror}; choose another as store.path"
        ) from error
    return {"interface": "chdb", "path": str(folder)}


def _holder(folder: Path) -> int | None:
    """Return the process that has the folder open, 0 where it does not say who it is, None where nobody has."""
    try:
        with (folder / "status").open() as status:
            try:
                fcntl.flock(status, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                said = re.search(r"PID: (\d+)", status.read())
                return int(said[1]) if said else 0
    except OSError:
        return None
    return None


def _why_not(path: Path, message: str) -> str:
    folder = path.expanduser().resolve()
    holder = _holder(folder)
    if holder is not None and holder != os.getpid():
        return _in_use(folder, holder)
    if "already initialized with path" in message:
        return f"this process has another data folder open, so it cannot open {folder}: one process opens one folder"
    return f"the data folder {folder} cannot be opened; choose another as store.path, or restore it from a copy: {message}"


def _in_use(folder: Path, holder: int) -> str:
    who = f"process {holder}" if holder else "another process"
    return (
        f"the data folder {folder} is open in {who}, a running `tracegrade up` as a rule; "
        "ask that one over its address, stop it first, or choose another folder as store.path"
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Error as error:
        raise ours(error, where="the store") from error
    except OSError as error:  # the embedded engine takes an insert from a temporary file: a full disk is seen here first
        raise TemporaryError(f"the store cannot write: {error}") from error


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except (DataError, UnicodeError, OverflowError) as error:
        raise PermanentError(f"the store cannot hold this: {error}") from error
