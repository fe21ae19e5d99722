"""Watch: once a second, from outside, what must hold at every moment and not only in the end.

No offset of the traces topic is committed before all spans up to it are stored (I8), and no process grows without bound (I11). The topic
is read beside the workers, and the store is asked past its faults.
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from cluster import Cluster, Process
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from faults.aside import Aside

from collectors.kafka.lag import group_of
from collectors.kafka.records import Incoming, decode
from pipeline.errors import PermanentError
from pipeline.model.span import Span
from pipeline.model.topology import ASSEMBLE, TRACES

EVERY_S: Final = 1.0
PATIENCE_S: Final = 3.0
SpanKey: TypeAlias = tuple[str, str]
"""Trace id and span id."""


class Peak(msgspec.Struct):
    """The most that one process took."""

    name: str
    rss_mib: int = 0
    files: int = 0

    @classmethod
    def raised(cls, before: "Peak", folder: Path) -> "Peak":
        """Return the peak after a look at a process that may be gone."""
        with suppress(OSError):
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
            rss = int(status.get("VmRSS", "0 kB").split()[0]) // 1024
            files = len(list((folder / "fd").iterdir()))
            return cls(before.name, max(before.rss_mib, rss), max(before.files, files))
        return before


class Seen(msgspec.Struct):
    """What the topic has: by partition, each record's offset and the spans that must be stored when it is done."""

    waiting: defaultdict[int, deque[tuple[int, frozenset[SpanKey]]]] = msgspec.field(default_factory=lambda: defaultdict(deque))
    times: Counter[SpanKey] = msgspec.field(default_factory=Counter)
    """How often each span was delivered."""
    records: int = 0

    def add(self, partition: int, offset: int, spans: Iterable[SpanKey]) -> None:
        """Note a record, in the order of its partition."""
        self.times.update(spans)
        self.records += 1
        self.waiting[partition].append((offset, frozenset(spans)))

    def promised(self, committed: Mapping[int, int]) -> dict[SpanKey, tuple[int, int]]:
        """Take out what must be stored by now, as these offsets are committed: each span with the record that had it."""
        found: dict[SpanKey, tuple[int, int]] = {}
        for partition, until in committed.items():
            waiting = self.waiting[partition]
            while waiting and waiting[0][0] < until:
                offset, spans = waiting.popleft()
                found |= dict.fromkeys(spans, (partition, offset))
        return found

    @property
    def doubled(self) -> int:
        """Spans that were delivered more than once."""
        return sum(times > 1 for times in self.times.values())


class Watch(Aside):
    """A cluster and its processes, while its context lasts."""

    def __init__(self, cluster: Cluster, processes: Callable[[], Iterable[Process]]) -> None:
        super().__init__()
        self.seen = Seen()
        self.early: list[str] = []
        """Offsets that were committed before what lies under them was stored."""
        self.looks = 0
        """How often committed offsets and the store could be compared."""
        self.peaks: dict[int, Peak] = {}
        self.progress: dict[int, int] = {}
        """What is committed, by partition."""
        self._cluster = cluster
        self._processes = processes
        self._unproven: dict[SpanKey, tuple[int, int]] = {}

    def _look_on(self) -> None:
        parts = [TopicPartition(TRACES.name, at, 0) for at in range(self._cluster.kafka.partitions)]
        # A member of no group: what it asks for is what the workers' group has committed.
        options = {"bootstrap.servers": self._cluster.broker.address, "group.id": group_of(ASSEMBLE), "log_level": 0}
        consumer = Consumer({**options, "enable.auto.commit": False, "reconnect.backoff.max.ms": 500})
        try:
            consumer.assign(parts)
            while self._goes_on(EVERY_S):
                self._measure()
                with suppress(KafkaException, OSError):  # one of the two is away: what could not be compared is compared later
                    self._compare(consumer, parts)
        finally:
            consumer.close()

    def _compare(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        committed = {one.partition: one.offset for one in consumer.committed(parts, PATIENCE_S) if one.offset >= 0}
        self._read(consumer, committed)
        self.progress = committed
        self._unproven |= self.seen.promised(committed)
        if self._unproven:
            stored = self._stored({trace_id for trace_id, _ in self._unproven})
            early = {key: at for key, at in self._unproven.items() if key not in stored}
            self.early += [f"span {key} of record {at} is committed and not stored" for key, at in early.items()]
            self._unproven = {}
        self.looks += 1

    def _stored(self, trace_ids: set[str]) -> set[SpanKey]:
        among = ", ".join(f"'{one}'" for one in sorted(trace_ids))
        table = f"{self._cluster.settings.store.database}.spans"
        sql = f"SELECT DISTINCT trace_id, span_id FROM {table} WHERE trace_id IN ({among})"  # noqa: S608 - ids of our own
        return {(trace_id, found) for trace_id, found in self._cluster.front.look(sql, PATIENCE_S)}

    def _read(self, consumer: Consumer, committed: Mapping[int, int]) -> None:
        """Read on, to what is committed at least."""
        until = time.monotonic() + PATIENCE_S
        behind = dict(committed)
        while True:
            messages = consumer.consume(500, 0.05 if not behind else 0.5)
            for message in messages:
                if message.error() is None:
                    self.seen.add(message.partition() or 0, message.offset() or 0, self._spans(message))
            positions = {
                one.partition: one.offset for one in consumer.position([TopicPartition(TRACES.name, at) for at in behind])
            }
            behind = {at: offset for at, offset in behind.items() if positions[at] < offset}
            if not messages and not behind:
                return
            if behind and time.monotonic() > until:
                raise OSError("the broker does not say what is in the topic")

    def _spans(self, message: Message) -> list[SpanKey]:
        """The spans of a record whose trace belongs in this partition; others are sent on, and done with before they are stored."""
        partition = message.partition() or 0
        headers = tuple(
            (name, bytes(value or b"", "utf-8") if isinstance(value, str) else value or b"")
            for name, value in message.headers() or []
        )
        try:
            found = decode(Incoming(TRACES.name, partition, message.offset() or 0, 0, message.value() or b"", headers)).records
        except PermanentError:
            return []
        spans = [one for one in found if isinstance(one, Span)]
        return [
            (one.trace_id, one.span_id) for one in spans if TRACES.partition_of(one, self._cluster.kafka.partitions) == partition
        ]

    def _measure(self) -> None:
        for process in list(self._processes()):
            before = self.peaks.get(process.pid, Peak(process.arguments[0]))
            self.peaks[process.pid] = Peak.raised(before, Path(f"/proc/{process.pid}"))

    def peak(self, name: str) -> Peak:
        """Return the most that any process of a command took."""
        some = [peak for peak in self.peaks.values() if peak.name == name]
        return Peak(name, max((one.rss_mib for one in some), default=0), max((one.files for one in some), default=0))
