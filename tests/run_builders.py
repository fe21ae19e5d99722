"""Runs and their calls, valid by default; override what matters to the test."""

from typing import Any

import msgspec
from builders import T0

from pipeline.model.run import Cohort, Ended, Place, Run
from pipeline.model.step import Step, StepKind, ToolCall, ToolDefinition
from pipeline.model.time import SECOND, minute_of

REFUND = ToolDefinition(
    "refund",
    schema={
        "type": "object",
        "properties": {"order_id": {"type": "string"}, "amount": {"type": "number", "multipleOf": 0.01}},
        "required": ["order_id"],
        "additionalProperties": False,
    },
)


def a_run(*calls: ToolCall, **fields: Any) -> Run:
    """A run that answered, with these tool calls."""
    given: dict[str, Any] = {"answer": "Done.", "ended": Ended.ANSWER, "steps": (), "tool_calls": calls} | fields
    return Run(
        project="default",
        trace_id="ab" * 16,
        run_id="cd" * 16,
        head_span_id="00000000000000a1",
        place=given.pop("place", Place(Cohort(agent="support"), minute_of(T0))),
        start_ns=given.pop("start_ns", T0),
        end_ns=given.pop("end_ns", T0 + 2 * SECOND),
        first_received_ns=T0 + 3 * SECOND,
        **given,
    )


def a_call(name: str, arguments: Any = None, result: str | None = "ok", **fields: Any) -> ToolCall:
    """A call that was executed and returned ``ok``."""
    return ToolCall(name, arguments=arguments, result=result, **fields)


def a_failure(name: str, arguments: Any = None, error: str = "timeout") -> ToolCall:
    """A call that was executed and failed."""
    return ToolCall(name, arguments=arguments, error=error)


def a_wish(name: str, arguments: Any = None) -> ToolCall:
    """A call that a model asked for and no span executed."""
    return ToolCall(name, arguments=arguments, error="not executed")


def a_model_step(*flags: str) -> Step:
    """A model call with these flags."""
    return Step("00000000000000b1", "00000000000000a1", "chat", T0, T0 + SECOND, T0 + SECOND, kind=StepKind.MODEL, flags=flags)


def ran(call: ToolCall, start_s: int, end_s: int) -> Step:
    """The step that executed a call, by seconds after T0."""
    start, end = T0 + start_s * SECOND, T0 + end_s * SECOND
    return Step(f"{start_s:016x}", "", call.name, start, end, end, kind=StepKind.TOOL, tool=call)


def named(call: ToolCall, call_id: str) -> ToolCall:
    """The call under an id."""
    return msgspec.structs.replace(call, id=call_id)
