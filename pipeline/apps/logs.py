"""Logs: one line an event, to stderr, whoever makes it."""

import io
import logging
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from collectors.redaction.redactor import Redactor
from pipeline.apps.text import visible
from pipeline.config.redaction import RedactionSettings, RuleSettings

LEVELS: Final = ("debug", "info", "warning", "error")
LONGEST: Final = 8000
"""Characters of a value; of a longer one the head and the tail are shown."""
SELDOM_S: Final = 10.0
"""Seconds between two lines of one kind of a library: a client whose broker is away says so a hundred times a second."""
_rules: Final[list[RuleSettings]] = []
_KINDS: Final = 1000
"""Kinds of lines that are remembered."""
_OURS: Final = frozenset({"level", "timestamp", "exc_info", "_record", "_from_structlog"})
"""What no text of somebody else's is in; and what structlog passes on."""


def log_to_stderr(level: str = "info") -> None:
    """Write JSON where nobody watches, readable lines in a terminal. Values are quoted in both, so no text can forge a line or act.

    Secrets are masked by all detectors, whatever is configured for spans, and by :func:`mask_too`; long values are cut (reliability S15). Of the libraries, whose
    logs go the same way, only warnings and errors are shown, and what they repeat only now and then.
    """
    known: list[Processor] = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True), _honest]
    rendered: list[Processor] = [structlog.processors.format_exc_info, _discreet, structlog.processors.JSONRenderer()]
    if sys.stderr.isatty():
        rendered = [_discreet, structlog.dev.ConsoleRenderer(repr_native_str=True, exception_formatter=_traceback)]
    structlog.configure(
        processors=[*known, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        # A line is one write: what a library's thread says at that moment must not come between a line and its end.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=[strip, *rendered], foreign_pre_chain=known))
    handler.addFilter(Seldom())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


class Seldom(logging.Filter):
    """Lets one line of a kind through, and the next one after a while, with how many were left out between them."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it. Lines are of one kind where only the values in them differ."""
        kind = record.name, str(record.msg)
        told_s, left_out = self._told.get(kind, (float("-inf"), 0))
        if record.created - told_s < SELDOM_S:
            self._told[kind] = told_s, left_out + 1
            return False
        if len(self._told) >= _KINDS:
            self._told.clear()
        self._told[kind] = record.created, 0
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more like it before)", ()
        return True


def _honest(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """An event of ours is a constant; one of a library may hold text that somebody sent."""
    return {**event, "event": visible(str(event.get("event", "")))}


def _discreet(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Whoever logs a value need not know whether there is a secret in it."""
    theirs = {key: _plain(value) for key, value in event.items() if key not in _OURS}
    clean = _redactor().attributes(theirs, Counter())
    return {**{key: value for key, value in event.items() if key in _OURS}, **{key: _cut(value) for key, value in clean.items()}}


def _plain(value: Any) -> Any:
    """Return the value as what can be written; a tuple, an exception or a path as its text."""
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def _cut(value: Any) -> Any:
    text = value if isinstance(value, str) else str(value)
    return value if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 :]}"


def mask_too(rules: Iterable[RuleSettings]) -> None:
    """Mask from now on also what a user's rules find: a log can show what a span says."""
    _rules[:] = rules
    _redactor.cache_clear()


@cache
def _redactor() -> Redactor:
    """Not made before something is logged: most commands log nothing."""
    from collectors.redaction.configured import made_of  # noqa: PLC0415 - it loads all detectors

    return made_of(RedactionSettings(rules=tuple(_rules)))


def _traceback(stream: TextIO, exception: ExcInfo) -> None:
    """Without the values of variables: keys are among them."""
    plain = io.StringIO()
    structlog.dev.plain_traceback(plain, exception)
    stream.write(visible(_cut(_redactor().text(plain.getvalue(), Counter()))))
