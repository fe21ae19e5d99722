"""Pair file: which runs are compared, as CSV or JSON lines; with what people said of each pair where that is known."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pipeline.errors import ConfigurationError
from pipeline.model.pairwise import Preference

_KEYS: Final = ("a", "b", "better")
_WORDS: Final = {one.value: one for one in Preference if one.decided}


class Pair(msgspec.Struct, frozen=True):
    """Two runs, by their ids or as much of the beginnings as is unique."""

    a: str
    b: str
    better: Preference | None = None
    """What people said; None where nobody did."""


def read(path: Path) -> list[Pair]:
    """Read a file of pairs: ``.csv`` with the columns a and b, or JSON lines with such keys; ``better`` beside them is a, b or tie.

    Raises:
        ConfigurationError: it cannot be read, or a line is no pair.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the pairs {path} cannot be read: {error}") from error
    try:
        rows = _csv(text) if path.suffix.lower() == ".csv" else _json_lines(text)
        pairs = [_pair(row, f"{path}:{number}") for number, row in rows]
    except (csv.Error, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"{path}: {error}; write CSV with a header a,b or JSON lines with a and b") from error
    if not pairs:
        raise ConfigurationError(f"there is no pair in {path}")
    return pairs


def _csv(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(text.splitlines(), strict=True)
    for row in reader:
        yield reader.line_num, row


def _json_lines(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    lines: Iterable[tuple[int, str]] = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        if line.strip():
            yield number, msgspec.json.decode(line, type=dict[str, Any])


def _pair(row: Mapping[str, Any], where: str) -> Pair:
    strange = [str(key) for key in row if key not in _KEYS]
    texts = [row.get(key) for key in _KEYS]
    said = [text.strip() for text in texts if isinstance(text, str)]
    if strange or len(said) < len([text for text in texts if text is not None]):
        raise ConfigurationError(f"{where}: write a, b and perhaps better, each a text, and nothing else")
    a, b, better = ((text or "").strip() for text in texts)
    if not a or not b:
        raise ConfigurationError(f"{where}: write the ids of two runs as a and b")
    if better and better.casefold() not in _WORDS:
        raise ConfigurationError(f"{where}: better is {better!r}; write a, b or tie, or leave it empty")
    return Pair(a, b, _WORDS.get(better.casefold()))
