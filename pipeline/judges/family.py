"""Which family a model belongs to: a judge is lenient with its own (judging section 3, item 10)."""

import re
from typing import Final

_FAMILIES: Final = (
    ("openai", r"gpt|chatgpt|o[1345]\b|davinci"),
    ("anthropic", r"claude"),
    ("google", r"gemini|gemma|palm"),
    ("meta", r"llama"),
    ("mistral", r"mistral|mixtral|ministral|codestral|magistral|devstral|pixtral"),
    ("alibaba", r"qwen|qwq"),
    ("deepseek", r"deepseek"),
    ("xai", r"grok"),
    ("cohere", r"command|c4ai|aya"),
    ("microsoft", r"phi"),
    ("amazon", r"nova|titan"),
    ("zhipu", r"glm"),
    ("moonshot", r"kimi|moonshot"),
    ("huggingface", r"smollm"),
)
_NAMED: Final = tuple((family, re.compile(rf"(?:^|[/._:@-])(?:{names})", re.IGNORECASE)) for family, names in _FAMILIES)

FAMILIES: Final = tuple(name for name, _ in _FAMILIES)
"""Every family that can be told."""


def family(model: str) -> str:
    """Return the family of a model by its id, such as ``openai`` for ``azure/gpt-4o``; empty where the id does not tell."""
    hits = [(match.start(), name) for name, pattern in _NAMED if (match := pattern.search(model))]
    # In deepseek-r1-distill-qwen-7b the first name is whose answers it learned.
    return min(hits)[1] if hits else ""


def related(one: str, other: str) -> bool:
    """Whether two model ids are the same model or of one family."""
    return bool(one) and (one == other or (family(one) != "" and family(one) == family(other)))
