"""Texts: all that a sender wrote in names and values, however deep, to be looked at together."""

from base64 import b64decode
from collections.abc import Iterable
from typing import Any, Final

from pipeline.model.span import Attributes

LARGE: Final = 10**8
"""From here on a whole number is read as text is: a card's number can be one."""
HOLD_TEXT: Final = frozenset({str, int, list, dict})
"""Types of values in which there may be text, or what is read as one."""
_BYTES: Final = "bytesValue"


def texts_of(attributes: Attributes) -> list[str]:
    """Return all text of attributes: names, and values however deep."""
    texts: list[str] = []
    add_texts(attributes, texts)
    return texts


def texts_in(value: Any) -> list[str]:
    """Return all text of a value, however deep."""
    texts: list[str] = []
    _add_values((value,), texts)
    return texts


def add_texts(attributes: Attributes, texts: list[str]) -> None:
    """Add all text of attributes to some texts."""
    texts += attributes
    _add_values(attributes.values(), texts)


def _add_values(values: Iterable[Any], texts: list[str]) -> None:
    kinds = set(map(type, values))
    # Nearly every attribute is text, and long lists are of numbers.
    if str in kinds:
        texts += [value for value in values if type(value) is str] if len(kinds) > 1 else values
        kinds.discard(str)
    if not kinds.isdisjoint(HOLD_TEXT):
        for value in values:
            kind = type(value)
            if kind is dict:
                _add_map(value, texts)
            elif kind is list:
                _add_values(value, texts)
            elif kind is int and not -LARGE < value < LARGE:
                texts.append(str(value))


def _add_map(value: Attributes, texts: list[str]) -> None:
    raw = bytes_in(value)
    if raw is None:
        add_texts(value, texts)
    else:
        texts.append(text_of(raw))


def bytes_in(value: Attributes) -> bytes | None:
    """Return the bytes of an attribute that is bytes; None where it only looks like one."""
    text = value.get(_BYTES)
    if len(value) != 1 or not isinstance(text, str):
        return None
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None


def text_of(raw: bytes) -> str:
    """Return bytes as text, whatever they are."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
