"""The benchmark of the ways in: our receiver beside the real OpenTelemetry Collector, and a bridge beside bare decoding, in one run.

``make bench`` runs it. Both receivers take the same requests over HTTP from the same sender, and answer when a real broker has them. All
of it shares this machine, so ratios travel; seconds do not. Where Go is missing there is no Collector to compare with, and that is said.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from bench_cluster import cpu_s
from cluster import Process
from foreign_writers import write
from kafka_broker import Broker
from machine import UnavailableError
from opentelemetry.metrics import NoOpMeter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otel_process import OtelCollector

from collectors.kafka.bridge_consumer import BridgeConsumer
from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import KafkaPublisher, SpanBatcher
from collectors.kafka.topics import create, partitions
from collectors.redaction.configured import redactor
from pipeline.apps.bench import load, sender
from pipeline.apps.logs import log_to_stderr
from pipeline.apps.process import collect_less_often
from pipeline.config.load import load as configured
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.topology import TRACES
from pipeline.runtime.bridging import Bridge
from pipeline.runtime.clock import SystemClock
from pipeline.runtime.dead_letters import published
from pipeline.runtime.telemetry import Metric, Telemetry

TOPIC: Final = "otlp_spans"
ROUNDS: Final = 3
"""Of each way in, in turn; the median counts."""
COPIES: Final = 5
"""How often the requests are on the topic that the bridge reads: enough to work for seconds."""
CONFIG: Final = """
project: bench
kafka: {{brokers: ["{brokers}"], partitions: 8}}
bridge: {{topics: {{otlp_spans: bench}}}}
receiver: {{http_port: 0, grpc_port: 0}}
redaction: {{off: {off}}}
"""


class Way(msgspec.Struct, frozen=True):
    """What a span costs on one way in."""

    name: str
    spans_per_second: float
    cpu: float
    """Of the process itself, in µs a span."""


class WaysReport(msgspec.Struct, frozen=True):
    """What was measured."""

    spans: int
    bare_decoding: float
    """Spans a second: parsing the protobuf, nothing else."""
    ways: tuple[Way, ...]
    missing: str = ""
    """Why there is no Collector, if so."""

    def table(self) -> str:
        """Return the report as lines, each beside its ratios."""
        lines = [
            f"ways in, {self.spans} spans in requests of {load.SPANS * load.TRACES_A_REQUEST}, answered when the broker has them:"
        ]
        lines.append(f"{'bare OTLP decoding (the floor)':42} {self.bare_decoding:10,.0f} spans/s")
        theirs = next((way.spans_per_second for way in self.ways if "Collector" in way.name), None)
        for way in self.ways:
            compared = theirs is not None and "receiver" in way.name
            beside = f"   {way.spans_per_second / theirs:5.2f} of the Collector" if theirs and compared else ""
            floor = f"   {way.spans_per_second / self.bare_decoding:7.4f} of the floor"
            lines.append(f"{way.name:42} {way.spans_per_second:10,.0f} spans/s{floor}   CPU {way.cpu:.0f} µs a span{beside}")
        return "\n".join([*lines, f"no Collector to compare with: {self.missing}"] if self.missing else lines)


def floor(bodies: Sequence[bytes], spans: int) -> float:
    """Return the best of some passes, in spans a second."""

    def once() -> float:
        began = time.perf_counter()
        for body in bodies:
            ExportTraceServiceRequest.FromString(body)
        return time.perf_counter() - began

    return spans / min(once() for _ in range(ROUNDS))


def posted(url: str, file: Path) -> float:
    """Return the seconds in which another process posts all requests, from its first to the last answer."""
    command = [sys.executable, sender.__file__, f"{url}/v1/traces", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("the sender has no pipes")
        process.stdout.readline()
        began = time.perf_counter()
        process.communicate(b"go\n")
        if process.returncode:
            raise RuntimeError(f"{url} did not accept a request")
        return time.perf_counter() - began


@contextmanager
def our_receiver(config: Path) -> Iterator[tuple[str, int]]:
    """Run `tracegrade collector`."""
    with Process("collector", "-c", str(config)) as process:
        yield process.says("collecting")["http"], process.pid


@contextmanager
def their_receiver(broker: Broker, folder: Path) -> Iterator[tuple[str, int]]:
    """Run the Collector under deploy/otel-collector.yaml."""
    with OtelCollector(broker.address, folder) as process:
        yield process.http, process.pid


def median_way(name: str, spans: int, measured: Sequence[tuple[float, float]]) -> Way:
    """Return the middle one of some (seconds, CPU seconds)."""
    seconds, cpu = sorted(measured)[len(measured) // 2]
    return Way(name, spans / seconds, cpu / spans * 1e6)


def receivers(broker: Broker, folder: Path, file: Path, spans: int) -> tuple[list[Way], str]:
    """Measure all receivers, in turn, so that a slow minute is everybody's."""
    missing = ""
    measured: dict[str, list[tuple[float, float]]] = {}
    plain, redacting = (written(folder, broker.address, off=off) for off in (True, False))
    for _ in range(ROUNDS):
        ways = {
            "our receiver to Kafka": our_receiver(redacting),
            "our receiver to Kafka, redaction off": our_receiver(plain),
            "the Collector to Kafka": their_receiver(broker, folder),
        }
        for name, way in ways.items():
            try:
                with way as (url, pid):
                    posted(url, file)  # whatever is made at the first request is made
                    before = cpu_s(pid)
                    seconds = posted(url, file)
                    measured.setdefault(name, []).append((seconds, cpu_s(pid) - before))
            except UnavailableError as error:
                missing = str(error)
    return [median_way(name, spans, some) for name, some in measured.items()], missing


