"""PlugIn: a check that somebody else wrote. What it declares, and what it is given of a run (docs/checks.md, "A check of one's own").

It is given what was observed: calls, their results, steps, records that were read. What the agent says is there only for a check
that declares to read it, and then as a text that was produced, never as evidence of what happened (spec section 3).
"""

from collections.abc import Callable
from copy import deepcopy
from enum import StrEnum
from typing import Any

import msgspec

from pipeline.model.evidence import Evidence
from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.model.step import Message
from pipeline.scorers.answer import answer_present
from pipeline.scorers.calls import calls_unseen, has_arguments, shows_execution, took_place
from pipeline.scorers.check import Finding, Missing, unknown


class PlugInKind(StrEnum):
    """What a check says of a run."""

    RULE = "rule"
    """It holds or it does not: 1 or 0. It gates unless ``gate: false`` is written."""
    MEASUREMENT = "measurement"
    """A number, and whether it is good enough. It gates only with ``gate: true``."""


class Needs(StrEnum):
    """Evidence without which a check cannot tell. Where it was not captured, the check is not even asked."""

    ANSWER = "answer"
    """The final answer. A run without one is none of the check's business: another check says so."""
    CALLS = "calls"
    """Which tools were called, and whether the calls took place."""
    ARGUMENTS = "arguments"
    """The arguments of every call that took place."""
    RESULTS = "results"
    """What every call returned that succeeded."""
    TOOLS = "tools"
    """The tools that the model was offered, where there are calls."""
    USAGE = "usage"
    """Tokens in and out."""
    TIMES = "times"
    """When the run began and ended."""


class Observed(msgspec.Struct, frozen=True):
    """What a check is given: a copy of its own, so that nothing it does to it reaches another check.

    Unless it needs the answer, ``run.answer`` is None and every text that the agent wrote is empty, also in steps and messages.
    """

    run: Run
    records: tuple[Evidence, ...] = ()
    """What was read of a record source, where the configuration says what to read; all of it was read or is known to be absent."""


class NoSettings(Settings):
    """Of a check that has nothing to set."""


class PlugIn(msgspec.Struct, frozen=True):
    """A check in Python. ``measure`` is a pure function of what was observed and of the settings; None where it does not apply.

    ``lower`` and ``upper`` are the ends of a measurement's scale, None where it has none: what an unknown value can still be.
    """

    name: str
    """As the entry point is called, and as ``use`` names it in a configuration."""
    about: str
    """One sentence: what it checks."""
    measure: Callable[[Observed, Any], Finding | None]
    kind: PlugInKind = PlugInKind.RULE
    settings: type[Settings] = NoSettings
    requires: tuple[Needs, ...] = ()
    lower: float | None = 0.0
    upper: float | None = 1.0


def observed(run: Run, requires: tuple[Needs, ...], records: tuple[Evidence, ...] = ()) -> Observed:
    """Return what a check that requires so much may see of a run."""
    copy: Run = deepcopy(run)
    return Observed(copy if Needs.ANSWER in requires else _without_words(copy), records)


def _without_words(run: Run) -> Run:
    steps = tuple(msgspec.structs.replace(one, input=_silent(one.input), output=_silent(one.output)) for one in run.steps)
    return msgspec.structs.replace(run, answer=None, messages=_silent(run.messages), steps=steps)


def _silent(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(msgspec.structs.replace(one, text="") if one.role == "assistant" else one for one in messages)


def lacking(plug_in: PlugIn, run: Run) -> Finding | None:
    """Return that the run lacks what a check requires, naming the first of it; None where it lacks nothing."""
    for need in plug_in.requires:
        found = _lacks(need, run)
        if found is not None:
            missing, why = found
            return unknown(missing, why, lower=plug_in.lower, upper=plug_in.upper)
    return None


def concerns(plug_in: PlugIn, run: Run) -> bool:
    """Whether there is anything to check: a run that is known to have no answer has none that could be read."""
    if Needs.ANSWER not in plug_in.requires or (run.completed and run.answer is not None):
        return True
    return not answer_present(run).outcome.decided


def _lacks(need: Needs, run: Run) -> tuple[Missing, str] | None:
    if need is Needs.ANSWER:
        return None if run.completed else (Missing.ANSWER_NOT_CAPTURED, "the answer was not captured")
    if need in (Needs.CALLS, Needs.ARGUMENTS, Needs.RESULTS):
        return _lacks_of_calls(need, run)
    if need is Needs.TOOLS:
        lacks = bool(run.tool_calls) and not run.tools
        return (Missing.TOOLS_NOT_CAPTURED, "the offered tools were not captured") if lacks else None
    if need is Needs.USAGE:
        lacks = run.usage.input is None or run.usage.output is None
        return (Missing.USAGE_NOT_CAPTURED, "the tokens were not captured") if lacks else None
    return None if 0 < run.start_ns <= run.end_ns else (Missing.TIMES_NOT_CAPTURED, "the run has no start, or ends before it")


def _lacks_of_calls(need: Needs, run: Run) -> tuple[Missing, str] | None:
    if calls_unseen(run):
        return Missing.CALLS_NOT_CAPTURED, "the models' content was not captured"
    if run.tool_calls and not shows_execution(run.tool_calls):
        return Missing.EXECUTION_NOT_CAPTURED, f"call of {run.tool_calls[0].name}"
    for call in filter(took_place, run.tool_calls):
        if need is Needs.ARGUMENTS and not has_arguments(call):
            return Missing.ARGUMENTS_NOT_CAPTURED, f"call of {call.name}"
        if need is Needs.RESULTS and call.error is None and call.result is None:
            return Missing.RESULTS_NOT_CAPTURED, f"call of {call.name}"
    return None
