"""Attribute values as they come: JSON in strings, structured values, or flattened under indexed keys."""

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec

UNREADABLE: Final = object()
"""What :func:`decoded` returns for a text that is no JSON, cut JSON included."""

_WITHHELD: Final = frozenset({"__REDACTED__", "[REDACTED]", "<not specified>", "<not serializable>"})
_NOTHING: Final = _WITHHELD | {"", "None", "N/A"}
_LONGEST_INDEX: Final = 9
_INDEX: Final = re.compile(r"\.\d+(?=\.|$)")
_DEEPEST: Final = 64
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


def decoded(value: Any) -> Any:
    """Return what a JSON text says, encoded once or twice, or the value itself where it is structured already."""
    if not isinstance(value, str):
        return value
    inner = _parsed(value)
    if isinstance(inner, str) and inner[:1] in ("{", "["):
        twice = _parsed(inner)
        return inner if twice is UNREADABLE else twice
    return inner


def _parsed(text: str) -> Any:
    try:
        return _decode(text)
    except RecursionError:
        return UNREADABLE
    except ValueError:
        return _parsed_leniently(text)


def _parsed_leniently(text: str) -> Any:
    """Accept what Python's encoder writes and JSON does not know: NaN and the infinities, which stay words."""
    if "NaN" not in text and "Infinity" not in text:
        return UNREADABLE
    try:
        value = json.loads(text, parse_constant=str)
        _encode(value)  # half a surrogate pair parses, and could not be stored
    except (ValueError, RecursionError):
        return UNREADABLE
    return value


def is_shallow(value: Any) -> bool:
    """Whether a value is nested at most 64 deep: nobody's arguments are deeper, and what compares values walks them recursively."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(outer: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return outer.values() if isinstance(outer, dict) else outer


def structured(value: Any) -> Any:
    """Return the structure that a text holds, or the value as it is where it is none."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        inner = decoded(value)
        return value if inner is UNREADABLE else inner
    return value


def as_text(value: Any) -> str:
    """Return a text as it is, nothing as an empty text, and anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else _encode(value).decode()


def withheld(value: Any) -> bool:
    """Whether a value is missing or was redacted. A text such as ``None`` may be what somebody said."""
    return value is None or (isinstance(value, str) and value in _WITHHELD)


def captured(value: Any) -> bool:
    """Whether a value says anything: not withheld, and not one of the words that stand for nothing in names, ids and arguments."""
    return value is not None and (not isinstance(value, str) or (value not in _NOTHING and not value.isspace()))


def first(attributes: Mapping[str, Any], *keys: str) -> Any:
    """Return the first of these attributes that is there and was not withheld, None if none is."""
    for key in keys:
        value = attributes.get(key)
        if not withheld(value):
            return value
    return None


def first_text(attributes: Mapping[str, Any], *keys: str) -> str:
    """Return the first of these names or ids that says anything, as a text; empty if none does."""
    for key in keys:
        if key in attributes and captured(attributes[key]):
            return as_text(attributes[key])
    return ""


def integer(value: Any) -> int | None:
    """Return a whole number that may have come as a float or a text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 2 * _LONGEST_INDEX:
        return int(value)
    return None


def nested(attributes: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the attributes under ``prefix`` as the tree that their dotted names spell, in one pass.

    A name that ends where another goes on keeps its value under the empty key, or is left out if it comes first: nobody means both.
    """
    tree: dict[str, Any] = {}
    size = len(prefix)
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        *path, leaf = key[size:].split(".")
        node = tree
        for part in path:
            below = node.get(part)
            if not isinstance(below, dict):
                below = node[part] = {}
            node = below
        if isinstance(node.get(leaf), dict):
            node, leaf = node[leaf], ""
        node[leaf] = deepcopy(value) if isinstance(value, dict) else value  # other names may go on inside
    return tree


def in_order(node: Any) -> list[Any]:
    """Return what stands under numbers, by number. They may start anywhere and have gaps (dialects reference, trap 4)."""
    if not isinstance(node, dict):
        return []
    found = [key for key in node if key.isascii() and key.isdigit() and len(key) <= _LONGEST_INDEX]
    if len(found) > 1:
        found.sort(key=int)
    return [node[key] for key in found]


def indexed(name: str) -> str:
    """Return an attribute's name with ``N`` in the place of each index."""
    return _INDEX.sub(".N", name)


def as_dict(node: Any) -> dict[str, Any]:
    """Return a node of a tree to look into; empty where there is none."""
    return node if isinstance(node, dict) else {}
