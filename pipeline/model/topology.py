"""The topology: which node reads what, writes what, and owns what. Declared once, run by every runtime.

The embedded runtime hands records from node to node in one process; with a broker each topic is one of its topics, and each node a
consumer group (docs/architecture.md).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from pipeline.model import ids
from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, JudgeRequest, Judgment
from pipeline.model.span import Span
from pipeline.model.window import Touched, Trip

Record: TypeAlias = Span | Judgment | Feedback | LogRecord | Evidence
"""What travels on the traces topic: everything that concerns a trace, in one order, to its one owner."""


LARGEST_BODY: Final = 5 * 1024 * 1024
"""Bytes that are kept of a dead letter: base64 makes a third more of them, and they travel in one record."""


class DeadLetter(msgspec.Struct, frozen=True):
    """What could not be processed: where, why, and its bytes. ``project`` is empty where it could not be read."""

    project: str
    origin: str
    """The part that gave up, then where it had the bytes from: ``bridge: otlp_spans[0]@17``."""
    reason: str
    body: bytes
    """At most :data:`LARGEST_BODY` of them; what looks like a secret is masked at its length."""
    headers: tuple[tuple[str, bytes], ...] = ()
    key: bytes | None = None
    received_ns: int = 0
    """When the bytes came; 0 where nobody says."""
    size: int = 0
    """Bytes that there were; more than ``body`` has where it was cut."""
    masked: bool = False
    """Whether ``body`` is not what was received, byte for byte."""

    @property
    def id(self) -> str:
        """Name the letter, 32 hex digits: the same failure again is the same letter."""
        return ids.digest(16, self.project, self.origin, self.reason, self.body.hex())

    @property
    def cut(self) -> bool:
        """Whether the end of it is missing."""
        return self.size > len(self.body)


class Topic(msgspec.Struct, frozen=True):
    """A stream of records. ``bucket_of`` says in which of :data:`~pipeline.model.ids.BUCKETS` buckets a record is."""

    name: str
    partitioned_by: str
    bucket_of: Callable[[Any], int]

    def partition_of(self, record: Any, partitions: int) -> int:
        """Return the partition of a record: what is in one bucket is in one partition, however many there are."""
        return self.bucket_of(record) % partitions


class Node(msgspec.Struct, frozen=True):
    """A stage with state: what it reads and writes, and the facts that only it may write."""

    name: str
    reads: Topic
    writes: tuple[Topic, ...]
    owns: str


class Publish(Protocol):
    """Hands records to the nodes that read a topic."""

    async def __call__(self, topic: Topic, records: Sequence[Any]) -> None:
        """Return when the records are durable, or with the node that will store them.

        Raises:
            TemporaryError: not all of them are; publishing all of them again is safe.
        """
        ...


def bucket_of_agent(project: str, agent: str) -> int:
    """Return the bucket whose owner writes everything about an agent: its minutes, windows, gates, trips and notifications."""
    return ids.bucket(project, agent)


def _of_trace(record: Record) -> int:
    return ids.bucket(record.project, record.trace_id)


def _of_run(request: JudgeRequest) -> int:
    return ids.bucket(request.project, request.run_id)


def _of_agent(record: Touched | Trip) -> int:
    return bucket_of_agent(record.project, record.cohort.agent)


def _of_project(letter: DeadLetter) -> int:
    return ids.bucket(letter.project, letter.origin)


TRACES: Final = Topic("tracegrade.traces", "(project, trace id)", _of_trace)
JUDGE: Final = Topic("tracegrade.judge", "(project, run id)", _of_run)
TOUCHED: Final = Topic("tracegrade.touched", "(project, agent)", _of_agent)
TRIPS: Final = Topic("tracegrade.trips", "(project, agent)", _of_agent)
DEAD_LETTERS: Final = Topic("tracegrade.dead-letters", "(project, origin)", _of_project)

ASSEMBLE: Final = Node(
    "assemble", reads=TRACES, writes=(JUDGE, TOUCHED, TRACES, DEAD_LETTERS), owns="runs and results of its traces"
)
JUDGING: Final = Node(
    "judge", reads=JUDGE, writes=(TRACES, DEAD_LETTERS), owns="nothing: its judgments go back to the owner of the trace"
)
GATE: Final = Node(
    "gate",
    reads=TOUCHED,
    writes=(TRIPS, DEAD_LETTERS),
    owns="minutes, windows, gate states, trips, notifications and golden candidates of its agents",
)

TOPOLOGY: Final = (ASSEMBLE, JUDGING, GATE)
TOPICS: Final = (TRACES, JUDGE, TOUCHED, TRIPS, DEAD_LETTERS)
