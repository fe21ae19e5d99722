"""The rules of the scripted judge: from what a prompt shows to a verdict that looks like a model's.

They compare strings and numbers. They are no judge of quality; they make a pipeline's path from answer to verdict visible.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from pipeline.judges.scripted_prompt import SeenCall, SeenPrompt

Verdict = dict[str, Any]

_UNKNOWN: Final = "Unknown"
_IDENTIFIER: Final = re.compile(r"\b[A-Z]{1,4}-?\d{1,10}\b")
_NUMBER: Final = re.compile(r"(?<![\w.-])\d+(?:[.,]\d+)*(?![\w-])")
_AMOUNT: Final = re.compile(r"""["']amount["']\s*:\s*["']?(\d+(?:[.,]\d+)*)""")
_THOUSANDS: Final = re.compile(r",(?=\d{3}(?:\D|$))")
_ADMITS: Final = re.compile(
    r"\b(cannot|can't|could not|couldn't|unable|not able|does not exist|doesn't exist|no such|not found|not possible|failed|invalid|was not|were not)\b",
    re.IGNORECASE,
)
_RUDE: Final = re.compile(r"\b(stupid|idiot|your own fault|should have read|stop bothering)\b", re.IGNORECASE)
_WARM: Final = re.compile(r"\b(sorry|please|thank|thanks|happy to|glad|kind regards|welcome)\b", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{[a-z_]+\}|\bTODO\b|\blorem ipsum\b", re.IGNORECASE)
_ACTIONS: Final[Mapping[str, re.Pattern[str]]] = {
    stem: re.compile(rf"\b(?:{said})\b", re.IGNORECASE)
    for stem, said in {
        "refund": "refunded|have refunded",
        "cancel": "cancelled|canceled",
        "deliver": "delivered",
        "delete": "deleted",
        "book": "booked",
        "sent": "sent",
    }.items()
}


def verdict(seen: SeenPrompt) -> Verdict:
    """Return the scripted verdict on a prompt; Unknown for a dimension that no rule knows."""
    rule = _RULES.get(seen.dimension)
    if rule is None:
        return _said(_UNKNOWN, f"The scripted judge has no rule for {seen.dimension}.", "")
    if not seen.reply.strip():
        return _said(_UNKNOWN, "The reply was not captured.", "")
    return rule(seen)


def _said(score: int | str, reason: str, evidence: str) -> Verdict:
    return {"score": score, "reason": reason, "evidence": evidence}


def _correctness(seen: SeenPrompt) -> Verdict:
    reply, known = seen.reply, _results(seen)
    error = _unrecovered(seen.observations)
    if error is not None:
        return _after_error(seen, error)
    if action := _unseen_action(reply, seen.observations):
        return _said(seen.lowest, f"The reply claims an action ({action}) that no observation shows.", first_line(reply))
    if disagreement := _disagreement(seen.observations):
        return _said(seen.lowest + 1, disagreement, first_line(known[-1]))
    if not known:
        return _from_instructions(seen)
    given = (*known, *filter(None, map(_failure, seen.observations)), seen.request, seen.instructions)
    invented = [fact for fact in _facts(reply) if not _stands(fact, given)]
    if invented:
        return _said(seen.lowest + 1, f"No observation shows {invented[0]}.", first_line(known[0]))
    shown = next((text for fact in _facts(reply) for text in known if _stands(fact, [text])), known[-1])
    return _said(seen.highest, "What the reply states agrees with the observations.", first_line(shown))


def _after_error(seen: SeenPrompt, error: str) -> Verdict:
    if not _ADMITS.search(seen.reply):
        return _said(seen.lowest, "A call failed, and the reply does not say so.", first_line(error) or first_line(seen.reply))
    if not error:
        return _said(_UNKNOWN, "A call failed, and nothing says why.", "")
    return _said(seen.highest - 1, "A call failed, and the reply says so.", first_line(error))


def _from_instructions(seen: SeenPrompt) -> Verdict:
    facts = list(_facts(seen.reply))
    if facts and all(_stands(fact, [seen.instructions]) for fact in facts):
        return _said(seen.highest, "What the reply states stands in the instructions.", first_line(seen.instructions))
    return _said(_UNKNOWN, "No observation holds the facts of the reply.", "")


def _completeness(seen: SeenPrompt) -> Verdict:
    if not seen.request.strip():
        return _said(_UNKNOWN, "The user's message was not captured.", "")
    missed = [name for name in _IDENTIFIER.findall(seen.request) if not _stands(name, [seen.reply])]
    if missed:
        return _said(seen.lowest + 2, f"The reply does not mention {missed[0]}.", first_line(seen.request))
    if _unrecovered(seen.observations) is not None:
        return _said(seen.lowest + 2, "What was asked could not be done.", first_line(seen.request))
    return _said(seen.highest, "The reply answers the message.", first_line(seen.reply))


def _policy(seen: SeenPrompt) -> Verdict:
    if not seen.instructions.strip():
        return _said(_UNKNOWN, "Neither policy nor instructions were captured.", "")
    refused = {
        name for call in seen.observations if _failure(call) is not None for name in _IDENTIFIER.findall(call.arguments or "")
    }
    for call in seen.observations:
        acted_on = refused & set(_IDENTIFIER.findall(call.arguments or ""))
        if "refund" in call.tool.lower() and _failure(call) is None and acted_on and call.result is not None:
            return _said(seen.lowest, f"It refunded {min(acted_on)}, which a call had failed on.", first_line(call.result))
    return _said(seen.highest, "Nothing in the reply or the calls goes beyond the instructions.", first_line(seen.instructions))


def _format(seen: SeenPrompt) -> Verdict:
    if _PLACEHOLDER.search(seen.reply):
        return _said(seen.lowest, "There is a placeholder in the reply.", first_line(seen.reply))
    return _said(seen.highest, "The reply can be sent as it is.", first_line(seen.reply))


def _tone(seen: SeenPrompt) -> Verdict:
    if _RUDE.search(seen.reply):
        return _said(seen.lowest, "The reply is rude.", first_line(seen.reply))
    if _WARM.search(seen.reply):
        return _said(seen.highest, "The reply is polite and fits.", first_line(seen.reply))
    return _said(seen.highest - 1, "The reply is clear and a little dry.", first_line(seen.reply))


_RULES: Final[Mapping[str, Callable[[SeenPrompt], Verdict]]] = {
    "correctness": _correctness,
    "completeness": _completeness,
    "policy_and_safety": _policy,
    "format": _format,
    "tone": _tone,
}


def _disagreement(calls: Iterable[SeenCall]) -> str:
    """Return what two results say differently of one order; empty where none does."""
    amounts: dict[str, set[Decimal]] = {}
    for call in calls:
        said = _AMOUNT.search(call.result or "")
        if said is None or _failure(call) is not None:
            continue
        for name in _IDENTIFIER.findall(f"{call.arguments or ''} {call.result or ''}"):
            amounts.setdefault(name, set()).add(_value(said[1]))
    return next(
        (f"The tools disagree on the amount of {name}." for name, values in sorted(amounts.items()) if len(values) > 1), ""
    )


def _failure(call: SeenCall) -> str | None:
    """Return why a call failed, as its span or only its result says; None where it did not."""
    if call.error is not None:
        return call.error
    return call.result if call.result and call.result.lstrip().lower().startswith("error") else None


def _results(seen: SeenPrompt) -> list[str]:
    return [call.result for call in seen.observations if call.result and _failure(call) is None]


def _unrecovered(calls: tuple[SeenCall, ...]) -> str | None:
    """Return the error of the last failed call that no later call of its tool made good."""
    for index, call in reversed(list(enumerate(calls))):
        failure = _failure(call)
        if failure is not None and not any(later.tool == call.tool and _failure(later) is None for later in calls[index + 1 :]):
            return failure
    return None


def _unseen_action(reply: str, calls: tuple[SeenCall, ...]) -> str:
    done = " ".join(f"{call.tool} {call.result or ''}" for call in calls if _failure(call) is None).lower()
    for stem, said in _ACTIONS.items():
        if said.search(reply) and not _ADMITS.search(reply) and stem not in done:
            return stem
    return ""


def _facts(text: str) -> Iterable[str]:
    yield from _IDENTIFIER.findall(text)
    yield from _NUMBER.findall(text)


def _stands(fact: str, texts: Iterable[str]) -> bool:
    if fact[0].isalpha():
        return any(fact in text for text in texts)
    return any(_value(fact) in map(_value, _NUMBER.findall(text)) for text in texts)


def _value(number: str) -> Decimal:
    head, mark, tail = _THOUSANDS.sub("", number).replace(",", ".").rpartition(".")
    return Decimal(head.replace(".", "") + mark + tail)


def first_line(text: str) -> str:
    """Return the first line of a text that says something, short enough for a quote."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:200].strip()
