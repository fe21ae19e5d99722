"""Policies: what an agent must never do, declared by its owners: ``forbid``, ``before``, ``at_most`` (spec section 4.2).

A call counts if it was executed. One that was executed and failed counts as an attempt for ``forbid`` and ``before``, for a failure does
not prove that nothing happened; it does not count for ``at_most``, where it would make a fault of every retry, and it fulfils no requirement.
A call that was asked for and not executed does not count, unless the run shows no execution at all: then nobody can tell.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator
from itertools import accumulate
from typing import Any, Self

import msgspec
from pydantic import Field, model_validator

from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import began, calls_unseen, canonical, describe, ended, failed, shows_execution, times_of, took_place
from pipeline.scorers.check import Check, CheckName, Finding, Measure, Missing, check_of, ruled, unknown
from pipeline.scorers.predicates import Predicate, all_hold, argument, holds


class ForbidSettings(Settings):
    """A call that must not be made."""

    tool: str
    """Name of the tool."""
    where: dict[str, Predicate] = Field(default={})
    """Only calls whose arguments meet these conditions."""


class BeforeSettings(Settings):
    """A call that must not be made before another one succeeded."""

    tool: str
    """Name of the tool that has to wait."""
    needs: str
    """Name of the tool that must have succeeded by then."""
    where: dict[str, Predicate] = Field(default={})
    """Only calls of ``tool`` whose arguments meet these conditions."""


class AtMostSettings(Settings):
    """A call that must not succeed more often than so many times."""

    tool: str
    """Name of the tool."""
    times: int = Field(ge=0)
    """How often it may succeed."""
    per: str = ""
    """Count apart for each value of this argument."""
    where: dict[str, Predicate] = Field(default={})
    """Only calls whose arguments meet these conditions."""


Rule = ForbidSettings | BeforeSettings | AtMostSettings


class PolicySettings(Settings):
    """One policy. Exactly one of ``forbid``, ``before``, ``at_most`` says what it is."""

    name: CheckName
    """Its own name; results, windows and gates know the policy by it."""
    forbid: ForbidSettings | None = None
    """A call that must not be made."""
    before: BeforeSettings | None = None
    """A call that must wait until another one succeeded."""
    at_most: AtMostSettings | None = None
    """A call that must not succeed too often."""
    gate: bool = True
    """Set to false to measure it only."""

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        written = [rule for rule in (self.forbid, self.before, self.at_most) if rule is not None]
        if len(written) != 1:
            raise ValueError(
                f"policy {self.name} holds {len(written)} rules; write exactly one of forbid, before, at_most, "
                "such as `before: {tool: refund, needs: confirm}`"
            )
        return self

    @property
    def rule(self) -> Rule:
        """The one rule that is written."""
        return next(rule for rule in (self.forbid, self.before, self.at_most) if rule is not None)


def policy_check(policy: PolicySettings) -> Check:
    """Return the check of one policy, named like it."""
    rule = policy.rule
    definition: dict[str, Any] = rule.model_dump(mode="json", by_alias=True, exclude_unset=True)
    terms = {"rule": type(rule).__name__.removesuffix("Settings"), "version": 1, **definition}
    return check_of(policy.name, terms, _measure(rule), gates=policy.gate)


def _measure(rule: Rule) -> Measure:
    def measure(run: Run) -> Finding | None:
        if calls_unseen(run):
            return unknown(Missing.CALLS_NOT_CAPTURED, "the models' content was not captured")
        if isinstance(rule, ForbidSettings):
            return _forbid(rule, run)
        return _before(rule, run) if isinstance(rule, BeforeSettings) else _at_most(rule, run)

    return measure


class _Concerned(msgspec.Struct, frozen=True):
    """A call that a rule speaks of: its tool, made, with such arguments. ``doubt`` is what is missing to be sure of that."""

    index: int
    call: ToolCall
    doubt: Missing | None


def _concerned(rule: Rule, run: Run) -> Iterator[_Concerned]:
    unmade = _unmade(run)
    for index, call in enumerate(run.tool_calls):
        if call.name == rule.tool:
            answer = all_hold((True if took_place(call) else unmade, holds(rule.where, call)))
            if answer is not False:
                yield _Concerned(index, call, answer if isinstance(answer, Missing) else None)


def _unmade(run: Run) -> bool | Missing:
    """Say what a call without a span means: it was not made, unless no span of the run executes any call."""
    return False if shows_execution(run.tool_calls) else Missing.EXECUTION_NOT_CAPTURED


def _forbid(rule: ForbidSettings, run: Run) -> Finding:
    concerned = tuple(_concerned(rule, run))
    for one in concerned:
        if one.doubt is None:
            return ruled(holds=False, reason=f"{rule.tool} was called", evidence=describe(one.call))
    doubt = next((one.doubt for one in concerned if one.doubt is not None), None)
    return ruled(holds=True) if doubt is None else _in_doubt(rule, doubt)


def _in_doubt(rule: Rule, doubt: Missing) -> Finding:
    return unknown(doubt, f"call of {rule.tool}")


def _before(rule: BeforeSettings, run: Run) -> Finding | None:
    """Read every call that has to wait; absent where there is none."""
    concerned = tuple(_concerned(rule, run))
    if not concerned:
        return None
    ready = _readiness(rule.needs, run)
    doubt: Missing | None = None
    for one in concerned:
        answer = ready(one)
        if answer is False and one.doubt is None:
            reason = f"{rule.tool} was called before {rule.needs} had succeeded"
            return ruled(holds=False, reason=reason, evidence=describe(one.call))
        if answer is not True:
            doubt = doubt or one.doubt or Missing.EXECUTION_NOT_CAPTURED
    return ruled(holds=True) if doubt is None else _in_doubt(rule, doubt)


def _readiness(needs: str, run: Run) -> Callable[[_Concerned], bool | Missing]:
    """Return whether ``needs`` had succeeded when a call began; calls that were made side by side do not wait for each other."""
    times, unmade = times_of(run), _unmade(run)
    succeeded = [index for index, call in enumerate(run.tool_calls) if call.name == needs and call.error is None]
    earliest = tuple(accumulate((ended(run.tool_calls[index], times) for index in succeeded), min))
    asked = next(
        (index for index, call in enumerate(run.tool_calls) if call.name == needs and not took_place(call)), len(run.tool_calls)
    )

    def ready(one: _Concerned) -> bool | Missing:
        earlier = bisect_left(succeeded, one.index)
        if earlier and earliest[earlier - 1] <= began(one.call, times):
            return True
        return unmade if asked < one.index else False

    return ready


def _at_most(rule: AtMostSettings, run: Run) -> Finding:
    counted: dict[Hashable, list[ToolCall]] = {}
    doubts: list[Missing] = []
    for one in _concerned(rule, run):
        if failed(one.call):
            continue
        value = argument(one.call, rule.per) if rule.per else None
        doubt = one.doubt or (value if isinstance(value, Missing) else None)
        if doubt is None:
            counted.setdefault(canonical(value), []).append(one.call)
        else:
            doubts.append(doubt)
    calls = max(counted.values(), key=len, default=[])
    if len(calls) > rule.times:
        per = f" for one {rule.per}" if rule.per else ""
        reason = f"{rule.tool} succeeded {len(calls)} times{per}, at most {rule.times} allowed"
        return ruled(holds=False, reason=reason, evidence=describe(calls[-1]))
    return _in_doubt(rule, doubts[0]) if len(calls) + len(doubts) > rule.times else ruled(holds=True)
