"""Text from spans where people read it: what would act on a terminal, or turn the reading direction, is shown instead of obeyed."""

import re
from typing import Any, Final

import msgspec

_ACTS: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, escape sequences among them; tab and line feed stay
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, embeddings, overrides and isolates of the reading direction
    "\u2028\u2029\ufeff"  # line ends that nobody sees
    "\ud800-\udfff"  # halves of a character
    "\U000e0000-\U000e007f"  # tags: letters that nobody sees
    "]"
)
_WRITTEN: Final = re.compile(r"(?:\\u[0-9a-f]{4})+")


def visible(text: str) -> str:
    """Return the text with everything that acts on its reader written as an escape, such as that of U+202E."""
    return _ACTS.sub(_written, text.replace("\r\n", "\n"))


def obeyed(text: str) -> str:
    """Return the text that :func:`visible` writes so: escapes of what acts on its reader as what they stand for."""
    return _WRITTEN.sub(_read, text)


def one_line(value: object, longest: int) -> str:
    """Return what fits a cell: visible, white space as single spaces, cut with an ellipsis after so many characters."""
    line = " ".join(visible(str(value)).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def as_json(value: Any) -> str:
    """Return JSON that means the same and does nothing to a terminal: inside its strings the escapes are JSON's own."""
    return visible(msgspec.json.encode(value).decode())


def _written(match: re.Match[str]) -> str:
    return _spelt(match[0])


def _read(match: re.Match[str]) -> str:
    text = bytes.fromhex(match[0].replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    return "".join(one if _ACTS.fullmatch(one) else _spelt(one) for one in text)


def _spelt(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
