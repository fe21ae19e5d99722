"""loops: the same call with the same arguments, repeated although nothing new was learned (spec section 4.2)."""

from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import Final

import msgspec

from pipeline.model.run import Run
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import canonical, describe, has_arguments, took_place
from pipeline.scorers.check import Check, Finding, Missing, check_of, measured, unknown

LOOPS: Final = "loops"


def loops_check() -> Check:
    """Return the check."""
    return check_of(LOOPS, {"rule": "repeated calls since whose equal nothing new was returned", "version": 1}, loops)


def loops(run: Run) -> Finding | None:
    """Count repeats; absent without calls, unknown where what was not captured could make a difference.

    A call repeats an earlier one if tool and arguments are equal, and neither the calls between them nor the call itself
    returned anything new. So a retry that then succeeds is no loop, nor is polling until the answer changes.
    """
    if not run.tool_calls:
        return None
    history = _History(Counter(call.name for call in run.tool_calls))
    answers = [(call, history.add(call)) for call in run.tool_calls]
    repeats = [call for call, answer in answers if answer is True]
    doubtful = [call for call, answer in answers if answer is None]
    if doubtful:
        unread = any(call.name == doubtful[0].name and not has_arguments(call) for call in run.tool_calls)
        missing = Missing.ARGUMENTS_NOT_CAPTURED if unread else Missing.RESULTS_NOT_CAPTURED
        why = f"{len(doubtful)} calls may be repeats, {len(repeats)} are"
        return unknown(missing, why, lower=float(len(repeats)), upper=float(len(repeats) + len(doubtful)))
    if not repeats:
        return measured(0.0, holds=True)
    return measured(float(len(repeats)), holds=False, reason=f"{len(repeats)} repeated calls", evidence=describe(repeats[0]))


_Returned = tuple[str, str | None]
"""What a call returned: its error if it failed, else its result."""
_UNCAPTURED: Final[_Returned] = ("result", None)


class _Known(msgspec.Struct, frozen=True):
    """How many new things had been returned by some moment: at least, and at most."""

    least: int
    most: int


_Key = tuple[str, Hashable]
"""What calls have in common: ``equal`` tool and arguments, ``unread`` tool with unknown arguments, or just the ``tool``."""


class _History:
    """What was called and returned so far. What was not captured may or may not have been new, so both counts are kept."""

    def __init__(self, called: Counter[str]) -> None:
        self._called = called
        self._known = _Known(0, 0)
        self._last: dict[_Key, _Known] = {}
        """What was known just after the last call of a kind."""
        self._returned: defaultdict[_Key, set[_Returned]] = defaultdict(set)

    def add(self, call: ToolCall) -> bool | None:
        """Take the next call; return whether it is a repeat, None where it cannot be told."""
        tool, unread = ("tool", call.name), ("unread", call.name)
        key = self._key(call)
        alike = (tool,) if key == unread else (key, unread)
        self._learn(call, key, alike)
        certain = key != unread and key in self._last and self._last[key].most == self._known.most
        possible = any(one in self._last and self._last[one].least == self._known.least for one in alike)
        self._last[key] = self._last[tool] = self._known
        return True if certain else None if possible else False

    def _key(self, call: ToolCall) -> _Key:
        if self._called[call.name] == 1:
            return "equal", call.name
        return ("equal", (call.name, canonical(call.arguments))) if has_arguments(call) else ("unread", call.name)

    def _learn(self, call: ToolCall, key: _Key, alike: tuple[_Key, ...]) -> None:
        """Count what the call returned, unless calls like it returned it before. ``alike`` are all that it may equal."""
        returned = ("result", call.result) if call.error is None else ("error", call.error)
        captured = returned != _UNCAPTURED
        old = captured and key[0] == "equal" and returned in self._returned[key]
        if took_place(call) and not old:
            new = captured and not any(one in self._returned[kind] for kind in alike for one in (returned, _UNCAPTURED))
            self._known = _Known(self._known.least + new, self._known.most + 1)
            for kind in (key, ("tool", call.name)):
                self._returned[kind].add(returned)
