"""JSON inside of text: opened, redacted inside, and written again only where something was found."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

_ESCAPED: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")
_NEEDED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def may_be_json(text: str) -> bool:
    """Whether text begins as an object or an array does."""
    return text.lstrip().startswith(("{", "["))


def redact_json(text: str, redact: Callable[[Any], Any]) -> str | None:
    """Return JSON in which ``redact`` has replaced values; None where the text is no JSON after all.

    Of what stands outside of texts the spelling may change: spaces, ``1.50`` and ``1.5``, a key that stands twice.
    """
    try:
        value = json.loads(text)
        clean = redact(value)
        if clean is value:
            return text
        # Half a surrogate pair can only be written as an escape.
        as_ascii = text.isascii() or "\\ud" in text.lower()
        separators = None if '": ' in text else (",", ":")
        return json.dumps(clean, ensure_ascii=as_ascii, allow_nan=False, separators=separators)
    except (ValueError, RecursionError):
        return None


def unescaped(text: str) -> str:
    r"""Return text with ``\u0040`` as what it stands for, where that needs no escape: for JSON that is cut off, or part of other text."""
    return _ESCAPED.sub(_character, text) if "\\u" in text else text


def _character(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    if _NEEDED.match(character):
        return match[0]
    return f"\\{character}" if character in '"\\' else character
