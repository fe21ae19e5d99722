"""The scripted judge on pairs: its rules grade each of the two, and the better grade is preferred. It is no judge of quality."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import msgspec

from pipeline.judges.scripted_criteria import decision
from pipeline.judges.scripted_prompt import SeenPrompt, calls_of, section
from pipeline.judges.scripted_rules import verdict
from pipeline.model.pairwise import Place

_DIMENSION: Final = re.compile(r"by one thing alone: ([a-z0-9_-]+)\.")
_NONCE: Final = re.compile(r"=== BEGIN DATA (\S+)")
_CRITERION: Final = re.compile(r"^What counts is [a-z0-9_-]+\. It is met when ", re.MULTILINE)
_RANKS: Final = {"FAIL": 0, "PASS": 1}


class SeenPair(msgspec.Struct, frozen=True):
    """A pairwise prompt, read back as what would be seen of each of the two alone."""

    first: SeenPrompt
    second: SeenPrompt

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, object]]) -> Self | None:
        """Read the messages of a chat request; None where they are no pairwise prompt."""
        texts = [str(message.get("content", "")) for message in messages]
        if len(texts) != 2:  # noqa: PLR2004
            return None
        rules, data = texts
        dimension, nonce = _DIMENSION.search(rules), _NONCE.search(rules)
        if dimension is None or nonce is None:
            return None
        criterion = _CRITERION.search(data) is not None
        return cls(*(_one(data, place, dimension[1], nonce[1], criterion=criterion) for place in Place))


def preference(seen: SeenPair) -> dict[str, Any]:
    """Return the scripted preference; Unknown where a rule knows nothing of one of the two."""
    said = {place: _graded(one) for place, one in ((Place.FIRST, seen.first), (Place.SECOND, seen.second))}
    unknown = next((one for one in said.values() if one["rank"] is None), None)
    if unknown is not None:
        return {"better": "Unknown", "quoted_from": "FIRST", "reason": unknown["reason"], "evidence": ""}
    first, second = said[Place.FIRST]["rank"], said[Place.SECOND]["rank"]
    better = Place.FIRST if first >= second else Place.SECOND
    return {
        "better": "TIE" if first == second else better.name,
        "quoted_from": better.name,
        "reason": said[better]["reason"],
        "evidence": said[better]["evidence"],
    }


def _one(data: str, place: Place, dimension: str, nonce: str, *, criterion: bool) -> SeenPrompt:
    shown = {name: section(data, f"{place} {name}", nonce) for name in ("instructions", "observations", "reply")}
    return SeenPrompt(
        dimension=dimension,
        lowest=0 if criterion else 1,
        highest=1 if criterion else 5,
        request=section(data, "request", nonce),
        instructions=shown["instructions"],
        observations=tuple(calls_of(shown["observations"])),
        reply=shown["reply"],
        passed_or_failed=criterion,
    )


def _graded(seen: SeenPrompt) -> dict[str, Any]:
    said = decision(seen) if seen.passed_or_failed else verdict(seen)
    grade = said["verdict"] if seen.passed_or_failed else said["score"]
    rank = _RANKS.get(grade) if isinstance(grade, str) else grade
    return {"rank": rank, "reason": said["reason"], "evidence": said["evidence"]}
