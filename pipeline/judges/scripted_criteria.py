"""The scripted judge on criteria: its rules for scores, with a line between pass and fail. It is no judge of quality."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from pipeline.judges.scripted_prompt import SeenCall, SeenPrompt
from pipeline.judges.scripted_rules import first_line, verdict

_SCALE: Final = (1, 5)
_BORROWED: Final[Mapping[str, tuple[str, int]]] = {
    "grounded": ("correctness", 4),
    "resolves": ("completeness", 4),
    "safe_refusal": ("policy_and_safety", 4),
}
"""By criterion: the dimension of ``support`` whose rule decides, and the least score that passes."""
_SOURCE: Final = re.compile(r"""["'](?:document|source|file|url)["']\s*:\s*["']([^"']{2,})["']""")


def decision(seen: SeenPrompt) -> dict[str, Any]:
    """Return the scripted verdict on a criterion; Unknown for one that no rule knows."""
    if seen.dimension == "cites":
        return _cites(seen)
    dimension, least = _BORROWED.get(seen.dimension, (seen.dimension, 0))
    lowest, highest = _SCALE
    said = verdict(msgspec.structs.replace(seen, dimension=dimension, lowest=lowest, highest=highest))
    score = said.pop("score")
    return {"verdict": score if isinstance(score, str) else _word(passes=score >= least), **said}


def _cites(seen: SeenPrompt) -> dict[str, Any]:
    named = [source for source in _sources(seen.observations) if source in seen.reply]
    missed = [source for source in _sources(seen.observations) if source not in seen.reply]
    if missed:
        return {
            "verdict": _word(passes=False),
            "reason": f"The reply does not name {missed[0]}.",
            "evidence": first_line(seen.reply),
        }
    what = f"The reply names {named[0]}." if named else "No source was used that it could name."
    return {"verdict": _word(passes=True), "reason": what, "evidence": named[0] if named else first_line(seen.reply)}


def _sources(calls: Iterable[SeenCall]) -> list[str]:
    return [source for call in calls for source in _SOURCE.findall(call.result or "")]


def _word(*, passes: bool) -> str:
    return "PASS" if passes else "FAIL"
