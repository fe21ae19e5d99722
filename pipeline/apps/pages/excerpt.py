"""Excerpts: as much of a long text as a page has room for, always with the words that somebody quoted from it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

AROUND: Final = 200
"""Characters on each side of a quoted passage that lies beyond the beginning."""
_GAP: Final = "\n[…]\n"


class Piece(NamedTuple):
    """A stretch of a text; ``quoted`` where it is what somebody quoted."""

    text: str
    quoted: bool = False


class Excerpt(NamedTuple):
    """Stretches in order, marks of what was left out between them; how long the whole is, and whether this is all of it."""

    pieces: tuple[Piece, ...]
    length: int
    whole: bool


def excerpt(text: str, longest: int, quotes: Sequence[str] = ()) -> Excerpt:
    """Return the beginning of a text, and of what follows the surroundings of each quoted passage. The first occurrence counts."""
    found = sorted({(at, at + len(quote)) for quote in quotes if quote and (at := text.find(quote)) >= 0})
    windows = [(0, min(longest, len(text)))]
    for begin, end in found:
        _add(windows, max(begin - AROUND, 0), min(min(end, begin + longest) + AROUND, len(text)))
    pieces: list[Piece] = []
    for begin, end in windows:
        if begin:
            pieces.append(Piece(_GAP))
        pieces.extend(_marked(text, begin, end, found))
    if windows[-1][1] < len(text):
        pieces.append(Piece("…"))
    return Excerpt(tuple(pieces), len(text), whole=windows == [(0, len(text))])


def _add(windows: list[tuple[int, int]], begin: int, end: int) -> None:
    """Add a window; those that meet become one. They come by where they begin."""
    last_begin, last_end = windows[-1]
    if begin <= last_end:
        windows[-1] = (last_begin, max(last_end, end))
    else:
        windows.append((begin, end))


def _marked(text: str, begin: int, end: int, quoted: Sequence[tuple[int, int]]) -> list[Piece]:
    """Return a window's pieces. Of passages that overlap the one that begins first is marked, and the rest of the other."""
    pieces: list[Piece] = []
    at = begin
    for first, last in quoted:
        first, last = max(first, at), min(last, end)  # noqa: PLW2901 - as much of it as is in this window and not marked yet
        if first >= last:
            continue
        pieces += [Piece(text[at:first])] if at < first else []
        pieces.append(Piece(text[first:last], quoted=True))
        at = last
    return [*pieces, Piece(text[at:end])] if at < end else pieces
