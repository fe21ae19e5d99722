"""JSON that a parser refuses for a small part of it, so that it does not: the same rules as in :mod:`.mending`."""

import re
from collections.abc import Iterator
from typing import Final

from collectors.otlp.values import MENDED, count

_DEEPEST: Final = 200
"""Braces and brackets around a value. What :data:`~.mending.MAX_DEPTH` allows has at most 140; parsers give up at a thousand."""
MAX_OBJECTS: Final = 2**21
"""Objects of a span: more of them would take many times the memory that they were sent in (R19)."""
_MARKS: Final = 2
"""Quotation marks for each of them; attributes have more."""
_SURROGATES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""An escape of JSON; the group matches where it is one half of a pair whose other half is missing."""
_STRUCTURE: Final = re.compile(rb'"(?:[^"\\]+|\\.)*\\?(?:"|\Z)|([\[{])|([\]}])', re.DOTALL)
"""A string, whole or cut short, or a beginning, or an end."""


def mended(body: bytes) -> bytes:
    """Return the JSON with U+FFFD for what is not Unicode (half a surrogate pair, bytes that are not UTF-8), and null for what is too deep."""
    brackets, marks = (sum(map(body.count, some)) for some in ((b"[", b"{", b"]", b"}"), (b'"', b"\\")))
    count(len(body) // MENDED + brackets + marks // 2)
    body = body.decode("utf-8", "replace").encode()
    return _shallow(_SURROGATES.sub(_mend, body))


def _mend(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def _shallow(body: bytes) -> bytes:
    kept: list[bytes] = []
    end = 0
    for first, last in _too_deep(body):
        kept += [body[end:first], b"null"]
        end = last
    return b"".join(kept) + body[end:]


def _too_deep(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each value begins and ends that is nested too deep."""
    depth = first = 0
    for token in _STRUCTURE.finditer(body):
        if token[1]:
            if depth == _DEEPEST:
                first = token.start()
            depth += 1
        elif token[2]:
            depth -= 1
            if depth == _DEEPEST:
                yield first, token.end()
            if depth < 0:
                return  # no JSON


def is_too_wide(part: bytes) -> bool:
    """Whether there are more than :data:`MAX_OBJECTS` objects."""
    if part.count(b"{") <= MAX_OBJECTS:
        return False
    # Braces in texts do not count. With what is escaped gone, every second piece between quotation marks is a text.
    bare = part.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') > _MARKS * MAX_OBJECTS:
        return True
    return sum(piece.count(b"{") for piece in bare.split(b'"')[::2]) > MAX_OBJECTS
