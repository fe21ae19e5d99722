"""Mending: parts of a request that a parser refuses whole for a small part of them, so that it does not.

Text that is not Unicode becomes U+FFFD (reliability R23, R82), and what is nested too deep becomes :data:`TOO_DEEP` (S11). Only what was
refused comes here, so nothing that is well costs more for it.
"""

from typing import Final, TypeAlias

from collectors.otlp.values import MENDED, count

MAX_DEPTH: Final = 32
"""How deep arrays and key-value lists may nest (reliability S11). The protobuf parser's own limit is just above."""
TOO_DEEP: Final = f"[tracegrade: nested deeper than {MAX_DEPTH} levels]"
"""What stands for a value that is."""

Fields: TypeAlias = "dict[int, Fields | None]"
"""The fields of a message that are messages, and (None) those that are text."""

_ANY: Final[Fields] = {1: None}
_KEY_VALUE: Final[Fields] = {1: None, 2: _ANY}
_LIST: Final[Fields] = {1: _ANY}
_MAP: Final[Fields] = {1: _KEY_VALUE}
_ANY.update({5: _LIST, 6: _MAP})
SPAN: Final[Fields] = {
    3: None,
    5: None,
    9: _KEY_VALUE,
    11: {2: None, 3: _KEY_VALUE},
    13: {3: None, 4: _KEY_VALUE},
    15: {2: None},
}
RESOURCE: Final[Fields] = {1: _KEY_VALUE, 3: {1: None, 2: None, 3: None, 4: None}}
SCOPE: Final[Fields] = {1: None, 2: None, 3: _KEY_VALUE}
LOG_RECORD: Final[Fields] = {3: None, 5: _ANY, 6: _KEY_VALUE, 12: None}

_DEEP: Final = b"\x0a" + bytes([len(TOO_DEEP)]) + TOO_DEEP.encode()
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10
_MORE: Final = 0x80


class MendError(Exception):
    """The bytes are no message at all."""


def mended(raw: bytes, fields: Fields) -> bytes:
    """Return a message of protobuf without what the parser refuses.

    Raises:
        MendError: it is no message, or is cut short.
    """
    try:
        return _mended(memoryview(raw), fields, 0)
    except IndexError as error:
        raise MendError("it is cut short") from error


def _mended(raw: memoryview, fields: Fields, depth: int) -> bytes:
    kept: list[bytes | memoryview] = []
    at = 0
    while at < len(raw):
        count(1)
        start = at
        tag, at = varint(raw, at)
        if tag & 7 == _LENGTH:
            size, at = varint(raw, at)
            if at + size > len(raw):
                raise IndexError(at)
            kept += _field(tag, raw[at : at + size], fields, depth)
            at += size
        else:
            at = after(raw, at, tag & 7)
            kept.append(raw[start:at])
    return b"".join(kept)


def _field(tag: int, body: memoryview, fields: Fields, depth: int) -> tuple[bytes | memoryview, ...]:
    number = tag >> 3
    if number not in fields:
        return _written(tag), _written(len(body)), body
    inner = fields[number]
    if inner is None:
        count(len(body) // MENDED)
        clean = bytes(body).decode("utf-8", "replace").encode()
    elif inner is _LIST or inner is _MAP:
        if depth == MAX_DEPTH:
            return (_DEEP,)
        clean = _mended(body, inner, depth + 1)
    else:
        clean = _mended(body, inner, depth)
    return _written(tag), _written(len(clean)), clean


def after(raw: bytes | memoryview, at: int, kind: int) -> int:
    """Return where a number ends."""
    if kind == _VARINT:
        return varint(raw, at)[1]
    if kind not in (_FIXED32, _FIXED64):
        raise MendError("it holds a group, or is no message at all")
    end = at + (4 if kind == _FIXED32 else 8)
    if end > len(raw):
        raise IndexError(at)
    return end


def varint(raw: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return a number and where it ends; IndexError where it does not."""
    value = shift = 0
    for end in range(at, at + _LONGEST_VARINT):
        part = raw[end]
        value |= (part & ~_MORE) << shift
        if part < _MORE:
            return value, end + 1
        shift += 7
    raise MendError("it holds a number that never ends")


def _written(value: int) -> bytes:
    parts = bytearray()
    while value >= _MORE:
        parts.append(value & 0x7F | _MORE)
        value >>= 7
    parts.append(value)
    return bytes(parts)
