"""Patterns that people write, searched for in time linear in the text: the one door to RE2.

Python's own expressions can be made to take for ever by the text they are tried on; RE2 has neither look-around nor back-references and
cannot. What is searched is bytes: UTF-8, or bytes of which nobody knows what they are.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import re2

Region: TypeAlias = tuple[int, int]
"""Where something begins in the bytes, and where it ends."""

WINDOW: Final = 128 * 1024
"""Bytes in which a match may begin before the search is begun anew."""
LONGEST: Final = 32 * 1024
"""Bytes that a match may have, at least; one that is longer may be found in parts."""
MOST: Final = 500
"""Matches of a user's pattern in a window. One that finds a little and looks far ahead for it each time, such as ``x(.*y)?``, costs their
number times the window."""
_MEMORY: Final = 64 * 1024 * 1024
_TOKEN: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\[pPx]\{[^}]*\}|\\x..|\\[pP].|\\[0-7]{1,3}|\\."  # escapes
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]"  # classes
    r"|[\^$.]|[^\x00-\x7f]",
    re.DOTALL,
)
"""What one place of a pattern is written as, unless it is a letter or a digit that stands for itself."""
_NO_PLACE: Final = frozenset({"^", "$", r"\b", r"\B"})
_MANY_BYTES: Final = re.compile(r"\.|\[\^|.*(?:\\[DWSpPxCQ0-7]|\[:\^|[^\x00-\x7f])", re.DOTALL)
"""What may stand for a character that has several bytes."""


class PatternError(ValueError):
    """This is no pattern that RE2 reads, or none that is good for anything. The message says what to write instead."""


class Pattern:
    """A compiled pattern. Of what could match at one place the longest does."""

    def __init__(self, pattern: str | bytes) -> None:
        """Compile; ``bytes`` are matched byte by byte, whatever they mean.

        Raises:
            PatternError: it is none.
        """
        options = _options()
        options.longest_match = True
        if isinstance(pattern, bytes):
            options.encoding = re2.Options.Encoding.LATIN1
        self._compiled: Final = _compile(pattern, options)

    @property
    def groups(self) -> int:
        """How many groups it has."""
        return int(self._compiled.groups)

    def matches(self, raw: bytes) -> bool:
        """Whether it is found anywhere."""
        return self._compiled.search(raw) is not None

    def regions(self, raw: bytes, groups: Sequence[int] = (0,), most: int = sys.maxsize) -> Iterator[Region]:
        """Yield where it is found, or where the first of these groups is that is not empty; in order.

        Where a window has more than ``most`` matches the rest of it is one.
        """
        for begin in range(0, max(len(raw), 1), WINDOW):
            end = min(begin + WINDOW + LONGEST, len(raw))
            for found, match in enumerate(self._compiled.finditer(raw, begin, end)):
                if match.start() >= begin + WINDOW:
                    break
                if found == most:
                    yield match.start(), end
                    break
                for group in groups:
                    start, stop = match.span(group)
                    if start < stop:
                        yield start, stop
                        break


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Pattern:
    """Return the pattern, compiled once.

    Raises:
        PatternError: it is none.
    """
    return Pattern(pattern)


class AnyOf:
    """Several patterns, of which the first that is found ends the search."""

    def __init__(self, patterns: Sequence[str] | Sequence[bytes]) -> None:
        """Compile one or more; ``bytes`` are matched byte by byte, whatever they mean."""
        options = _options()
        options.max_mem = _MEMORY
        options.longest_match = options.never_capture = True
        if isinstance(patterns[0], bytes):
            options.encoding = re2.Options.Encoding.LATIN1
        self._compiled: Final = _compile(_choice(patterns), options)

    def where(self, raw: bytes, at: int = 0) -> Region | None:
        """Return where one of them is found first, from a place on."""
        match = self._compiled.search(raw, at)
        return match.span() if match else None


class PatternSet:
    """Several patterns, looked for in one pass: which of them are found."""

    def __init__(self, patterns: Sequence[str | bytes]) -> None:
        """Compile; without any, nothing is ever found. ``bytes`` are matched byte by byte, whatever they mean."""
        options = _options()
        options.max_mem = _MEMORY
        if any(isinstance(pattern, bytes) for pattern in patterns):
            options.encoding = re2.Options.Encoding.LATIN1
        self._set = re2.Set.SearchSet(options)
        self._any: Final = bool(patterns)
        for pattern in patterns:
            self._set.Add(pattern)
        if patterns:
            self._set.Compile()

    def found_in(self, raw: bytes) -> list[int]:
        """Return which patterns are found, by their place; unordered."""
        found: list[int] | None = self._set.Match(raw) if self._any else None
        return found or []


def check_rule(pattern: str) -> str:
    """Return a user's pattern if it can be searched for.

    Raises:
        PatternError: it cannot.
    """
    compiled = Pattern(pattern)
    if compiled.matches(b""):
        raise PatternError(f"{pattern!r} is found in an empty text, so in every one; leave out what makes all of it optional")
    if r"\A" in pattern or r"\z" in pattern:
        raise PatternError(rf"{pattern!r} has \A or \z; write ^ and $, which stand for the ends of a line and of the text")
    return pattern


def escaped(text: str) -> str:
    """Return a pattern that is this text."""
    quoted: str = re2.escape(text)
    return quoted


def loosened(pattern: str) -> str:
    """Return a pattern for bytes that is found wherever this one is found in a text that stands among them, and elsewhere too.

    It is in ASCII, does not ask where the text begins, and takes any bytes where a character may have several.
    """
    return _TOKEN.sub(_loosened, pattern)


def _loosened(token: re.Match[str]) -> str:
    if token[0] in _NO_PLACE:
        return "(?:)"
    return r"(?:[\x00-\xff]*)" if _MANY_BYTES.match(token[0]) else token[0]


def _choice(patterns: Sequence[str] | Sequence[bytes]) -> str | bytes:
    """Return a pattern that is found where one of these is."""
    texts = [pattern if isinstance(pattern, str) else pattern.decode("latin-1") for pattern in patterns]
    written = "|".join(f"(?:{_TOKEN.sub(_closed, text)})" for text in texts)
    return written if isinstance(patterns[0], str) else written.encode("latin-1")


def _closed(token: re.Match[str]) -> str:
    r"""End a quote that lasts as long as the pattern: what is written behind it would be text of it."""
    return rf"{token[0]}\E" if token[0].startswith(r"\Q") and not token[0].endswith(r"\E") else token[0]


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    return options


def _compile(pattern: str | bytes, options: re2.Options) -> "re2._Regexp":
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise PatternError(
            f"{str(pattern)!r} is no pattern that RE2 reads ({why}); look-around and back-references are not among what it knows"
        ) from None
