"""Heard: what an agent had been given by some moment, and whether a value occurs in it. An index: no text is searched for each value.

A value occurs where its words stand one after another in one text, whatever is between them; a number where its value stands, a date where
its day does. Words are compared after NFC and case folding. All work is linear in the texts and the values.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from pipeline.scorers.calls import number

Moment = tuple[int, int]
"""When something was given or asked for: ns, and the number of the call where several fall on one ns; -1 for what is no call's result."""

MOST_WORDS: Final = 16
"""Words of a value that are looked for; a longer one occurs where its first ones do."""
_LONGEST_DATE: Final = 48
_FOLDED: Final = bytes(letter if chr(letter).isalnum() else 32 for letter in bytes(range(128)).lower()) + bytes(range(128, 256))
"""ASCII in lower case, and a space for whatever is neither letter nor digit."""
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")
"""In scripts that put no spaces between words each letter is one."""
_NUMBER: Final = re.compile(r"\d(?:[\d.,]{0,38}\d)?")
_CLOCK: Final = re.compile(r"[T ]\d{1,2}:\d{2}[\d:.,Zz+ -]*$")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = f"({'|'.join(_MONTHS)})[a-z]{{0,6}}"
_DAYS: Final = (
    (re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)"), "ymd"),
    (re.compile(r"(?<!\d)(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?!\d)"), "dmy"),
    (re.compile(r"(?<!\d)(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?!\d)"), "mdy"),
    (re.compile(rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH},? (\d{{4}})(?!\d)", re.IGNORECASE), "dmy"),
    (re.compile(rf"(?<![a-z]){_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})(?!\d)", re.IGNORECASE), "mdy"),
)
_MAY_BE_DATE: Final = re.compile(rf"\d[-/. ]|{_MONTH} ", re.IGNORECASE)

_MAY_BE_NUMBER: Final = re.compile(r"\s*-?\d").match
_Day = tuple[int, int, int]


class Wanted(msgspec.Struct, frozen=True):
    """A value that is looked for: its words, and what else it may be found as. Equal ones are one."""

    words: tuple[bytes, ...]
    number: str = ""
    days: tuple[_Day, ...] = ()


def wanted(value: Any) -> Wanted | None:
    """Return what to look for; None for what is no value of its own: a truth value, ``null``, a text without a letter or digit."""
    exact = None if isinstance(value, str) and not _MAY_BE_NUMBER(value) else number(value)
    if exact is not None:
        written = f"{exact.copy_abs():f}"
        return Wanted(tuple(_words(value if isinstance(value, str) else written)), _plain(written))
    if not isinstance(value, str):
        return None
    words = tuple(_words(value)[:MOST_WORDS])
    return Wanted(words, days=tuple(_as_days(value))) if words else None


def first_heard(values: Iterable[Wanted], texts: Iterable[tuple[Moment, str]]) -> dict[Wanted, Moment]:
    """Return when each value was first given, of those that ever were. ``texts`` come by their moments."""
    sought = _Sought(values)
    found: dict[Wanted, Moment] = {}
    for moment, text in texts:
        if sought.count == len(found):
            break
        for one in sought.within(text):
            found.setdefault(one, moment)
    return found


class _Sought:
    """Values by what is found of them in a text: a word on the way to all of their words, a number, a day. What was found is let go."""

    def __init__(self, values: Iterable[Wanted]) -> None:
        self._roots: dict[bytes | None, Any] = {}
        """First words, each with those that may follow it; under ``None`` the values that end there."""
        self._longest: set[bytes] = set()
        """A word of each value: a text that has none of them has no value."""
        self._numbers: dict[str, list[Wanted]] = {}
        self._days: dict[_Day, list[Wanted]] = {}
        every = set(values)
        self.count = len(every)
        for one in every:
            self._longest.add(max(one.words, key=len))
            node = self._roots
            for word in one.words:
                node = node.setdefault(word, {})
            node.setdefault(None, []).append(one)
            if one.number:
                self._numbers.setdefault(one.number, []).append(one)
            for day in one.days:
                self._days.setdefault(day, []).append(one)

    def within(self, text: str) -> list[Wanted]:
        """Return the values that occur in a text and did not in one before. One that is found in two ways may come twice."""
        words = _words(text)
        found: list[Wanted] = []
        if not self._longest.isdisjoint(words):
            self._in_order(words, found)
        if self._numbers:
            for written in _numbers(text):
                found += self._numbers.pop(written, ())
        if self._days:
            for day in _days(text):
                found += self._days.pop(day, ())
        return found

    def _in_order(self, words: Sequence[bytes], found: list[Wanted]) -> None:
        roots = self._roots
        for start, word in enumerate(words):
            node = roots.get(word)
            at = start + 1
            while node is not None:
                found += node.pop(None, ())
                node = node.get(words[at]) if at < len(words) else None
                at += 1


def _words(text: str) -> list[bytes]:
    if text.isascii():
        return text.encode().translate(_FOLDED).split()
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return [word.encode(errors="replace") for word in _WORD.findall(folded)]


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers in a text by value, without their signs. A comma may group thousands, begin decimals or list: all are read."""
    for written in _NUMBER.findall(text):
        yield _plain(written)
        if "," in written:
            yield _plain(written.replace(",", ""))
            yield _plain(written.replace(".", "").replace(",", "."))
            yield from map(_plain, written.split(","))


def _plain(written: str) -> str:
    """Return one spelling for all of a value: without zeros at either end that say nothing."""
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return written.lstrip("0") or "0"


def _as_days(text: str) -> Iterator[_Day]:
    """Yield the days that a text may be which is a date and nothing else but a time of day."""
    if len(text) > _LONGEST_DATE or _MAY_BE_DATE.search(text) is None:
        return
    bare = _CLOCK.sub("", text).strip()
    for pattern, order in _DAYS:
        if (found := pattern.fullmatch(bare)) is not None:
            yield _day(found.groups(), order)


def _days(text: str) -> Iterator[_Day]:
    for pattern, order in _DAYS:
        for parts in pattern.findall(text):
            yield _day(parts, order)


def _day(parts: Sequence[str], order: str) -> _Day:
    """Return year, month and day as written; what is no day of the calendar is equal to none that is."""
    of = dict(zip(order, parts, strict=True))
    month = of["m"].lower()
    return int(of["y"]), _MONTHS.index(month) + 1 if month in _MONTHS else int(month), int(of["d"])
