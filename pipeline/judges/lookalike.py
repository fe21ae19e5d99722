"""Characters that are read as others: by people and models for their looks, by tokenizers that normalise for their meaning."""

import unicodedata
from typing import Final

INVISIBLE: Final = "\u200b"
"""Stands in a plain text for every character that is not seen."""

_COMPATIBLE: Final = (
    (0x00A0, 0x0250),  # superscripts and the like
    (0x02B0, 0x0300),
    (0x1D2C, 0x1D6B),
    (0x2070, 0x20A0),
    (0x2100, 0x2190),  # letters as symbols
    (0x2460, 0x2500),  # letters in circles
    (0xFE10, 0xFE70),  # small and vertical forms
    (0xFF01, 0xFF5F),  # full-width forms
    (0x1D400, 0x1D800),  # mathematical letters
    (0x1F100, 0x1F190),
)
"""Where Unicode has characters that mean one ASCII character."""
_UNSEEN: Final = (
    (0x00AD, 0x00AE),
    (0x0300, 0x0370),  # marks on the letter before them
    (0x061C, 0x061D),
    (0x180B, 0x180F),
    (0x200B, 0x2010),
    (0x202A, 0x202F),
    (0x2060, 0x2070),
    (0xFE00, 0xFE10),
    (0xFEFF, 0xFF00),
)
_TAGS: Final = range(0xE0020, 0xE007F)
"""ASCII once more, unseen by people and read by models."""
_ALIKE: Final = {
    "=": "═⹀゠꓿᐀〓≡≣🟰",
    "A": "АΑᎪꓮᴀ",
    "B": "ВΒᏴꓐʙ",
    "D": "ᎠꓓᴅԀ",
    "E": "ЕΕᎬꓰᴇ",
    "G": "ԌᏀꓖɢ",
    "I": "ІΙꓲɪӀ",
    "N": "Νꓠɴ",
    "T": "ТΤᎢꓔᴛ",
    "a": "аα",
    "d": "ԁ",
    "e": "е",
    "g": "ɡց",
    "i": "іι",
    "n": "ո",
    "t": "т",
}
"""What only looks so, in other scripts: enough for the words of a fence."""


def plain(text: str) -> str:
    """Return a text of the same length in which each look-alike of an ASCII character is that character, and what is not seen is ``INVISIBLE``."""
    return text if text.isascii() else text.translate(_PLAIN)


def bare(text: str) -> str:
    """Return the same without what is not seen."""
    return plain(text).replace(INVISIBLE, "")


def _meant(code: int) -> str:
    meant = unicodedata.normalize("NFKC", chr(code))
    return meant if len(meant) == 1 and meant.isascii() and meant.isprintable() and meant != " " else ""


_PLAIN: Final[dict[int, str]] = {
    **{code: meant for start, stop in _COMPATIBLE for code in range(start, stop) if (meant := _meant(code))},
    **{code: INVISIBLE for start, stop in _UNSEEN for code in range(start, stop)},
    **{code: chr(code - 0xE0000) for code in _TAGS},
    **{ord(alike): letter for letter, alikes in _ALIKE.items() for alike in alikes},
}