def written(folder: Path, brokers: str, *, off: bool) -> Path:
    """Write a configuration."""
    path = folder / f"redaction-{'off' if off else 'on'}.yaml"
    path.write_text(CONFIG.format(brokers=brokers, off=str(off).lower()))
    return path


async def bridged(settings: TracegradeSettings, spans: int) -> tuple[float, float]:
    """Return the seconds, and the CPU seconds, in which a bridge carries so many spans; it runs in this process, to stop at the last one."""
    kafka, topics = settings.kafka_or_refuse(), settings.bridged
    counts = partitions(kafka, os.environ)
    telemetry, clock, stop = Telemetry(NoOpMeter("bench")), SystemClock(), asyncio.Event()
    async with KafkaProducer(kafka, os.environ) as producer:
        consumer = BridgeConsumer(kafka, settings.bridge, topics, os.environ)
        try:
            bridge = Bridge(
                consumer,
                topics,
                SpanBatcher(producer, counts[TRACES.name]),
                published(KafkaPublisher(producer, counts)),
                clock,
                telemetry,
                in_flight=settings.bridge.in_flight,
                redactor=redactor(settings.redaction),
            )
            await consumer.start()
            while not consumer.joined:
                await consumer.take(hold=True)
            collect_less_often()  # as the command does
            began, cpu = time.perf_counter(), time.process_time()
            running = asyncio.ensure_future(bridge.run(stop))
            while telemetry.snapshot().get(Metric.SPANS_RECEIVED, 0) < spans and not running.done():  # noqa: ASYNC110 - others work
                await asyncio.sleep(0.01)
            used = time.perf_counter() - began, time.process_time() - cpu
            stop.set()
            await running
            return used
        finally:
            await consumer.close()


def bridges(broker: Broker, folder: Path, bodies: Sequence[bytes], spans: int) -> list[Way]:
    """Measure a bridge on a topic that is full, with redaction and without."""
    found = []
    for off in (False, True):
        settings = configured(written(folder, broker.address, off=off))
        measured = []
        for _ in range(ROUNDS):
            broker.clear()
            create(settings.kafka_or_refuse(), os.environ, settings.bridge.topics)
            write(broker.address, TOPIC, list(bodies) * COPIES)
            measured.append(asyncio.run(bridged(settings, spans * COPIES)))
        found.append(median_way(f"a bridge, Kafka to Kafka{', redaction off' if off else ''}", spans * COPIES, measured))
    return found


def measure(traces: int) -> WaysReport:
    """Measure everything, with so many traces of ten spans."""
    bodies, spans = load.requests(traces, SystemClock().now()), traces * load.SPANS
    with TemporaryDirectory(prefix="tracegrade-bench-", ignore_cleanup_errors=True) as name, Broker() as broker:
        folder = Path(name)
        settings = configured(written(folder, broker.address, off=False))
        create(settings.kafka_or_refuse(), os.environ, settings.bridge.topics)
        sender.write(folder / "load", bodies)
        ways, missing = receivers(broker, folder, folder / "load", spans)
        return WaysReport(spans, floor(bodies, spans), (*ways, *bridges(broker, folder, bodies, spans)), missing)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--traces", type=int, default=1000, help="traces of ten spans each")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    log_to_stderr("warning")
    report = measure(asked.traces)
    sys.stdout.write(f"{msgspec.json.encode(report).decode() if asked.json else report.table()}\n")


if __name__ == "__main__":
    main()
