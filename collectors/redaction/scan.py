"""The scan: which parts of a text are to be replaced, and what each of them is. It works on bytes; offsets are of bytes."""

import re
from base64 import b64decode, urlsafe_b64decode
from binascii import Error as Base64Error
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from collectors.redaction.allowance import BYTE, FOUND, TEXT, UNLIMITED, Allowance
from collectors.redaction.finder import NUMBERS, Finder
from collectors.redaction.hints import Hints, bytes_of, joined
from pipeline.patterns import AnyOf, PatternSet, Region

ESCAPE: Final = r"\\u00[0-7]"
"""JSON's escape of an ASCII character, which hides what it is a part of."""
MARKER: Final = re.compile(rb"\[(?:redacted:[a-z][a-z0-9_-]*|redaction failed)\]")
"""What stands in place of something. It has no quote and no backslash, and is never replaced itself."""

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_FIRST: Final = range(8, 32)
_QUADS: Final = 4
_BACKSLASH: Final = ord("\\")
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_BASE64_DEPTH: Final = 2


def _quad() -> str:
    """Return a pattern of four characters of base64 that are three printable ASCII characters.

    A byte below 128 has its highest bit unset, and one above 31 one of the next two set; a random quad is of that form once in fourteen.
    """
    first = "".join(one for value, one in enumerate(_ALPHABET) if value in _FIRST)
    second = "".join(one for value, one in enumerate(_ALPHABET) if not value & 8 and value & 6)
    third = "".join(one for value, one in enumerate(_ALPHABET) if not value & 2)
    return f"[{first}][{second}][{third}][A-Za-z0-9+/_-]"


FOLDED: Final = r"\xe2\x84\xaa|\xc5\xbf"
"""The two letters outside of ASCII that are a k and an s where case does not matter, as bytes."""
LARGE_NUMBER: Final = r"(?:\x18|\x98\x80*\x00)[\x80-\xff]{3}"
"""How protobuf writes a whole number of nine digits."""
BASE64: Final = f"(?:{_quad()}){{{_QUADS}}}"
_BASE64_OF_TEXT: Final = AnyOf([BASE64])
_SPACES: Final = re.compile(rb"\\+[nrt]")


class Found(NamedTuple):
    """A part of a text that is to be replaced."""

    start: int
    end: int
    name: str


class Scan:
    """Looks for everything in one pass, and only for what may be there again."""

    def __init__(
        self,
        finders: Sequence[Finder],
        more_hints: Iterable[str] = (),
        more_in_bytes: Iterable[str] = (),
        *,
        through_escapes: bool = False,
    ) -> None:
        """Take what to look for; ``more_hints`` make a text suspicious in which no finder finds anything, ``more_in_bytes`` a message.

        ``through_escapes`` looks for hints also as if JSON's escapes were opened: for finders whose hints do not know them.
        """
        self._through_escapes: Final = through_escapes
        self._finders: Final = finders
        self._hints: Final = Hints(
            [
                *((one.family, hint) for one in finders for hint in one.hints),
                (NUMBERS, BASE64),
                *(("", hint) for hint in (ESCAPE, *more_hints)),
            ]
        )
        self._in_bytes: Final = Hints(
            [
                *((one.family, hint.encode()) for one in finders for hint in one.in_bytes or one.hints),
                (NUMBERS, BASE64.encode()),
                *(("", hint.encode()) for hint in (ESCAPE, FOLDED, *more_in_bytes)),
                *([(NUMBERS, LARGE_NUMBER.encode())] if through_escapes else []),
            ]
        )
        self._whose: Final = _by_family(finders)

    def suspects(self, raw: bytes) -> bool:
        """Whether there may be anything to replace."""
        if self._hints.are_in(raw):
            return True
        return self._through_escapes and b"\\" in raw and any(map(self._hints.are_in, _opened(raw)))

    def suspicious(self, texts: Sequence[str], allowance: Allowance = UNLIMITED) -> set[int]:
        """Return the places of the texts in which there may be anything to replace: they are looked at together.

        Raises:
            SpentError: the allowance, overdrawn, does not suffice for so many.
        """
        found = self._hints.whose_texts(texts, allowance)
        if self._through_escapes:
            raw = joined(texts)
            if b"\\" in raw and any(map(self._hints.are_in, _opened(raw))):
                for place, text in enumerate(texts):
                    if place not in found and "\\" in text:
                        allowance.overdraw(TEXT)
                        if self.suspects(bytes_of(text)):
                            found.add(place)
        return found

    def suspects_message(self, raw: bytes) -> bool:
        """Whether there may be anything to replace in a message of protobuf, wherever in it; much quicker than to read it."""
        # To open escapes here would take a length that looks like a backslash for one.
        return self._in_bytes.are_in(raw) or (self._through_escapes and b"\\" in raw)

    def find(self, raw: bytes, depth: int = 0, allowance: Allowance = UNLIMITED) -> list[Found]:
        """Return what is to be replaced, in order and without overlaps; markers are left out.

        Raises:
            SpentError: the allowance does not suffice.
        """
        found: list[Found] = []
        allowance.take(len(raw) * BYTE * (1 + len(self._whose)))
        for place in sorted(
            {
                place
                for family, hints, places in self._whose
                if self._hints.may_be_in(family, raw)
                for hint in hints.found_in(raw)
                for place in places[hint]
            }
        ):
            finder = self._finders[place]
            allowance.take(len(raw) * BYTE)
            for start, end in finder.find(raw):
                allowance.take(FOUND)
                if start < end:
                    found.append(Found(start, end, finder.name))
        if depth < _BASE64_DEPTH and _BASE64_OF_TEXT.where(raw):
            found += self._in_base64(raw, depth, allowance)
        if len(found) > 1:
            # Of two that find the same, the finder that comes first is the more special.
            found = list(_merged(sorted(found, key=lambda one: (one.start, -one.end))))
        return list(_without_markers(raw, found)) if found and b"[red" in raw else found

    def _in_base64(self, raw: bytes, depth: int, allowance: Allowance) -> Iterator[Found]:
        """Yield runs of base64 that say something that is to be replaced."""
        for run in _BASE64.finditer(raw):
            allowance.take(TEXT)
            quads = _BASE64_OF_TEXT.where(run[0])
            if quads is None:
                continue
            # The run may begin with something else; where the quads are, they say how it is to be cut into fours.
            inside = self.find(_decoded(run[0][quads[0] % 4 :]), depth + 1, allowance)
            if inside:
                yield Found(run.start(), run.end(), inside[0].name)


