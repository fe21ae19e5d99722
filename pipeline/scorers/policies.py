"""Policies: what an agent must do and must never do, declared by its owners (spec section 4.2)."""

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Self

from msgspec.structs import replace
from pydantic import model_validator

from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.scorers.call_counts import counted
from pipeline.scorers.calls import began, calls_unseen, describe, ended, times_of
from pipeline.scorers.check import Check, CheckName, Finding, Measure, Missing, check_of, ruled, unknown
from pipeline.scorers.policy_rules import (
    AtMostSettings,
    BeforeSettings,
    Concerned,
    ExactlySettings,
    ForbidSettings,
    RequireSettings,
    Rule,
    concerned,
    in_doubt,
)


class PolicySettings(Settings):
    """One policy. Exactly one of its rules says what it is."""

    name: CheckName
    """Its own name; results, windows and gates know the policy by it."""
    require: RequireSettings | None = None
    """A call that must be made, and succeed."""
    forbid: ForbidSettings | None = None
    """A call that must not be made."""
    before: BeforeSettings | None = None
    """A call that must wait until another one succeeded."""
    at_most: AtMostSettings | None = None
    """A call that must not succeed too often."""
    exactly: ExactlySettings | None = None
    """A call that must succeed so many times, neither more nor less."""
    gate: bool = True
    """Set to false to measure it only."""
    safety: bool = True
    """Set to false where it is no matter of safety: it is not in the safety of a quality score then."""

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        written = [rule for rule in self._rules() if rule is not None]
        if len(written) != 1:
            raise ValueError(
                f"policy {self.name} holds {len(written)} rules; write exactly one of require, forbid, before, at_most, exactly, "
                "such as `before: {tool: refund, needs: confirm}`"
            )
        return self

    @property
    def rule(self) -> Rule:
        """The one rule that is written."""
        return next(rule for rule in self._rules() if rule is not None)

    def _rules(self) -> tuple[Rule | None, ...]:
        return self.require, self.forbid, self.before, self.at_most, self.exactly


def policy_check(policy: PolicySettings) -> Check:
    """Return the check of one policy, named like it."""
    rule = policy.rule
    definition: dict[str, Any] = rule.model_dump(mode="json", by_alias=True, exclude_unset=True)
    terms = {"rule": type(rule).__name__.removesuffix("Settings"), "version": 1, **definition}
    return replace(check_of(policy.name, terms, _measure(rule), gates=policy.gate), is_safety=policy.safety)


def _measure(rule: Rule) -> Measure:
    def measure(run: Run) -> Finding | None:
        if calls_unseen(run):
            return unknown(Missing.CALLS_NOT_CAPTURED, "the models' content was not captured")
        if isinstance(rule, ForbidSettings):
            return _forbid(rule, run)
        return _before(rule, run) if isinstance(rule, BeforeSettings) else counted(rule, run)

    return measure


def _forbid(rule: ForbidSettings, run: Run) -> Finding:
    calls = tuple(concerned(rule, run))
    for one in calls:
        if one.doubt is None:
            return ruled(holds=False, reason=f"{rule.tool} was called", evidence=describe(one.call))
    doubt = next((one.doubt for one in calls if one.doubt is not None), None)
    return ruled(holds=True) if doubt is None else in_doubt(rule, doubt)


def _before(rule: BeforeSettings, run: Run) -> Finding | None:
    """Read every call that has to wait; absent where there is none."""
    calls = tuple(concerned(rule, run))
    if not calls:
        return None
    ready = _readiness(rule.needs, run)
    doubt: Missing | None = None
    for one in calls:
        if ready(one):
            continue
        if one.doubt is None:
            reason = f"{rule.tool} was called before {rule.needs} had succeeded"
            return ruled(holds=False, reason=reason, evidence=describe(one.call))
        doubt = doubt or one.doubt
    return ruled(holds=True) if doubt is None else in_doubt(rule, doubt)


def _readiness(needs: str, run: Run) -> Callable[[Concerned], bool]:
    """Return whether ``needs`` had succeeded when a call began; calls that were made side by side do not wait for each other."""
    times = times_of(run)
    succeeded = [index for index, call in enumerate(run.tool_calls) if call.name == needs and call.error is None]
    earliest = tuple(accumulate((ended(run.tool_calls[index], times) for index in succeeded), min))

    def ready(one: Concerned) -> bool:
        earlier = bisect_left(succeeded, one.index)
        return earlier > 0 and earliest[earlier - 1] <= began(one.call, times)

    return ready
