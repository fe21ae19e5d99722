"""The fence between a judge's instructions and what a run contains: everything inside it is data."""

import re
from typing import Final

_FENCE: Final = re.compile(r"=+(?=\s*(?:BEGIN|END)\s+DATA)", re.IGNORECASE)
_CONTROL: Final = re.compile(r"<(?=\||/?s>|<?/?SYS>|(?:start|end)_of_turn>)|(?<=\|)>|\[(?=/?INST\])", re.IGNORECASE)
_INERT: Final = {"<": "‹", ">": "›", "[": "⁅"}


def neutralised(text: str) -> str:
    """Return the text with everything made inert that looks like our fence or like a chat template's control token.

    Applying it twice changes nothing more. Quotes are looked for in texts treated the same way (``quote.found``).
    """
    return _CONTROL.sub(lambda match: _INERT[match[0]], _FENCE.sub("~", text))


def fenced(name: str, text: str, nonce: str) -> str:
    """Return the text between two lines that only who knows the nonce could write."""
    return f"{begin(name, nonce)}\n{neutralised(text.replace(nonce, '~'))}\n{end(name, nonce)}"


def begin(name: str, nonce: str) -> str:
    """Return the line that opens a section of data."""
    return f"=== BEGIN DATA {nonce} {name} ==="


def end(name: str, nonce: str) -> str:
    """Return the line that closes a section of data."""
    return f"=== END DATA {nonce} {name} ==="


def indented(text: str, by: str) -> str:
    """Return the text with all its lines but the first indented, so that no line of it can pass for a new entry."""
    return f"\n{by}".join(text.splitlines())
