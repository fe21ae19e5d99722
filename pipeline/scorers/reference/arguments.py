"""Typed comparison of a call's arguments with those of a reference (spec section 4.1)."""

from typing import Any

from pipeline.model.reference import ReferenceCall
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import canonical, has_arguments, number
from pipeline.scorers.check import Missing


def is_call(call: ToolCall, wanted: ReferenceCall) -> bool | Missing:
    """Say whether a call is the one that a reference wants: its tool, with such arguments."""
    if call.name != wanted.tool:
        return False
    if wanted.arguments is None:
        return True
    if not has_arguments(call):
        return Missing.ARGUMENTS_NOT_CAPTURED
    if not isinstance(call.arguments, dict):
        return not wanted.arguments and call.arguments is None
    if {*wanted.arguments} - wanted.ignored != {*call.arguments} - wanted.ignored:
        return False
    return all(
        any(_equal(call.arguments[name], right, name, wanted) for right in (value, *wanted.alternatives.get(name, ())))
        for name, value in wanted.arguments.items()
        if name not in wanted.ignored
    )


def _equal(given: Any, right: Any, name: str, wanted: ReferenceCall) -> bool:
    if name in wanted.within:
        one, other = number(given), number(right)
        return one is not None and other is not None and abs(one - other) <= wanted.within[name]
    if name in wanted.sets and isinstance(given, list) and isinstance(right, list):
        return {canonical(item) for item in given} == {canonical(item) for item in right}
    return canonical(given) == canonical(right)
