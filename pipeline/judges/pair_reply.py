"""The text that a judge's model replied to a pair in, a preference or the reason why there is none out: as strictly as :mod:`reply`."""

from enum import StrEnum
from typing import Any, Final

import msgspec

from pipeline.judges.reply import Malformed, clean, object_schema, only, shown
from pipeline.model.pairwise import Place

PREFERENCE_PARSER_VERSION: Final = "preference-1"


class Better(StrEnum):
    """What one reply says, in terms of the places where the two were shown."""

    FIRST = "first"
    SECOND = "second"
    TIE = "tie"
    UNKNOWN = "unknown"
    GRADER_ERROR = "grader_error"
    """Never written by a judge: what cannot be read comes to it."""


class Preferred(msgspec.Struct, frozen=True):
    """A preference. ``quoted_from`` says in whose data the quote stands; None with Unknown, which needs no quote."""

    better: Better
    quoted_from: Place | None
    reason: str
    evidence: str


_WORDS: Final = {one.value: one for one in Better if one is not Better.GRADER_ERROR}


def preference_schema() -> dict[str, Any]:
    """Return the JSON Schema of a reply to a pair."""
    words = {"type": "string", "enum": ["FIRST", "SECOND", "TIE", "Unknown"]}
    return object_schema(better=words, quoted_from={"type": "string", "enum": ["FIRST", "SECOND"]})


def parse_preference(text: str) -> Preferred | Malformed:
    """Read one preference, an object with ``better``, ``quoted_from``, ``reason`` and ``evidence``; case does not matter."""
    return only(text, "better", _preference)


def _preference(said: dict[str, Any]) -> Preferred | Malformed:
    better = _WORDS.get(_folded(said["better"]))
    reason, evidence = said.get("reason"), said.get("evidence")
    if better is None:
        return Malformed(f"the preference is {shown(said['better'])}, not FIRST, SECOND, TIE or Unknown")
    if better is Better.UNKNOWN:
        texts = (clean(text) if isinstance(text, str) else "" for text in (reason, evidence))
        return Preferred(better, None, *texts)
    place = _folded(said.get("quoted_from"))
    if place not in tuple(Place):
        return Malformed(f"the quote is from {shown(said.get('quoted_from'))}, not FIRST or SECOND")
    if not isinstance(reason, str):
        return Malformed("the reply gives no reason")
    if not isinstance(evidence, str):
        return Malformed("the reply gives no evidence")
    return Preferred(better, Place(place), clean(reason), clean(evidence))


def _folded(word: Any) -> str:
    return word.strip().casefold() if isinstance(word, str) else ""
