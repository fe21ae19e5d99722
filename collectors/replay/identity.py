"""Ids of recordings: whatever stands in a file becomes the hex id that OTLP asks for, the same one every time.

Hex of the right length stays (lower-cased: OTLP/JSON ids are case-insensitive), decimal and base64 ids keep their value, anything else is
hashed. Recordings of one run can then be read from several files, and a file can be replayed twice, without the ids moving.
"""

import re
from base64 import b64decode
from typing import Final, NamedTuple

from pipeline.model.ids import digest

ORIGINAL_TRACE_ID: Final = "tracegrade.original_trace_id"
ORIGINAL_SPAN_ID: Final = "tracegrade.original_span_id"

RawId = str | int | None
"""An id as a file has it: text, a decimal number, or nothing."""

_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8
_HEX: Final = re.compile(r"(?:0x)?([0-9a-fA-F]+)")
_BASE64: Final = re.compile(r"[0-9A-Za-z+/]+={1,2}")


class Identity(NamedTuple):
    """A lower-case hex id, and what stood in the file where that was another text; both empty where nothing did."""

    hex: str
    original: str


def trace_id(raw: RawId) -> Identity:
    """Read a trace id as 32 hex digits."""
    return _identity(raw, _TRACE_BYTES)


def span_id(raw: RawId) -> Identity:
    """Read a span id as 16 hex digits."""
    return _identity(raw, _SPAN_BYTES)


def parent_id(raw: RawId) -> str:
    """Read a parent's span id as 16 hex digits; nothing, or an id of zeros, is how a root is written: empty."""
    text = "" if raw is None else str(raw)
    return span_id(raw).hex if text.strip("0") else ""


def derived_trace_id(known: str, salt: str) -> str:
    """Return the trace id, 32 hex digits, under which a replay with this salt sends the trace ``known``."""
    return digest(_TRACE_BYTES, "replayed trace", salt, known)


def derived_span_id(known: str, salt: str) -> str:
    """Return the span id, 16 hex digits, under which a replay with this salt sends the span ``known``."""
    return digest(_SPAN_BYTES, "replayed span", salt, known)


def _identity(raw: RawId, size: int) -> Identity:
    original = "" if raw is None else str(raw)
    if not original:
        return Identity("", "")
    value = _by_value(raw, original, size)
    if value is None:
        return Identity(digest(size, "recorded id", original), original)
    name = value.hex()
    return Identity(name, "" if name == original.lower() else original)


def _by_value(raw: RawId, text: str, size: int) -> bytes | None:
    """Return the id that the text spells, or None where it spells none: OTLP forbids ids of zeros."""
    hexadecimal = _HEX.fullmatch(text)
    if isinstance(raw, str) and hexadecimal and len(hexadecimal[1]) == 2 * size:
        value = bytes.fromhex(hexadecimal[1])
    elif text.isascii() and text.isdecimal() and int(text).bit_length() <= 8 * size:
        value = int(text).to_bytes(size, "big")
    elif len(text) == 4 * ((size + 2) // 3) and _BASE64.fullmatch(text):
        value = b64decode(text)
    else:
        return None
    return value if len(value) == size and any(value) else None
