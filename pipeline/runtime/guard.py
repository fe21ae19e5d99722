"""Guard: the one place where any exception is caught, so that one poison record stops nothing (promise 7)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError

T = TypeVar("T")
FIRST_DELAY: Final = 0.1
GREATEST_DELAY: Final = 10.0

log = structlog.get_logger(__name__)


async def until_it_works(what: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat ``attempt`` while it fails for temporary reasons, with growing delays; anything else is raised."""
    delay = FIRST_DELAY
    while True:
        try:
            return await attempt()
        except TemporaryError as error:
            log.warning("retrying", what=what, error=str(error), delay=error.retry_after or delay)
            await asyncio.sleep(error.retry_after or delay)
            delay = min(delay * 2, GREATEST_DELAY)


def or_dead_letter(attempt: Callable[[], T], bury: Callable[[str], None]) -> T | None:
    """Return what ``attempt`` gives; where it raises, give the reason to ``bury`` and return None."""
    try:
        return attempt()
    except (ConfigurationError, TemporaryError):
        raise
    except PermanentError as error:
        bury(str(error))
    except Exception as error:
        log.exception("buried", error=repr(error))
        bury(f"{type(error).__name__}: {error}")
    return None
