"""Rules of policies: which calls each speaks of, and whether they were made.

A call counts if it was executed. One that was executed and failed counts as an attempt for ``forbid`` and ``before``, for a failure does
not prove that nothing happened; it does not count where successes are counted, where it would make a fault of every retry, and it fulfils no
requirement. A call that was asked for and not executed does not count, unless the run shows no execution at all: then nobody can tell.
"""

from collections.abc import Iterator

import msgspec
from pydantic import Field

from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import shows_execution, took_place
from pipeline.scorers.check import Finding, Missing, unknown
from pipeline.scorers.predicates import Predicate, all_hold, holds


class RequireSettings(Settings):
    """A call that must be made, and succeed."""

    tool: str
    """Name of the tool."""
    times: int = Field(default=1, ge=1)
    """How often it must succeed, at least."""
    where: dict[str, Predicate] = Field(default={})
    """Only calls whose arguments meet these conditions."""


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


class ExactlySettings(Settings):
    """A call that must succeed so many times, neither more nor less."""

    tool: str
    """Name of the tool."""
    times: int = Field(ge=0)
    """How often it must succeed."""
    per: str = ""
    """Count apart for each value of this argument; without any such call there is nothing to count."""
    where: dict[str, Predicate] = Field(default={})
    """Only calls whose arguments meet these conditions."""


Rule = RequireSettings | ForbidSettings | BeforeSettings | AtMostSettings | ExactlySettings


class Concerned(msgspec.Struct, frozen=True):
    """A call that a rule speaks of: its tool, made, with such arguments. ``doubt`` is what is missing to be sure of that."""

    index: int
    call: ToolCall
    doubt: Missing | None


def concerned(rule: Rule, run: Run) -> Iterator[Concerned]:
    """Yield the calls that a rule speaks of, in order."""
    made = unmade(run)
    for index, call in enumerate(run.tool_calls):
        if call.name == rule.tool:
            answer = all_hold((True if took_place(call) else made, holds(rule.where, call)))
            if answer is not False:
                yield Concerned(index, call, answer if isinstance(answer, Missing) else None)


def unmade(run: Run) -> bool | Missing:
    """Say what a call without a span means: it was not made, unless no span of the run executes any call."""
    return False if shows_execution(run.tool_calls) else Missing.EXECUTION_NOT_CAPTURED


def in_doubt(rule: Rule, doubt: Missing) -> Finding:
    """Return that it cannot be told."""
    return unknown(doubt, f"call of {rule.tool}")
