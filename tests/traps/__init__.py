"""The traps of the dialects reference, section 14: what stands in spans and leads readers astray, and what must be read of it all the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from builders import T0, a_span
from recordings import CORPORA, arrived

from pipeline.model.log_record import LogRecord
from pipeline.model.run import Run
from pipeline.model.span import Span
from pipeline.model.time import SECOND

Sent = list[Span | LogRecord]
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"}


class Trap(NamedTuple):
    """One variant of a trap. ``read`` says what of the assembled runs is compared with ``wanted``."""

    number: int
    variant: str
    stands: str
    """What stands in the spans, in short."""
    sent: Callable[[], Sent]
    read: Callable[[list[Run]], Any]
    wanted: Any

    def __str__(self) -> str:
        """As a line of the table."""
        return f"{self.number:>2}  {self.variant:<52}  {self.stands:<78}  {self.wanted!r}"


def span(number: int, under: int, attributes: dict[str, Any], *, at: float = 0, lasts: float = 1, **fields: Any) -> Span:
    """A span by its number, below another one (0: a root), so many seconds after its number's."""
    start = T0 + int((number + at) * SECOND)
    parent = f"{under:016x}" if under else ""
    fields = {"start_ns": start, "end_ns": start + int(lasts * SECOND), "received_ns": T0 + 1000 * SECOND} | fields
    return a_span(f"{number:016x}", parent, attributes=attributes, **fields)


def sent(*spans: Span | LogRecord) -> Callable[[], Sent]:
    """These, below an agent that lasts longer than all of them."""
    return lambda: [span(1, 0, AGENT, lasts=500), *spans]


def alone(*spans: Span | LogRecord) -> Callable[[], Sent]:
    """These and nothing else."""
    return lambda: list(spans)


def recorded(file: str) -> Callable[[], Sent]:
    """What was sent of a file of the corpora."""
    return lambda: list(arrived(CORPORA / Path(file)))


def said(role: str, text: str) -> dict[str, Any]:
    """A message of the conventions."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def asks(call_id: str = "c1", arguments: Any = None, name: str = "lookup") -> dict[str, Any]:
    """A reply of the conventions that asks for a call."""
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": {"id": 7} if arguments is None else arguments}
    return {"role": "assistant", "parts": [part]}


def calls(runs: list[Run]) -> list[tuple[str, Any]]:
    """Names and arguments."""
    return [(call.name, call.arguments) for run in runs for call in run.tool_calls]


def outcomes(runs: list[Run]) -> list[tuple[str | None, str | None]]:
    """Results and errors."""
    return [(call.result, call.error) for run in runs for call in run.tool_calls]


def errors(runs: list[Run]) -> list[tuple[str, str | None]]:
    """Names and errors."""
    return [(call.name, call.error) for run in runs for call in run.tool_calls]
