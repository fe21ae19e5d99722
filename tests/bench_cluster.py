"""The benchmark over Kafka: what a span costs from the broker to stored scores, beside bare decoding and the embedded product, in one run.

``make bench`` runs it. A real broker, a ClickHouse front and the workers share this machine, so ratios travel; seconds do not.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from clickhouse_front import Front
from cluster import Cluster, Process
from kafka_broker import Broker

from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import KafkaPublisher
from collectors.kafka.topics import partitions
from collectors.otlp import protobuf
from pipeline.apps.bench import load
from pipeline.apps.bench import measure as measure_embedded
from pipeline.apps.bench.measure import Report
from pipeline.model.span import Span
from pipeline.model.time import SECOND
from pipeline.model.topology import TRACES
from pipeline.runtime.clock import SystemClock

PARTITIONS: Final = 8
TICKS: Final = os.sysconf("SC_CLK_TCK")
BATCH: Final = 2000
"""Spans that are published at once."""
OPEN_TRACES: Final = 10_000
MORE: Final = """
assemble: {quiet_period: 200ms}
gates: []
"""
STILL_OPEN: Final = """
assemble: {quiet_period: 1h, idle_timeout: 2h}
gates: []
"""


class Drained(msgspec.Struct, frozen=True):
    """What it took workers to get from a full topic to stored scores. CPU is in µs a span."""

    workers: int
    spans_per_second: float
    worker_cpu: float
    broker_cpu: float
    store_cpu: float


class ClusterReport(msgspec.Struct, frozen=True):
    """What was measured over Kafka, beside the embedded figures of the same run."""

    embedded: Report
    produced: float
    """Spans a second from nouns to the brokers' acknowledgements."""
    drained: tuple[Drained, ...]
    takeover_s: float
    """From the death of one of two workers (kill -9) until the other has read back and owns all partitions."""
    session_s: float
    """Of it, what the group waits for the dead."""
    read_back_s: float
    """For all of the open traces, by one worker at its start."""
    open_traces: int

    def table(self) -> str:
        """Return the report as lines, each beside its ratio to the floor."""
        floor = self.embedded.bare_decoding
        lines = [self.embedded.table(), f"over Kafka, {PARTITIONS} partitions, broker and store on the same machine:"]
        lines.append(
            f"{'from nouns to the broker':42} {self.produced:10,.0f} spans/s   {self.produced / floor:7.4f} of the floor"
        )
        for one in self.drained:
            name = f"from Kafka to stored scores, {one.workers} worker{'s' if one.workers > 1 else ''}"
            rate = one.spans_per_second
            lines.append(f"{name:42} {rate:10,.0f} spans/s   {rate / floor:7.4f} of the floor")
            lines.append(f"{'':42} {rate / self.embedded.scored:10.2f} of the embedded product")
            cpu = f"CPU in µs a span: workers {one.worker_cpu:.0f}, broker {one.broker_cpu:.0f}, store {one.store_cpu:.0f}"
            lines.append(f"{'':42} {cpu}")
        lines.append(
            f"{'a worker dies, another has taken over after':42} {self.takeover_s:10.1f} s (session {self.session_s:.0f} s)"
        )
        lines.append(f"{f'{self.open_traces:,} open traces are read back in':42} {self.read_back_s:10.1f} s")
        return "\n".join(lines)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def spans_of(traces: int) -> list[Span]:
    """Return the load of the embedded benchmark, decoded."""
    now = SystemClock().now()
    return [span for body in load.requests(traces, now) for span in protobuf.decode(body, "bench", now).spans]


