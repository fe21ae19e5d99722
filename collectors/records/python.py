"""A source that an installed package brings (entry-point group ``tracegrade.records``)."""

import inspect
from collections.abc import Mapping
from typing import Any

from collectors.records.ask import Ask
from collectors.records.threads import Threads
from pipeline.config.records import PythonSource
from pipeline.scorers.installed import loaded, validated
from pipeline.scorers.source_plug_in import RECORDS, SourcePlugIn


def python_source(name: str, settings: PythonSource, concurrency: int) -> Ask:
    """Return how the source is asked: a coroutine function as it is, any other in a thread.

    Raises:
        ConfigurationError: it cannot be had as it is written.
    """
    plug_in, _ = loaded(RECORDS, settings.use, SourcePlugIn)
    given = validated(plug_in, settings.settings, name)
    read: Any = plug_in.read
    threads: Threads[Any] = Threads(2 * concurrency)

    async def ask(key: Mapping[str, Any]) -> Any:
        if inspect.iscoroutinefunction(read):
            return await read(key, given)
        return await threads.call(lambda: read(key, given))

    return ask
