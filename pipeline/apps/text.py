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


def visible(text: str) -> str:
    """Return the text with everything that acts on its reader written as an escape, such as that of U+202E."""
    return _ACTS.sub(_written, text.replace("\r\n", "\n"))


def one_line(value: object, longest: int) -> str:
    """Return what fits a cell: visible, white space as single spaces, cut with an ellipsis after so many characters."""
    line = " ".join(visible(str(value)).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def as_json(value: Any) -> str:
    """Return JSON that means the same and does nothing to a terminal: inside its strings the escapes are JSON's own."""
    return visible(msgspec.json.encode(value).decode())


def _written(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
