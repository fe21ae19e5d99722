"""The text that a judge's model replied in, a parsed verdict or the reason why there is none out.

Strict on purpose: the commonest defect of this trade is a grader's failure that became a score.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

PARSER_VERSION: Final = "reply-1"
"""Of scores on a scale."""
VERDICT_PARSER_VERSION: Final = "verdict-1"
"""Of PASS and FAIL."""
LONGEST: Final = 64 * 1024
"""Characters; a longer reply is no verdict of one sentence and a quote."""
_MOST_BRACES: Final = 100
"""Opening braces that begin no object."""

_LEFT: Final = {
    key: re.compile(rf"""["']{key}["']\s*:|[{{,]\s*{key}\s*:""", re.IGNORECASE) for key in ("score", "verdict", "better")
}
"""What is left of an object with a score, a verdict or a preference that cannot be read."""
_WORDS: Final = {"pass": 1, "fail": 0}
"""What a criterion's verdict says, as a score on the scale 0 to 1; case does not matter, as for Unknown."""


class Parsed(msgspec.Struct, frozen=True):
    """A verdict. ``score`` is None where the judge answered Unknown; then ``evidence`` may be empty. PASS is 1 and FAIL is 0."""

    score: int | None
    reason: str
    evidence: str


class Malformed(msgspec.Struct, frozen=True):
    """No verdict can be read; ``reason`` says why."""

    reason: str


T = TypeVar("T")


class _TooManyBracesError(Exception):
    """Trying each of them would take the square of the reply's length."""


def schema(low: int, high: int) -> dict[str, Any]:
    """Return the JSON Schema of a reply on a scale, for endpoints that can hold a model to one."""
    score = {"anyOf": [{"type": "integer", "enum": list(range(low, high + 1))}, {"type": "string", "enum": ["Unknown"]}]}
    return object_schema(score=score)


def verdict_schema() -> dict[str, Any]:
    """Return the JSON Schema of a reply on a criterion."""
    return object_schema(verdict={"type": "string", "enum": ["PASS", "FAIL", "Unknown"]})


def object_schema(**decided: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with what decides, a reason and a quote."""
    properties = {**decided, "reason": {"type": "string"}, "evidence": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parse(text: str, scale: tuple[int, int]) -> Parsed | Malformed:
    """Read one verdict, an object with ``score``, ``reason`` and ``evidence``: bare, fenced or in prose (spec section 6).

    Other keys decide nothing. Two verdicts that differ, or something that may be the rest of another one, are malformed.
    """
    return only(text, "score", lambda said: _verdict(said, said["score"], lambda score: _score(score, scale)))


def parse_verdict(text: str) -> Parsed | Malformed:
    """Read one verdict on a criterion, an object with ``verdict``, ``reason`` and ``evidence``, as strictly as :func:`parse` (section 2.3)."""
    return only(text, "verdict", lambda said: _verdict(said, said["verdict"], _word))


def only(text: str, key: str, read: Callable[[dict[str, Any]], T | Malformed]) -> T | Malformed:
    """Read the one object with ``key`` in a text: bare, fenced or in prose. None, or two that differ, are malformed.

    ``key`` is one that this module knows the remains of.
    """
    if len(text) > LONGEST:
        return Malformed(f"the reply is longer than {LONGEST} characters")
    if not text.strip():
        return Malformed("the reply is empty")
    try:
        objects, rest = _objects(text)
    except (RecursionError, _TooManyBracesError):
        return Malformed("the reply is no text with an object in it, but a heap of braces")
    return _same(key, [read(said) for said in objects if key in said], rest)


def _same(key: str, verdicts: Sequence[T | Malformed], rest: str) -> T | Malformed:
    if not verdicts:
        return Malformed(f"there is no JSON object with a {key} in the reply")
    if any(verdict != verdicts[0] for verdict in verdicts):
        return Malformed("there are several verdicts in the reply, and they differ")
    if _LEFT[key].search(rest):
        return Malformed("there is more than one verdict in the reply, and not all can be read")
    return verdicts[0]


def _verdict(said: dict[str, Any], answer: Any, read: Callable[[Any], int | Malformed]) -> Parsed | Malformed:
    reason, evidence = said.get("reason"), said.get("evidence")
    if isinstance(answer, str) and answer.strip().casefold() == "unknown":
        return Parsed(
            None, clean(reason) if isinstance(reason, str) else "", clean(evidence) if isinstance(evidence, str) else ""
        )
    score = read(answer)
    if isinstance(score, Malformed):
        return score
    if not isinstance(reason, str):
        return Malformed("the reply gives no reason")
    if not isinstance(evidence, str):
        return Malformed("the reply gives no evidence")
    return Parsed(score, clean(reason), clean(evidence))


def _score(answer: Any, scale: tuple[int, int]) -> int | Malformed:
    if not isinstance(answer, int) or isinstance(answer, bool):
        return Malformed(f"the score is {shown(answer)}, not a whole number")
    if not scale[0] <= answer <= scale[1]:
        return Malformed(f"the score {shown(answer)} is not on the scale {scale[0]} to {scale[1]}")
    return answer


def _word(answer: Any) -> int | Malformed:
    word = _WORDS.get(answer.strip().casefold()) if isinstance(answer, str) else None
    return Malformed(f"the verdict is {shown(answer)}, not PASS, FAIL or Unknown") if word is None else word


def _objects(text: str) -> tuple[list[dict[str, Any]], str]:
    """Return the outermost JSON objects in a text, and the text without them."""
    objects: list[dict[str, Any]] = []
    rest: list[str] = []
    at = failed = 0
    while (start := text.find("{", at)) >= 0:
        rest.append(text[at:start])
        try:
            said, at = _decoder.raw_decode(text, start)
            objects.append(said)
        except ValueError:
            failed += 1
            if failed > _MOST_BRACES:
                raise _TooManyBracesError from None
            rest.append("{")
            at = start + 1
    rest.append(text[at:])
    return objects, "".join(rest)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key, value in pairs:
        if key in said:
            raise ValueError(f"the key {key} stands twice")
        said[key] = value
    return said


_decoder: Final = json.JSONDecoder(object_pairs_hook=_unique)


def shown(value: object) -> str:
    """Return what was written in the place of an answer, shortly."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)[:40]


def clean(text: str) -> str:
    """Return a text that can be stored."""
    # A lone surrogate can be written in JSON and cannot be stored.
    return text.encode("utf-8", "replace").decode("utf-8")
