"""Trimming: messages of protobuf that are so wide that to parse them would take too long, or many times the memory that they were sent in.

Both walks step over fields without reading what is in them (reliability R19, S11). They are for large messages: no other can be so wide.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from collectors.otlp.fitting import MAX_ATTRIBUTES, MAX_EVENTS, MAX_LINKS, OWN
from collectors.otlp.mending import MAX_DEPTH, Fields, MendError, after, varint
from collectors.otlp.values import count

MAX_FIELDS: Final = 2**20
"""Fields of a span, resource or log record, those within them not counted."""
MAX_VALUES: Final = 2**20
"""Fields and values within those that are kept."""
LARGE: Final = 256 * 1024
"""Bytes of a message from which on it may be too wide."""
_MORE: Final = 1
"""Kept beyond each limit, so that whoever reads the message sees that it is passed."""
_ATTRIBUTES: Final = MAX_ATTRIBUTES + len(OWN) + _MORE
OF_SPAN: Final = {9: _ATTRIBUTES, 11: MAX_EVENTS + _MORE, 13: MAX_LINKS + _MORE}
OF_RESOURCE: Final = {1: _ATTRIBUTES}
OF_SCOPE: Final = {3: 0}
OF_LOG_RECORD: Final = {6: _ATTRIBUTES}
"""How many fields are kept, by number."""

_DEEPEST: Final = 3 * MAX_DEPTH + 8
"""Messages within messages that are looked into: the parser refuses what is deeper, before it has taken memory for it."""
_LENGTH: Final = 2
_VARINT_GOES_ON: Final = 0x80
_SHORT: Final = {0: 0, _LENGTH: 1}
"""Kinds of fields that have one byte more, or as many as that byte says."""
_SCALARS: Final = {0x10: 2, 0x18: 2, 0x21: 9}
"""Bytes of a value that is a bool, a whole number below 128 or a double, by its tag."""
_LARGER: Final = re.compile(rb"\x18[\x80-\xff]{1,9}[\x00-\x7f]")
"""Any other whole number."""
_STEPPED: Final = 2
"""Fields that are stepped over in the time that it takes to make one value."""


class TooWideError(Exception):
    """The message holds more than is read. The text says of what."""


def trimmed(raw: bytes, most: Mapping[int, int], fields: Fields) -> tuple[bytes, Counter[int]]:
    """Return the message with the first of too many fields, and how many of each number are left out.

    Raises:
        TooWideError: it has more than :data:`MAX_FIELDS`, or what is kept has more than :data:`MAX_VALUES` within.
    """
    left_out: Counter[int] = Counter()
    if len(raw) <= LARGE:
        return raw, left_out
    try:
        raw = _first_fields(raw, most, left_out)
        if _values(raw, fields) > MAX_VALUES:
            raise TooWideError(f"more than {MAX_VALUES} values")
    except (IndexError, MendError):
        pass  # it is no message, or is cut short: the parser says so, and better
    return raw, left_out


def _first_fields(raw: bytes, most: Mapping[int, int], left_out: Counter[int]) -> bytes:
    left = dict(most)
    kept: list[bytes] = []
    at = begin = fields = 0
    while at < len(raw):
        fields += 1
        if fields > MAX_FIELDS:
            raise TooWideError(f"more than {MAX_FIELDS} fields")
        start = at
        tag, size = raw[at], raw[at + 1]
        # Written out where it is passed a million times.
        if (tag | size) < _VARINT_GOES_ON and tag & 7 in _SHORT:
            at += 2 + _SHORT[tag & 7] * size
        else:
            tag, size, at = header(raw, at)
            at += size
        number = tag >> 3
        if number in left:
            left[number] -= 1
            if left[number] < 0:
                if begin < start:
                    kept.append(raw[begin:start])
                begin = at
    left_out.update({number: -room for number, room in left.items() if room < 0})
    count(fields // _STEPPED)
    return b"".join([*kept, raw[begin:]]) if left_out else raw


def _values(raw: bytes, fields: Fields) -> int:
    """Return how many fields and values there are within a message, or some number above the limit."""
    if len(raw) <= 2 * MAX_VALUES:
        return 0  # the smallest has two bytes
    found = 0
    waiting = [(0, len(raw), fields, 0)]
    while waiting and found <= MAX_VALUES:
        at, end, known, depth = waiting.pop()
        while at < end and found <= MAX_VALUES:
            found += 1
            tag, size = raw[at], raw[at + 1]
            if (tag | size) < _VARINT_GOES_ON and tag & 7 == _LENGTH:
                at += 2
            else:
                tag, size, at = header(raw, at)
            inner = known.get(tag >> 3)
            if size and inner is not None and depth < _DEEPEST:
                if _is_scalar(raw, at, size, inner):
                    found += 1
                else:
                    waiting.append((at, at + size, inner, depth + 1))
            at += size
    count(found // _STEPPED)
    return found


def _is_scalar(raw: bytes, at: int, size: int, known: Fields) -> bool:
    """Whether a message is one number or one short text, which nearly every value is: nothing in it needs to be stepped over."""
    tag, length = raw[at], raw[at + 1]
    if tag & 7 == _LENGTH:
        return length < _VARINT_GOES_ON and size == length + 2 and known.get(tag >> 3) is None
    return _SCALARS.get(tag) == size or _LARGER.fullmatch(raw, at, at + size) is not None


def header(raw: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of a field, the size of what it holds, and where that begins; IndexError where it ends before."""
    tag, size = raw[at], raw[at + 1]
    if tag & 7 == _LENGTH and (tag | size) < _VARINT_GOES_ON:  # what nearly every field is
        return tag, size, at + 2
    tag, at = varint(raw, at)
    if tag & 7 == _LENGTH:
        return tag, *varint(raw, at)
    return tag, after(raw, at, tag & 7) - at, at
