"""What a run's tool calls show: which took place, which overlapped, which had the same arguments."""

import re
import unicodedata
from collections.abc import Hashable, Iterable
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import msgspec

from pipeline.model.run import Run
from pipeline.model.step import StepKind, ToolCall

NOT_EXECUTED: Final = "not executed"
"""``error`` of a call that a model asked for and no span executed."""
NO_CONTENT: Final = "no_content"
TRUNCATED: Final = "truncated"
_EVER: Final = 1 << 63
_EVIDENCE_LENGTH: Final = 300
_PLAIN_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
"""A number as JSON writes it, without exponent. ``0042`` is an id, not 42."""


def took_place(call: ToolCall) -> bool:
    """Whether a span executed the call. It may still have failed."""
    return call.error != NOT_EXECUTED


def failed(call: ToolCall) -> bool:
    """Whether the call was executed and failed."""
    return call.error is not None and call.error != NOT_EXECUTED


def shows_execution(calls: Iterable[ToolCall]) -> bool:
    """Whether any call was seen to be executed. If none was, the tools may run where no span is made."""
    return any(took_place(call) for call in calls)


def calls_unseen(run: Run) -> bool:
    """Whether the run could have made calls that nobody recorded: it shows none, and a model's content was not captured."""
    if run.tool_calls:
        return False
    return any(step.kind is StepKind.MODEL and NO_CONTENT in step.flags for step in run.steps)


def was_truncated(run: Run) -> bool:
    """Whether the sender or a collector cut a text of the run, so that JSON that does not parse proves nothing."""
    return TRUNCATED in run.flags


Times = dict[str, tuple[int, int] | None]
"""Start and end of the calls by call id, ns; None where one id names several spans."""


def times_of(run: Run) -> Times:
    """Return when each call ran, as far as its id tells; some models give every call of a run the same id."""
    times: Times = {}
    for step in run.steps:
        if step.tool is not None and step.tool.id and step.start_ns and step.end_ns:
            times[step.tool.id] = None if step.tool.id in times else (step.start_ns, step.end_ns)
    return times


def began(call: ToolCall, times: Times) -> int:
    """Return when the call began, ns; where that is unknown, after everything: then the order of the calls decides alone."""
    known = times.get(call.id)
    return _EVER if known is None else known[0]


def ended(call: ToolCall, times: Times) -> int:
    """Return when the call ended, ns; where that is unknown, before everything."""
    known = times.get(call.id)
    return 0 if known is None else known[1]


def has_arguments(call: ToolCall) -> bool:
    """Whether the call's arguments were captured and parse; JSON ``null`` is a captured value."""
    return call.arguments is not None or call.raw_arguments.strip() == "null"


def number(value: Any) -> Decimal | None:
    """Return a number by its exact decimal value; None for what is none. A text counts if JSON would write a number so."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(str(value)) if isfinite(value) else None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    if isinstance(value, str) and len(value) <= _EVIDENCE_LENGTH and _PLAIN_NUMBER.fullmatch(value.strip()):
        return Decimal(value.strip())
    return None


def canonical(value: Any) -> Hashable:
    """Return a hashable that is equal for equal values (spec section 4.1).

    Numbers by value, also when one side wrote them as text; texts after NFC and whitespace folding; objects whatever their order.
    """
    if isinstance(value, dict):
        return "object", frozenset((key, canonical(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "array", tuple(canonical(item) for item in value)
    exact = number(value)
    if exact is not None:
        return exact
    if isinstance(value, str):
        text = value if value.isascii() else unicodedata.normalize("NFC", value)
        return " ".join(text.split())
    return "other", repr(value)


def describe(call: ToolCall) -> str:
    """Return the call as a line of evidence, cut to 300 characters."""
    text = call.raw_arguments if call.arguments is None else msgspec.json.encode(call.arguments, enc_hook=str).decode()
    line = f"{call.name}({text})" + (f" → {call.error}" if call.error else "")
    return line if len(line) <= _EVIDENCE_LENGTH else line[: _EVIDENCE_LENGTH - 1] + "…"