def _by_family(finders: Sequence[Finder]) -> list[tuple[str, PatternSet, list[list[int]]]]:
    """Return the hints of each family, and the places of the finders that each of them is of."""
    of_family: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, one in enumerate(finders):
        for hint in one.hints:
            of_family[one.family][hint].append(place)
    return [(family, PatternSet(list(some)), list(some.values())) for family, some in of_family.items()]


def _opened(raw: bytes) -> tuple[bytes, bytes]:
    """Return what JSON escapes, at whatever depth: roughly, and enough to be suspicious. An n may be a line's end, or a letter."""
    return _SPACES.sub(b"\n", raw).replace(b"\\", b""), raw.replace(b"\\", b"")


def _decoded(run: bytes) -> bytes:
    text = run.rstrip(b"=")
    text = text[: len(text) - (len(text) % 4 == 1)]
    try:
        return (urlsafe_b64decode if b"-" in text or b"_" in text else b64decode)(text + b"=" * (-len(text) % 4))
    except Base64Error:
        return b""


def _merged(found: Iterable[Found]) -> Iterator[Found]:
    """Yield parts of which none overlaps another: together they take the name of the longest."""
    last: Found | None = None
    for one in found:
        if last is None or one.start >= last.end:
            if last is not None:
                yield last
            last = one
        else:
            name = one.name if one.end - one.start > last.end - last.start else last.name
            last = Found(last.start, max(last.end, one.end), name)
    if last is not None:
        yield last


def _without_markers(raw: bytes, found: Iterable[Found]) -> Iterator[Found]:
    markers: deque[Region] = deque(match.span() for match in MARKER.finditer(raw))
    for start, end, name in found:
        at = start
        while markers and markers[0][0] < end:
            begin, stop = markers[0]
            if at < begin:
                yield Found(at, begin, name)
            at = max(at, stop)
            if stop > end:
                break
            markers.popleft()
        if at < end:
            yield Found(at, end, name)


def whole_escapes(raw: bytes, start: int, end: int) -> Region:
    r"""Return the region without halves of escapes at its ends: in ``\nme@example.com`` the ``n`` is no part of the address."""
    if _backslashes(raw, start) % 2:
        start += len("u0000") if raw[start : start + 1] == b"u" else len("n")
    if _backslashes(raw, end) % 2:
        end -= 1
    return (start, end) if start < end else (start, start)


def _backslashes(raw: bytes, at: int) -> int:
    """Return how many backslashes stand before this place."""
    first = at
    while first > 0 and raw[first - 1] == _BACKSLASH:
        first -= 1
    return at - first
