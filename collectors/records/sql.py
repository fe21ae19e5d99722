"""A database, through SQLAlchemy: one statement that reads, its parameters bound by the driver. The one place that knows SQLAlchemy."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Engine, NullPool, create_engine, event, exc, make_url, text

from collectors.records.ask import Ask
from collectors.records.threads import Threads
from pipeline.config.records import SqlSource
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError

MOST_ROWS: Final = 200
"""Records of one answer; more is no answer."""


@asynccontextmanager
async def sql_source(settings: SqlSource, concurrency: int) -> AsyncIterator[Ask]:
    """Yield how the database is asked. It is not connected to before it is asked first.

    Raises:
        ConfigurationError: the URL names no database that can be spoken to, or its file cannot be read.
    """
    database = _Database(_engine(settings, concurrency), settings.query, concurrency)
    try:
        yield database.ask
    finally:
        await asyncio.wait({asyncio.ensure_future(Threads[None](1).call(database.close))}, timeout=1)


def _engine(settings: SqlSource, concurrency: int) -> Engine:
    try:
        url = make_url(_url(settings))
        if url.get_backend_name() == "sqlite":  # whose connections belong to their threads, and cost nothing to make
            engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
            event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only = ON"))
            return engine
        engine = create_engine(url, pool_size=concurrency, max_overflow=concurrency, pool_pre_ping=True, hide_parameters=True)
    except (exc.ArgumentError, exc.NoSuchModuleError, ImportError) as error:
        # What SQLAlchemy says of itself can hold the URL.
        raise ConfigurationError(
            f"url names no database that can be read here ({type(error).__name__}); write one as SQLAlchemy does, and install its driver"
        ) from None
    return engine.execution_options(postgresql_readonly=True)


def _url(settings: SqlSource) -> str:
    if settings.url is not None:
        return settings.url.get_secret_value()
    try:
        return settings.url_file.read_text(encoding="utf-8").strip() if settings.url_file is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"url_file cannot be read ({type(error).__name__}); name a file") from None


class _Database:
    def __init__(self, engine: Engine, query: str, concurrency: int) -> None:
        self._engine = engine
        self._query = text(query)
        self._threads: Threads[list[dict[str, Any]]] = Threads(2 * concurrency)
        self._floats = engine.dialect.name == "sqlite"

    async def ask(self, key: Mapping[str, Any]) -> Any:
        """Return the rows under a key, each an object; none is an empty list.

        Raises:
            TemporaryError: no connection, or the database is busy.
            PermanentError: it refused the statement, or returned what JSON cannot say.
        """
        return await self._threads.call(lambda: self._rows(key))

    def _rows(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        bound = {name: float(value) if self._floats and isinstance(value, Decimal) else value for name, value in key.items()}
        try:
            with self._engine.connect() as connection:  # what it began is rolled back when it ends
                rows = connection.execute(self._query, bound).mappings().fetchmany(MOST_ROWS + 1)
        except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError) as error:
            raise TemporaryError(f"the database cannot answer ({_called(error)})") from None
        except exc.SQLAlchemyError as error:
            raise PermanentError(f"the database refused ({_called(error)})") from None
        if len(rows) > MOST_ROWS:
            raise PermanentError(f"the answer has more than {MOST_ROWS} rows")
        return [{str(name): _plain(value) for name, value in row.items()} for row in rows]

    def close(self) -> None:
        """Let go of the connections that nobody uses."""
        self._engine.dispose()


def _called(error: exc.SQLAlchemyError) -> str:
    """Return what an error is, not what it says: that can hold a password, or what was bound."""
    return type(getattr(error, "orig", None) or error).__name__


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str | Decimal):
        return value
    raise PermanentError(f"the answer has a {type(value).__name__}, which JSON cannot say; cast it in the query")
