"""Long lists: a server refuses a form field of more than 128 KiB, so a longer list of keys is bound in pieces and joined by the engine."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

PIECE: Final = 32 * 1024
"""Bytes of a piece as Python shows it. Escaped for a server it may be a few times as long, and a server takes four times as much."""


def in_pieces(sql: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a query and its parameters with every longer list bound as several.

    ``arrayConcat`` of bound arrays is a constant like a bound array: it is looked up in the primary key just the same.
    """
    bound: dict[str, Any] = {}
    for name, value in parameters.items():
        pieces = list(_pieces(value)) if isinstance(value, list) else []
        if len(pieces) > 1:
            names = {f"{name}_{number}": piece for number, piece in enumerate(pieces)}
            sql = re.sub(rf"\{{{name}:(Array\(.+?\))\}}", lambda found, names=names: _joined(names, found[1]), sql)  # type: ignore[misc]
            bound |= names
        else:
            bound[name] = value
    return sql, bound


def _joined(names: Mapping[str, Any], array_type: str) -> str:
    return f"arrayConcat({', '.join(f'{{{name}:{array_type}}}' for name in names)})"


def _pieces(values: Sequence[Any]) -> Iterator[list[Any]]:
    piece: list[Any] = []
    size = 0
    for value in values:
        length = len(repr(value).encode(errors="surrogatepass"))
        if piece and size + length > PIECE:
            yield piece
            piece, size = [], 0
        piece.append(value)
        size += length
    yield piece
