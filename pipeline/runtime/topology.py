"""The topology: which node reads what, writes what, and owns what. Declared once.

The embedded runtime makes the topics calls and queues of its own; a runtime with a broker declares them as they stand here.
"""

from typing import Final, TypeAlias

import msgspec

from pipeline.model.result import Feedback, Judgment
from pipeline.model.span import Span

Record: TypeAlias = Span | Judgment | Feedback
"""What travels on the traces topic: everything that concerns a trace, in one order, to its one owner."""


class Topic(msgspec.Struct, frozen=True):
    """A stream of records, and what its partitions go by."""

    name: str
    partitioned_by: str


class Node(msgspec.Struct, frozen=True):
    """A stage with state: what it reads and writes, and the facts that only it may write."""

    name: str
    reads: Topic
    writes: tuple[Topic, ...]
    owns: str


TRACES: Final = Topic("tracegrade.traces", "bucket of (project, trace id)")
JUDGE: Final = Topic("tracegrade.judge", "run")
TOUCHED: Final = Topic("tracegrade.touched", "(project, agent)")
TRIPS: Final = Topic("tracegrade.trips", "(project, agent)")

TOPOLOGY: Final = (
    Node("assemble", reads=TRACES, writes=(JUDGE, TOUCHED), owns="runs and results of its traces"),
    Node("judge", reads=JUDGE, writes=(TRACES,), owns="nothing: its judgments go back to the owner of the trace"),
    Node("gate", reads=TOUCHED, writes=(TRIPS,), owns="minutes, windows, gate states, trips, notifications, golden candidates"),
)
