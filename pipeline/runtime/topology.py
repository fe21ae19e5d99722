"""The topology: which node reads what, writes what, and owns what. Declared once; both runtimes read it."""

from typing import Final, TypeAlias

import msgspec

from pipeline.model.result import Feedback, Judgment
from pipeline.model.run import Cohort
from pipeline.model.span import Span

Record: TypeAlias = Span | Judgment | Feedback
"""What travels on the traces topic: everything that concerns a trace, in one order, to its one owner."""


class Touched(msgspec.Struct, frozen=True, order=True):
    """A minute of a cohort has new results."""

    project: str
    cohort: Cohort
    minute_ns: int


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