class Bench:
    """One broker and one front for all measurements; each takes a database and topics of its own."""

    def __init__(self, broker: Broker, front: Front, folder: Path) -> None:
        self._broker = broker
        self._front = front
        self._folder = folder
        self._number = 0

    def cluster(self, more: str) -> Cluster:
        """Return a cluster with nothing in it."""
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        self._broker.clear()
        return Cluster(
            self._broker,
            self._front,
            folder,
            more=more,
            project="bench",
            database=f"bench{self._number}",
            partitions=PARTITIONS,
        )

    async def fill(self, cluster: Cluster, spans: Sequence[Span]) -> float:
        """Publish spans and return the seconds it took."""
        async with KafkaProducer(cluster.kafka, os.environ) as producer:
            publish = KafkaPublisher(producer, partitions(cluster.kafka, os.environ))
            began = time.perf_counter()
            for first in range(0, len(spans), BATCH):
                await publish(TRACES, spans[first : first + BATCH])
            return time.perf_counter() - began

    @asynccontextmanager
    async def workers(self, cluster: Cluster, count: int) -> AsyncIterator[list[Process]]:
        """Run so many workers; all own their partitions."""
        async with AsyncExitStack() as stack:
            made = [stack.enter_context(cluster.worker("assemble")) for _ in range(count)]
            for one in made:
                await asyncio.to_thread(one.says, "working")
            await asyncio.to_thread(cluster.shared_by, count)
            yield made

    async def drain(self, traces: int, workers: int) -> tuple[Drained, float]:
        """Measure from the first record that workers can see to the last stored score; returns also the seconds of producing."""
        cluster = self.cluster(MORE)
        spans = await asyncio.to_thread(spans_of, traces)
        async with self.workers(cluster, workers) as running, cluster.store() as store:
            pids = [one.pid for one in running]
            before = sum(map(cpu_s, pids)), cpu_s(self._broker.pid), cpu_s(self._front.pid)
            began = time.perf_counter()
            producing = await self.fill(cluster, spans)
            while (done := await store.accounting("bench")).received < traces or done.open_traces:  # noqa: ASYNC110 - others work
                await asyncio.sleep(0.1)
            seconds = time.perf_counter() - began
            after = sum(map(cpu_s, pids)), cpu_s(self._broker.pid), cpu_s(self._front.pid)
        used = [(late - early) / len(spans) * 1e6 for early, late in zip(before, after, strict=True)]
        return Drained(workers, len(spans) / seconds, *used), producing

    async def takeover(self) -> float:
        """Kill one of two workers, and return the seconds until the other owns everything."""
        cluster = self.cluster(STILL_OPEN)
        async with self.workers(cluster, 2) as (one, other):
            began = time.perf_counter()
            one.kill()
            while len((await asyncio.to_thread(other.says, "partitions owned"))["partitions"]) < PARTITIONS:
                pass
            return time.perf_counter() - began

    async def read_back(self, traces: int) -> float:
        """Return the seconds in which a worker that starts reads so many open traces back."""
        cluster = self.cluster(STILL_OPEN)
        spans = await asyncio.to_thread(spans_of, traces)
        async with cluster.store() as store:
            for first in range(0, len(spans), BATCH):
                await store.insert_spans(spans[first : first + BATCH])
        with cluster.worker("assemble") as worker:
            told = await asyncio.to_thread(worker.says, "read back")
        if told["traces"] != traces:
            raise RuntimeError(f"{told['traces']} traces were read back of {traces}")
        return float(told["seconds"])


async def measure(traces: int, open_traces: int) -> ClusterReport:
    """Measure everything, with so many traces of ten spans."""
    embedded = await measure_embedded(traces)
    with TemporaryDirectory(prefix="tracegrade-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "store").mkdir()
        with Broker() as broker, Front(folder / "store") as front:
            bench = Bench(broker, front, folder)
            one, producing = await bench.drain(traces, 1)
            two, _ = await bench.drain(traces, 2)
            return ClusterReport(
                embedded=embedded,
                produced=traces * load.SPANS / producing,
                drained=(one, two),
                takeover_s=await bench.takeover(),
                session_s=bench.cluster(MORE).kafka.session_timeout / SECOND,
                read_back_s=await bench.read_back(open_traces),
                open_traces=open_traces,
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--traces", type=int, default=2000, help="traces of ten spans each")
    parser.add_argument("--open-traces", type=int, default=OPEN_TRACES)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    report = asyncio.run(measure(asked.traces, asked.open_traces))
    sys.stdout.write(f"{msgspec.json.encode(report).decode() if asked.json else report.table()}\n")


if __name__ == "__main__":
    main()
