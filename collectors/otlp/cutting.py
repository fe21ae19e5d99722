"""Cutting: plain values into a number of bytes, by their longest texts.

All sizes are bounds from above of what protobuf makes of the values, so that nobody has to write a value to know that it fits.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import msgspec

Content: TypeAlias = dict[str, Any]
"""What may be cut of a span or a resource, by field: texts, attributes, and lists of what has attributes itself."""

LEAST: Final = 512
"""Bytes that are kept of a text at least."""
_TEXT: Final = 8
_ENTRY: Final = 24
_ITEM: Final = 16
"""Bytes that stand around a text, an entry of a map and an item of a list, at most."""
_SHED: Final = ("links", "events", "attributes")
"""What is left out first: what graders read last."""


def cut(text: str, size: int) -> str:
    """Return the head and the tail of a text, ``size`` bytes with what stands between: its length in bytes and its blake2b-128."""
    raw = text.encode("utf-8", "replace")
    mark = f"…[tracegrade cut {len(raw)} bytes, blake2b {blake2b(raw, digest_size=16).hexdigest()}]…"
    half = (size - len(mark.encode())) // 2
    return raw[:half].decode("utf-8", "ignore") + mark + raw[len(raw) - half :].decode("utf-8", "ignore")


def measured(value: Any) -> int:
    """Return how many bytes a value takes at most."""
    if isinstance(value, str):
        return _length(value) + _TEXT
    if isinstance(value, dict):
        return _ITEM + sum(_length(key) + _ENTRY + measured(one) for key, one in value.items())
    if isinstance(value, list):
        return _ITEM + sum(_ITEM + measured(one) for one in value)
    return _ITEM


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _texts(value: Any) -> Iterator[int]:
    """Yield how long each text is that may be cut."""
    if isinstance(value, str):
        yield _length(value)
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def level_of(content: Content, limit: int) -> int:
    """Return the length to which the longest texts have to be cut for all to be within the limit; 0 where no length would do."""
    lengths = sorted(_texts(content))
    room = limit - measured(content) + sum(lengths)
    for at, length in enumerate(lengths):
        share = room // (len(lengths) - at)
        if length > share:
            return max(share, 0)
        room -= length
    return lengths[-1] if lengths and room >= 0 else 0


def cut_texts(content: Content, level: int, told: dict[str, None]) -> Content:
    """Return the content with each longer text cut to this many bytes; the fields that have one are told."""
    return {field: _cut_field(field, value, level, told) for field, value in content.items()}


def _cut_field(path: str, value: Any, level: int, told: dict[str, None]) -> Any:
    """Fields are told by the keys of attributes, and not by where they stand in a list or within a value."""
    if isinstance(value, list):
        return [{name: _cut_field(f"{path}.{name}", one, level, told) for name, one in item.items()} for item in value]
    if isinstance(value, dict):
        return {key: _cut_value(f"{path}.{key}", one, level, told) for key, one in value.items()}
    return _cut_value(path, value, level, told)


def _cut_value(path: str, value: Any, level: int, told: dict[str, None]) -> Any:
    if isinstance(value, str):
        if _length(value) <= level:
            return value
        told[path] = None
        return cut(value, level)
    if isinstance(value, dict):
        return {key: _cut_value(path, one, level, told) for key, one in value.items()}
    return [_cut_value(path, one, level, told) for one in value] if isinstance(value, list) else value


def flattened(content: Content, told: dict[str, None]) -> Content:
    """Return the content with each structure that is longer than a text may be as its JSON, which can be cut as texts are."""
    return {field: _flat_field(field, value, told) for field, value in content.items()}


def _flat_field(path: str, value: Any, told: dict[str, None]) -> Any:
    if isinstance(value, list):
        return [{name: _flat_field(f"{path}.{name}", one, told) for name, one in item.items()} for item in value]
    if not isinstance(value, dict):
        return value
    flat = {key: one for key, one in value.items() if isinstance(one, dict | list) and measured(one) > LEAST}
    told.update(dict.fromkeys(f"{path}.{key}" for key in flat))
    return value | {key: msgspec.json.encode(one).decode() for key, one in flat.items()}


def shed(content: Content, limit: int) -> dict[str, int]:
    """Leave out the last links, events and attributes until the content is within the limit. Returns how many of each.

    Lists and maps are the caller's own, made by :func:`cut_texts`, and change in place.
    """
    over = measured(content) - limit
    left_out: dict[str, int] = {}
    for field in _SHED:
        kept = content.get(field)
        while kept and over > 0:
            if isinstance(kept, dict):
                key, last = kept.popitem()
                over -= _length(key) + _ENTRY + measured(last)
            else:
                over -= _ITEM + measured(kept.pop())
            left_out[field] = left_out.get(field, 0) + 1
    return left_out
