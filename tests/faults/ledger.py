"""Ledger: what is sent to a cluster, what of it was acknowledged, and what must follow from it.

What was acknowledged is an obligation. What was answered otherwise, or not at all, is sent again until it is, as an exporter does; what
was not answered at all may be stored by then (unknown), and what was refused for good must never be.
"""

import json
import threading
from typing import Any, Final

import msgspec

from pipeline.model.ids import digest, run_id
from pipeline.model.run import Cohort
from pipeline.model.time import SECOND
from pipeline.model.window import Notification, Transition
from pipeline.runtime.clock import SystemClock

PROJECT: Final = "faults"
GATE: Final = "no-deletions"
PAGER: Final = "pager"
HEAD: Final = 1
"""Number of the span that heads a run; its children are 2, 3 and, where there is a late one, 4. From 5 on they are calls without end."""
REFUSED: Final = "bad0bad0bad0bad0"
"""Span id of the spans that nobody may take: their trace id is zero (reliability O13)."""


class Sent(msgspec.Struct):
    """A trace, and which of its spans were acknowledged."""

    trace_id: str
    agent: str
    order: str
    fails: bool
    """It deletes a customer, which a check forbids and a hard gate watches."""
    acknowledged: set[int] = msgspec.field(default_factory=set)
    unknown: set[int] = msgspec.field(default_factory=set)
    """Sent once without any answer: stored or not."""
    ended_ns: int = 0

    @property
    def run_id(self) -> str:
        return run_id(PROJECT, self.trace_id, span_id(HEAD))

    @property
    def is_late(self) -> bool:
        """Whether a span that came after the run was closed says that it escalated, which another check forbids."""
        return 4 in self.acknowledged


class Ledger:
    """Written by the threads that send, read by the oracle when they have ended."""

    def __init__(self) -> None:
        self.traces: dict[str, Sent] = {}
        self.accepted = 0
        """Spans in successful answers, those that came twice too."""
        self.rejected = 0
        """Spans that successful answers refuse."""
        self.unanswered = 0
        """Spans and refused ones in requests without an answer."""
        self.poisons = 0
        """Records that nobody can read, each of which is one dead letter."""
        self._lock = threading.Lock()

    def trace(self, agent: str, *, fails: bool = False, ended_ns: int = 0) -> Sent:
        """Note a new trace, before anything of it is sent. It ends now, unless it is said when."""
        with self._lock:
            name = f"{len(self.traces)}"
            sent = Sent(digest(16, PROJECT, agent, name), agent, f"A-{name}", fails, ended_ns=ended_ns or SystemClock().now())
            self.traces[sent.trace_id] = sent
            return sent

    def answered(self, accepted: int, rejected: int) -> None:
        """Note a successful answer."""
        with self._lock:
            self.accepted += accepted
            self.rejected += rejected

    def gone(self, sent: Sent, numbers: tuple[int, ...], refused: int) -> None:
        """Note that a request may or may not have been taken."""
        with self._lock:
            sent.unknown.update(numbers)
            self.unanswered += len(numbers) + refused

    @property
    def spans(self) -> int:
        """How many spans are owed."""
        return sum(len(one.acknowledged) for one in list(self.traces.values()))

    @property
    def unknown(self) -> int:
        """How many spans were sent once without an answer."""
        return sum(len(one.unknown) for one in list(self.traces.values()))

    @property
    def late(self) -> int:
        """How many runs had a span after they were closed."""
        return sum(one.is_late for one in list(self.traces.values()))

    def due(self) -> set[str]:
        """Return the keys of the notifications that are due, by the design's formula: an incident a cohort, told once."""
        agents = {one.agent for one in list(self.traces.values()) if one.fails and one.acknowledged}
        return {Notification(PROJECT, trip_of(agent), Transition.FIRED, PAGER, "", 0).idempotency_key for agent in agents}


def trip_of(agent: str) -> str:
    """Return the id of an agent's first incident (design section 5)."""
    return digest(16, PROJECT, GATE, Cohort(agent=agent).id, "", "0")


def span_id(number: int) -> str:
    """Return the id of the span with this number."""
    return f"{number:016x}"


def request(sent: Sent, numbers: tuple[int, ...], refused: int = 0) -> dict[str, Any]:
    """Return these spans of a trace as one OTLP/JSON request, with so many beside them that are to be refused."""
    spans = [_span(sent, number) for number in numbers]
    bad = {**_span(sent, 2), "traceId": "0" * 32, "spanId": REFUSED}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [*spans, *([bad] * refused)]}]}]}


def _span(sent: Sent, number: int) -> dict[str, Any]:
    said = attributes(sent, number)
    return {
        "traceId": sent.trace_id,
        "spanId": span_id(number),
        "parentSpanId": "" if number == HEAD else span_id(HEAD),
        "name": said["gen_ai.operation.name"],
        "startTimeUnixNano": str(sent.ended_ns - SECOND),
        "endTimeUnixNano": str(sent.ended_ns),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in said.items()],
    }


def attributes(sent: Sent, number: int) -> dict[str, str]:
    """Return what a span of a trace says, as it was sent and must be stored."""
    match number:
        case 1:
            return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": sent.agent}
        case 2:
            return _tool("delete_customer" if sent.fails else "issue_refund")
        case 3:
            asked = [{"role": "user", "parts": [{"type": "text", "content": f"Please refund order {sent.order}."}]}]
            text = f"Order {sent.order} was refunded: 42.50 USD."
            said = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
            return {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps(said),
            }
        case 4:
            return _tool("escalate")
        case _:
            return _tool("look_up")


def _tool(name: str) -> dict[str, str]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.result": "42.50 USD"}
