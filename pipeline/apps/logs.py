"""Logs: one line an event, to stderr, whoever makes it."""

import io
import logging
import sys
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from pipeline.apps.text import visible

LEVELS: Final = ("debug", "info", "warning", "error")


def log_to_stderr(level: str = "info") -> None:
    """Write JSON where nobody watches, readable lines in a terminal. Values are quoted in both, so no text can forge a line or act.

    Of the libraries, whose logs go the same way, only warnings and errors are shown.
    """
    known: list[Processor] = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True), _honest]
    rendered: list[Processor] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    if sys.stderr.isatty():
        rendered = [structlog.dev.ConsoleRenderer(repr_native_str=True, exception_formatter=_traceback)]
    structlog.configure(
        processors=[*known, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=[strip, *rendered], foreign_pre_chain=known))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _honest(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """An event of ours is a constant; one of a library may hold text that somebody sent."""
    return {**event, "event": visible(str(event.get("event", "")))}


def _traceback(stream: TextIO, exception: ExcInfo) -> None:
    """Without the values of variables: keys are among them."""
    plain = io.StringIO()
    structlog.dev.plain_traceback(plain, exception)
    stream.write(visible(plain.getvalue()))
