"""argument_hallucination_rate: the share of argument values that the agent had been given by nobody (spec section 4.2)."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pipeline.model.run import Run
from pipeline.model.step import StepKind, ToolCall
from pipeline.scorers.calls import NO_CONTENT, TRUNCATED, began, describe, ended, has_arguments, times_of, took_place
from pipeline.scorers.check import Check, Finding, Missing, check_of, measured, unknown
from pipeline.scorers.heard import Moment, Wanted, first_heard, wanted

ARGUMENT_HALLUCINATION_RATE: Final = "argument_hallucination_rate"
_BEFORE: Final[Moment] = (-1, -1)
_EVER: Final = 1 << 63
_GIVEN: Final = frozenset({"user", "system", "developer", "tool"})
"""Roles of what an agent is told; what it says itself is no source."""
_DROPPED: Final = "dropped"
_LONGEST: Final = 120


def hallucination_check() -> Check:
    """Return the check."""
    definition = {
        "rule": "values of arguments in no earlier user message, system prompt, tool result or schema / values of arguments",
        "version": 1,
        "normalisation": "NFC, case and spacing folded, numbers by value, dates by day",
    }
    return check_of(ARGUMENT_HALLUCINATION_RATE, definition, argument_hallucination_rate)


class _Leaf(msgspec.Struct, frozen=True):
    """A value in a call's arguments, and by when it must have been given."""

    path: str
    value: Any
    sought: Wanted
    call: ToolCall
    asked: Moment

    def __str__(self) -> str:
        said = repr(self.value) if len(repr(self.value)) <= _LONGEST else repr(self.value)[:_LONGEST] + "…"
        return f"{self.call.name}: {self.path} = {said}"


def argument_hallucination_rate(run: Run) -> Finding | None:
    """Measure the share of values that occur in nothing the agent had been given when it asked for the call.

    Absent without calls, and where none of their arguments is a value. A value that is not found where something was not captured may have
    stood there: then the share is not known, only its bounds.
    """
    if not run.tool_calls:
        return None
    captured = [(place, call) for place, call in enumerate(run.tool_calls) if has_arguments(call)]
    if not captured:
        return unknown(Missing.ARGUMENTS_NOT_CAPTURED, f"of any of {len(run.tool_calls)} calls")
    moments = _Moments(run)
    leaves = [leaf for place, call in captured for leaf in _leaves(call, moments.asked(call, place))]
    if not leaves:
        return None
    heard = first_heard((leaf.sought for leaf in leaves), _texts(run, moments))
    strange = [leaf for leaf in leaves if heard.get(leaf.sought, (_EVER, _EVER)) >= leaf.asked]
    if strange:
        offered = first_heard((leaf.sought for leaf in strange), [(_BEFORE, text) for text in _schemas(run)])
        strange = [leaf for leaf in strange if leaf.sought not in offered]
    if not strange:
        return measured(0.0, holds=True)
    share = len(strange) / len(leaves)
    why = f"{len(strange)} of {len(leaves)} values occur in nothing that the agent had been given"
    missing = _missing(run)
    if missing is not None:
        return unknown(missing, f"{why} as far as captured, the first is {strange[0]}", upper=share)
    return measured(share, holds=False, reason=why, evidence=f"{strange[0]} in {describe(strange[0].call)}")


class _Moments:
    """When calls were asked for and had their results, as far as their ids tell; else their order decides."""

    def __init__(self, run: Run) -> None:
        self._times = times_of(run)
        self._asked: dict[str, int] = {}
        """By id; the last model call that was made before the call ran. Some models give every call of a run the same id."""
        for step in run.steps:
            if step.kind is StepKind.MODEL:
                self._asked |= {call.id: step.start_ns for one in step.output for call in one.tool_calls if call.id}

    def asked(self, call: ToolCall, place: int) -> Moment:
        """Return by when something must have been given to be where the arguments of a call are from."""
        return self._asked.get(call.id) or began(call, self._times), place

    def told(self, call: ToolCall, place: int) -> Moment:
        """Return when a call had its result: where nobody saw it end, after all that was asked for together with it."""
        end, asked = ended(call, self._times), self._asked.get(call.id)
        return (end, place) if end else (asked, _EVER) if asked else (_EVER, place)


def _leaves(call: ToolCall, moment: Moment) -> Iterator[_Leaf]:
    waiting: list[tuple[str, Any]] = [("", call.arguments)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((f"{path}.{key}" if path else str(key), item) for key, item in reversed(value.items()))
        elif isinstance(value, list | tuple):
            waiting.extend((f"{path}[{index}]", item) for index, item in reversed(list(enumerate(value))))
        elif (sought := wanted(value)) is not None:
            yield _Leaf(path or "the argument", value, sought, call, moment)


def _texts(run: Run, moments: _Moments) -> list[tuple[Moment, str]]:
    """Return all that the agents of a run were told, each text once, when it came first."""
    first: dict[str, Moment] = dict.fromkeys((run.system, run.request), _BEFORE)
    first |= {message.text: _BEFORE for message in run.messages if message.role in _GIVEN}
    for step in run.steps:
        for message in step.input:
            if message.role in _GIVEN:
                first.setdefault(message.text, (step.start_ns, -1))
        if step.kind is StepKind.RETRIEVAL:
            first |= {one.text: (step.end_ns, -1) for one in step.output if one.text not in first}
    for place, call in enumerate(run.tool_calls):
        text = call.error if call.result is None else call.result
        if text and took_place(call):
            told = moments.told(call, place)
            first[text] = min(first.get(text, told), told)
    first.pop("", None)
    return sorted((moment, text) for text, moment in first.items())


def _schemas(run: Run) -> Iterator[str]:
    for tool in run.tools:
        yield tool.name
        if tool.schema is not None:
            yield msgspec.json.encode(tool.schema, enc_hook=str).decode()


def _missing(run: Run) -> Missing | None:
    """Return what was not captured of all that an argument can be from."""
    if TRUNCATED in run.flags or _DROPPED in run.flags:
        return Missing.RESULTS_NOT_CAPTURED
    spoken = [step for step in run.steps if step.kind is StepKind.MODEL]
    if NO_CONTENT in run.flags or not (any(step.input for step in spoken) if spoken else run.messages or run.request):
        return Missing.MESSAGES_NOT_CAPTURED
    if any(call.result is None and call.error is None for call in run.tool_calls):
        return Missing.RESULTS_NOT_CAPTURED
    if not run.tools:
        return Missing.TOOLS_NOT_CAPTURED
    return Missing.SCHEMA_NOT_CAPTURED if any(tool.schema is None for tool in run.tools) else None
