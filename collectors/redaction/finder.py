"""Finders: what each detector looks for, and where it says that it is."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from pipeline.patterns import MOST, Pattern, Region, loosened

Find: TypeAlias = Callable[[bytes], Iterable[Region]]
"""Yields what it finds; and an empty region for what it looked at and did not keep, so that its work can be counted."""
Keep: TypeAlias = Callable[[bytes, int, int], bool]
"""Whether the bytes of a region, in all the bytes that were searched, are what they look like."""

START: Final = r"(?:^|[^A-Za-z0-9_]|\\[nrt]|\\u[0-9A-Fa-f]{4})"
"""The place before a word: also behind an escape, as JSON writes it."""
BEFORE_TOKEN: Final = r"(?:^|[^A-Za-z0-9_]|\\u[0-9A-Fa-f]{4})[A-Za-z0-9_]?"
"""The same for a hint: what may look like a character of a word is an escape's letter, or a length in a message."""
NUMBERS: Final = "numbers"
RULES: Final = "rules"
"""Families of finders; most are of none."""
_LAST_COUNT: Final = re.compile(r"\{(?:9|[1-9]\d{1,3})(?:,\d*)?\}(?=[|)]|\Z)")
_REST_OF_TOKEN: Final = re.compile(rb"[A-Za-z0-9_-]*")


class Finder(NamedTuple):
    """One thing to look for.

    Of its ``hints`` one is found wherever the finder finds something, and also in JSON that holds such a text with its escapes: they are
    looked for first, those of all finders in one pass. So is one of ``in_bytes`` (the hints, where there are none) in a message that has
    such a text anywhere: there a text begins behind its length, which may look like a letter, and ends before whatever follows it.
    """

    name: str
    hints: tuple[str, ...]
    find: Find
    in_bytes: tuple[str, ...] = ()
    family: str = ""
    """Whose hints are looked for in the same pass (:class:`~.scan.Hints`)."""


def pattern(
    name: str,
    written: str,
    *,
    hint: str = "",
    in_bytes: str = "",
    groups: Sequence[int] = (0,),
    keep: Keep | None = None,
    whole: bool = False,
    family: str = "",
) -> Finder:
    """Return a finder of a pattern, or of groups of it; ``whole`` takes the rest of the token along.

    Without a hint the pattern is its own, as far as its last count.
    """
    hint = hint or shortened(written)
    compiled = Pattern(written)

    def find(raw: bytes) -> Iterator[Region]:
        for start, end in compiled.regions(raw, groups):
            if keep is None or keep(raw, start, end):
                yield start, _rest(raw, end) if whole else end
            else:
                yield start, start

    return Finder(name, (hint,), find, (in_bytes or hint,), family)


def rule(name: str, written: str) -> Finder:
    """Return a finder of what a user wrote: ``^`` and ``$`` are ends of lines, and very many matches are one."""
    compiled = Pattern(f"(?m){written}")
    return Finder(name, (f"(?m){written}",), lambda raw: compiled.regions(raw, most=MOST), (loosened(written),), RULES)


def several(name: str, finders: Iterable[Finder]) -> Finder:
    """Return a finder of all that these find, under one name."""
    some = tuple(finders)

    def find(raw: bytes) -> Iterator[Region]:
        for one in some:
            yield from one.find(raw)

    hints = tuple(hint for one in some for hint in one.hints)
    return Finder(name, hints, find, tuple(hint for one in some for hint in one.in_bytes), some[0].family)


def shortened(written: str) -> str:
    """Return what a pattern begins with: of what is counted at its end, and at the end of each of its choices, eight."""
    return _LAST_COUNT.sub("{8}", written)


def _rest(raw: bytes, end: int) -> int:
    match = _REST_OF_TOKEN.match(raw, end)
    return match.end() if match else end
