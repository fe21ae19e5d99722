"""How often a call succeeded: ``require``, ``at_most``, ``exactly`` (spec section 4.2)."""

from collections.abc import Hashable
from typing import Final

import msgspec

from pipeline.model.run import Run
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import canonical, describe, failed
from pipeline.scorers.check import Finding, Missing, ruled
from pipeline.scorers.policy_rules import AtMostSettings, ExactlySettings, RequireSettings, concerned, in_doubt
from pipeline.scorers.predicates import argument

_ALL: Final = ""
"""What calls are counted by where a rule does not count apart."""


class _Range(msgspec.Struct, frozen=True):
    """How many successes are right; ``most`` is None where there is no end."""

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.least == self.most:
            return f"exactly {self.least}"
        return f"at least {self.least}" if self.most is None else f"at most {self.most}"


class _Counted(msgspec.Struct, frozen=True):
    """Successes by what they are counted by, and what keeps some from being counted."""

    calls: dict[Hashable, list[ToolCall]]
    doubts: tuple[Missing, ...]


def counted(rule: RequireSettings | AtMostSettings | ExactlySettings, run: Run) -> Finding | None:
    """Hold the rule's calls against its range; absent where they are counted apart, some must be, and there are none."""
    right = _range(rule)
    per = "" if isinstance(rule, RequireSettings) else rule.per
    found = _count(rule, per, run)
    if per and right.least and not found.calls and not found.doubts:
        return None
    for calls in found.calls.values():
        too_few = len(calls) + len(found.doubts) < right.least
        if too_few or (right.most is not None and len(calls) > right.most):
            apart = f" for one {per}" if per else ""
            reason = f"{rule.tool} succeeded {len(calls)} times{apart}, {right} {'wanted' if too_few else 'allowed'}"
            return ruled(holds=False, reason=reason, evidence=describe(calls[-1]) if calls else "")
    return in_doubt(rule, found.doubts[0]) if _may_differ(found, right) else ruled(holds=True)


def _range(rule: RequireSettings | AtMostSettings | ExactlySettings) -> _Range:
    if isinstance(rule, RequireSettings):
        return _Range(rule.times, None)
    return _Range(0 if isinstance(rule, AtMostSettings) else rule.times, rule.times)


def _count(rule: RequireSettings | AtMostSettings | ExactlySettings, per: str, run: Run) -> _Counted:
    calls: dict[Hashable, list[ToolCall]] = {} if per else {_ALL: []}
    doubts: list[Missing] = []
    for one in concerned(rule, run):
        if failed(one.call):
            continue
        value = argument(one.call, per) if per else None
        doubt = one.doubt or (value if isinstance(value, Missing) else None)
        if doubt is None:
            calls.setdefault(canonical(value) if per else _ALL, []).append(one.call)
        else:
            doubts.append(doubt)
    return _Counted(calls, tuple(doubts))


def _may_differ(found: _Counted, right: _Range) -> bool:
    """Whether the calls that could not be counted can still break the rule, or are what would fulfil it."""
    if not found.doubts:
        return False
    counts = [len(calls) for calls in found.calls.values()]
    over = right.most is not None and max(counts, default=0) + len(found.doubts) > right.most
    return over or min(counts, default=0) < right.least
