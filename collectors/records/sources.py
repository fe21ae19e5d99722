"""Sources: each configured record source, opened."""

from contextlib import AsyncExitStack

from collectors.records.ask import Ask
from collectors.records.http import http_source
from collectors.records.python import python_source
from pipeline.config.records import PythonSource, RecordSourceSettings, SqlSource
from pipeline.errors import ConfigurationError


async def opened(name: str, settings: RecordSourceSettings, stack: AsyncExitStack) -> Ask:
    """Return how a source is asked until the stack is closed.

    Raises:
        ConfigurationError: a person can fix it; the message names the source.
    """
    try:
        if settings.http is not None:
            return await stack.enter_async_context(http_source(settings.http))
        if settings.sql is not None:
            return await _sql(settings.sql, settings.concurrency, stack)
        return python_source(name, settings.python or PythonSource(use=name), settings.concurrency)
    except ConfigurationError as error:
        raise ConfigurationError(f"records.{name}: {error}") from None


async def _sql(settings: SqlSource, concurrency: int, stack: AsyncExitStack) -> Ask:
    try:
        from collectors.records.sql import sql_source  # noqa: PLC0415 - an extra, which only those install who need it
    except ImportError:
        raise ConfigurationError("reading a database needs SQLAlchemy; install tracegrade[sql]") from None
    return await stack.enter_async_context(sql_source(settings, concurrency))
