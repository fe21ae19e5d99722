"""task_success of a golden case with an expected answer (spec section 4.1)."""

import re
import unicodedata
from decimal import Decimal
from typing import Any, Final

from pipeline.model.reference import Matcher, MatcherKind
from pipeline.model.run import Run
from pipeline.patterns import compiled
from pipeline.scorers.answer import answer_present
from pipeline.scorers.calls import canonical, was_truncated
from pipeline.scorers.check import Finding, Missing, ruled, unknown
from pipeline.scorers.json_values import parsed, unfenced

TASK_SUCCESS: Final = "task_success"
_NUMERAL: Final = re.compile(r"(?<![\w.])-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?!\w)")
_EVIDENCE_LENGTH: Final = 300


def task_success(run: Run, matcher: Matcher) -> Finding:
    """Say whether the answer is the expected one; no answer is a fail, one that nobody captured is unknown."""
    if not run.completed or run.answer is None:
        return answer_present(run)
    if _holds(run.answer, matcher):
        return ruled(holds=True)
    if was_truncated(run):
        return unknown(Missing.ANSWER_NOT_CAPTURED, "texts of the run were cut")
    return ruled(
        holds=False, reason=f"the answer is not {matcher.kind} {matcher.expected!r}", evidence=run.answer[:_EVIDENCE_LENGTH]
    )


def folded(text: str) -> str:
    """Return a text without what does not matter: NFC, case and space folded."""
    # Folding case can leave a text that is not NFC any more.
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).split())


def _holds(answer: str, matcher: Matcher) -> bool:
    match matcher.kind:
        case MatcherKind.EQUALS:
            return folded(answer) == folded(matcher.expected)
        case MatcherKind.CONTAINS:
            return folded(matcher.expected) in folded(answer)
        case MatcherKind.PATTERN:
            return compiled(matcher.expected).matches(answer.encode(errors="replace"))
        case MatcherKind.JSON:
            return bool(_json(answer) == _json(matcher.expected))
        case MatcherKind.NUMBER:
            return any(abs(one - Decimal(matcher.expected)) <= matcher.within for one in _numbers(answer))


def _json(text: str) -> Any:
    """Return a comparable value of JSON, fenced or not; something equal to nothing where it is none."""
    try:
        return canonical(parsed(unfenced(text)))
    except ValueError:
        return object()


def _numbers(answer: str) -> list[Decimal]:
    """Return the numbers of an answer."""
    return [Decimal(found[0].replace(",", "")) for found in _NUMERAL.finditer(answer)]
