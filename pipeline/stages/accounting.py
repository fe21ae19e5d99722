"""Accounting: the one class that each live run has (spec section 1). Results of its planned judged dimensions in, class and reason out."""

from collections.abc import Sequence
from typing import Final

from pipeline.model.result import Outcome, Result, Unresolved
from pipeline.model.run import RunClass

_WORDS: Final = frozenset(Unresolved)


def run_class(judged: Sequence[Result], *, sampled: bool, completed: bool) -> tuple[RunClass, str]:
    """Return the first class that holds, and for an unresolved run the first reason that any planned judged dimension has.

    A judgment that a judge gave counts as judged whatever authority it carries.
    """
    if not sampled:
        return RunClass.UNSAMPLED, ""
    if not completed:
        return RunClass.UNRESOLVED, Unresolved.INCOMPLETE
    if any(result.outcome is None for result in judged):
        return RunClass.PENDING, ""
    reasons = {_unresolved(result) for result in judged if result.outcome is not None and not result.outcome.decided}
    for reason in Unresolved:
        if reason in reasons:
            return RunClass.UNRESOLVED, reason
    return RunClass.JUDGED, ""


def first_word(reason: str) -> str:
    """Return the word of a closed list that the reason of an undecided result starts with."""
    return reason.partition(":")[0].strip()


def _unresolved(result: Result) -> Unresolved:
    word = first_word(result.reason)
    if word in _WORDS:
        return Unresolved(word)
    return Unresolved.GRADER_ERROR if result.outcome is Outcome.GRADER_ERROR else Unresolved.INSUFFICIENT_EVIDENCE
