"""Text as the store can hold it: UTF-8 and JSON, exactly where that is possible, readable where it is not."""

import json
from collections.abc import Callable
from math import isfinite
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


def without_surrogates(value: Any) -> Any:
    """Return the text, or list of texts, with what is not text (lone surrogates) as U+FFFD; anything else as it is.

    They come from JSON escapes in what models and tools said (reliability R82, R83); one must not cost a batch.
    """
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [without_surrogates(one) for one in value]
    return value


def to_json(value: Any) -> str:
    """Return plain values or nouns as JSON.

    Whole numbers keep all their digits, also those beyond 64 bits, which msgspec refuses to write.
    """
    try:
        return _encode(value).decode()
    except (OverflowError, UnicodeEncodeError):
        text: str = without_surrogates(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False))
        return text


def readable(decode: Callable[[str], T], text: str, otherwise: T) -> T:
    """Return what stored JSON says. A row that somebody else broke says nothing, and costs no other row its reader (reliability R85)."""
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return otherwise


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not isfinite(value):
        return None  # as msgspec writes it
    return value
