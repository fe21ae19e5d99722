"""Answers that are decided without a model: those that say nothing (spec section 6).

A model can be talked into passing them ("One token to fool", arXiv 2507.08794), so none is asked.
"""

import re
import unicodedata
from typing import Final

from pipeline.judges.lookalike import bare

_OPENERS: Final = frozenset(
    {
        "solution",
        "thought process",
        "lets solve this problem step by step",
        "lets think step by step",
        "step by step solution",
        "answer",
        "the answer",
        "final answer",
        "here is the solution",
        "解",
        "解答",
        "かいせつ",
        "respuesta",
        "réponse",
        "lösning",
        "lösung",
        "antwort",
    }
)
"""Words that announce an answer and are none."""


def near_empty(answer: str) -> bool:
    """Whether an answer has no letter and no digit, or only announces an answer that never comes."""
    seen = bare(unicodedata.normalize("NFC", answer)).replace("'", "").replace("’", "")
    words = re.sub(r"[\W_]+", " ", seen).casefold().strip()
    return not words or words in _OPENERS
