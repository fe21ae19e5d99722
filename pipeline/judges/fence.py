"""The fence between a judge's instructions and what a run contains: everything inside it is data."""

import re
from typing import Final

from pipeline.judges.lookalike import INVISIBLE, plain

_UNSEEN: Final = f"{INVISIBLE}*"
_DATA: Final = rf"(?:{_UNSEEN.join('BEGIN')}|{_UNSEEN.join('END')})[\s{INVISIBLE}]++{_UNSEEN.join('DATA')}"
_MARKER: Final = re.compile(
    rf"""
      (?P<fence> (?<![={INVISIBLE}]){INVISIBLE}*+=[={INVISIBLE}]*+ (?=[\s{INVISIBLE}]*+{_DATA}) )
    | (?P<angle> < (?={_UNSEEN}(?:
          \|                                                    # ChatML, Llama 3 and 4, Phi, Cohere, Harmony, GLM, Granite, DeepSeek
        | /?(?:s|bos|eos|sop|eop|eoh|eoa|tool_responses?)>      # Llama 2, Gemma, GLM, InternLM, Qwen
        | (?:bos|eos)_token> | <?/?sys>                         # Cohere, Llama 2
        | (?:start|end|begin)_of_[a-z_]+>                       # Gemma and others
      )))
    | (?P<square> \[ (?={_UNSEEN}/?(?:                          # Llama 2, Mistral, GLM
          inst|system_prompt|available_tools|tool_calls|tool_results|tool_content|model_settings|[gs]mask
      )\]))
    """,
    re.IGNORECASE | re.VERBOSE,
)
_INERT: Final = {"fence": "~", "angle": "‹", "square": "⁅"}


def neutralised(text: str) -> str:
    """Return the text with everything made inert that looks like our fence or like a chat template's control token.

    A control token ends the prompt's message wherever it stands, so no fence helps against it. What only looks like a marker, or becomes one
    for a tokenizer that normalises Unicode, counts as one. Applying it twice changes nothing more. Quotes are looked for in texts treated the
    same way (``quote.found``).
    """
    parts, at = [], 0
    for marker in _MARKER.finditer(plain(text)):
        parts += [text[at : marker.start()], _INERT[marker.lastgroup or ""]]
        at = marker.end()
    return "".join((*parts, text[at:]))


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
