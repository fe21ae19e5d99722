"""invalid_arguments: arguments that do not validate against the JSON Schema of the tool that was offered (spec section 4.2)."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from pipeline.model.run import Run
from pipeline.model.step import ToolCall, ToolDefinition
from pipeline.scorers.calls import describe, has_arguments, was_truncated
from pipeline.scorers.check import Check, Finding, Missing, check_of, measured, unknown
from pipeline.scorers.schema import Unusable, violation

INVALID_ARGUMENTS: Final = "invalid_arguments"


def invalid_arguments_check() -> Check:
    """Return the check."""
    definition = {"rule": "any call does not validate against its tool's schema", "version": 1}
    return check_of(INVALID_ARGUMENTS, definition, invalid_arguments)


class _Invalid(msgspec.Struct, frozen=True):
    """Why a call's arguments are invalid."""

    why: str


_Reading = _Invalid | Missing | None
"""What is known of a call's arguments: why they are invalid, what is missing to tell, or None: they validate."""


def invalid_arguments(run: Run) -> Finding | None:
    """Say whether any call is invalid: 1 if one is, 0 if all validate.

    One invalid call decides, whatever is not known of the others. Absent without calls of offered tools.
    """
    readings = tuple(_readings(run))
    if not readings:
        return None
    for call, reading in readings:
        if isinstance(reading, _Invalid):
            return measured(1.0, holds=False, reason=reading.why, evidence=describe(call))
    for call, reading in readings:
        if isinstance(reading, Missing):
            return unknown(reading, f"call of {call.name}")
    return measured(0.0, holds=True)


def _readings(run: Run) -> Iterator[tuple[ToolCall, _Reading]]:
    """Read every call but those of tools that were not offered: they have no schema, and ``unknown_tools`` counts them."""
    offers: dict[str, list[ToolDefinition]] = {}
    for tool in run.tools:
        offers.setdefault(tool.name, []).append(tool)
    for call in run.tool_calls:
        if not has_arguments(call):
            unread = not call.raw_arguments or was_truncated(run)
            yield call, Missing.ARGUMENTS_NOT_CAPTURED if unread else _Invalid("the arguments do not parse as JSON")
        elif not offers:
            yield call, Missing.TOOLS_NOT_CAPTURED
        elif call.name in offers:
            yield call, _against(call.arguments, offers[call.name])


def _against(arguments: Any, offers: Iterable[ToolDefinition]) -> _Reading:
    """Read arguments against every schema that was offered under the tool's name; one that accepts them is enough."""
    readings = [_against_one(arguments, offer.schema) for offer in offers]
    if None in readings:
        return None
    return next((reading for reading in readings if isinstance(reading, Missing)), readings[0])


def _against_one(arguments: Any, schema: dict[str, Any] | None) -> _Reading:
    if schema is None:
        return Missing.SCHEMA_NOT_CAPTURED
    try:
        why = violation(arguments, schema)
    except Unusable:
        return Missing.SCHEMA_UNUSABLE
    return None if why is None else _Invalid(why)
