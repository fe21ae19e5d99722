"""What the form of the list of runs asks for, read from an address and written into one."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from pipeline.apps.text import obeyed
from pipeline.errors import ConfigurationError
from pipeline.model.result import Outcome
from pipeline.model.run import RunClass
from pipeline.model.time import SECOND
from sinks.clickhouse.run_list import PENDING, Cursor, RunFilter

OUTCOMES: Final = (*(str(one) for one in Outcome), PENDING)
CLASSES: Final = tuple(str(one) for one in RunClass)
FIELDS: Final = (
    "agent",
    "version",
    "environment",
    "verdict",
    "class",
    "reason",
    "dimension",
    "outcome",
    "tool",
    "flag",
    "conversation",
    "from",
    "until",
    "run",
)
"""Names in the address, in the order of the form."""
_LONGEST: Final = 2_000
_RUN: Final = re.compile("[0-9a-f]{1,32}")
_CURSOR: Final = re.compile("([0-9]{1,20})-([0-9a-f]{1,32})")
_LAST: Final = 1 << 63


class Asked(msgspec.Struct, frozen=True):
    """A filter as it was filled in, what it means, and from which run on."""

    given: dict[str, str]
    """By name in the address; nothing that is empty."""
    chosen: RunFilter
    before: Cursor | None = None


def asked(query: Mapping[str, str]) -> Asked:
    """Read an address's query.

    Raises:
        ConfigurationError: something in it is not what its field takes; the sentence says what to write.
    """
    given = {name: query[name].strip() for name in FIELDS if query.get(name, "").strip()}
    for name, text in given.items():
        if len(text) > _LONGEST:
            raise ConfigurationError(f"{name} is longer than {_LONGEST} characters; write less of it")
    chosen = RunFilter(
        agent=_spellings(given.get("agent")),
        version=_spellings(given.get("version")),
        environment=_spellings(given.get("environment")),
        verdict=_word(given, "verdict", OUTCOMES),
        run_class=_word(given, "class", CLASSES),
        class_reason=given.get("reason", ""),
        dimension=_spellings(given.get("dimension")),
        outcome=_word(given, "outcome", OUTCOMES),
        tool=_spellings(given.get("tool")),
        flag=given.get("flag", ""),
        conversation=_spellings(given.get("conversation")),
        run=_beginning(given.get("run", "")),
        since_ns=_time(given, "from"),
        until_ns=_time(given, "until"),
    )
    if chosen.outcome and not chosen.dimension:
        raise ConfigurationError("an outcome is of a dimension; name the dimension too, or choose a verdict instead")
    times = {name: _field(ns) for name, ns in (("from", chosen.since_ns), ("until", chosen.until_ns)) if ns}
    return Asked({**given, **times}, chosen, _cursor(query.get("before", "")))


def cursor_text(cursor: Cursor) -> str:
    """Return a cursor as it stands in an address."""
    return f"{cursor.ended_ns}-{cursor.run_id}"


def _spellings(text: str | None) -> tuple[str, ...]:
    """Return a name as it was written, and as it is where it was written the way pages show what acts on a reader."""
    return tuple(dict.fromkeys((text, obeyed(text)))) if text else ()


def _word(given: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    word = given.get(name, "")
    if word and word not in words:
        raise ConfigurationError(f"{name} is {word!r}; write one of {', '.join(words)}")
    return word


def _beginning(text: str) -> str:
    beginning = text.lower()
    if beginning and not _RUN.fullmatch(beginning):
        raise ConfigurationError(f"run is {text!r}; write the beginning of a run id: up to 32 digits of 0-9 and a-f")
    return beginning


def _time(given: Mapping[str, str], name: str) -> int:
    """Read a time in UTC as a browser's field writes it, or as ISO 8601; ns."""
    text = given.get(name)
    if text is None:
        return 0
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        ns = int(at.timestamp()) * SECOND
    except (ValueError, OverflowError):
        ns = 0
    if not 0 < ns < _LAST:
        raise ConfigurationError(f"{name} is {text!r}; write a time in UTC such as 2026-09-27T10:00")
    return ns


def _field(ns: int) -> str:
    """Return a time as a browser's field takes it."""
    return datetime.fromtimestamp(ns // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _cursor(text: str) -> Cursor | None:
    if not text:
        return None
    found = _CURSOR.fullmatch(text)
    if found is None or int(found[1]) >= 2 * _LAST:
        raise ConfigurationError("before is not where a page ended; begin again at the newest run")
    return Cursor(int(found[1]), found[2])
