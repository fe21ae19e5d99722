"""The real OpenTelemetry Collector in front of the bridge: from its OTLP port to graded runs, beside other writers, and over double crashes."""

import asyncio
import os
import random
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from builders import a_span
from clickhouse_front import Front
from cluster import Cluster, Process
from confluent_kafka.admin import NewTopic
from foreign_writers import carried, on_topic, write
from kafka_broker import Broker
from machine import UnavailableError
from otel_collector_build import binary
from otel_process import DEPLOYED, OtelCollector
from serving import Up, an_agent_runs, eventually, grpc_exporter, http_exporter

from collectors.kafka.topics import create
from collectors.otlp import encode, protobuf
from pipeline.apps.bench import load
from pipeline.model.span import Span
from pipeline.runtime.clock import SystemClock

pytestmark = [pytest.mark.kafka, pytest.mark.real, pytest.mark.timeout(900)]

TOPIC = "otlp_spans"
PARTITIONS = 4
DEFAULTS = Path(__file__).parents[1] / "otel_collector" / "defaults.yaml"
MORE = f"""
bridge: {{topics: {{{TOPIC}: cluster}}}}
assemble: {{quiet_period: 2s}}
gates: []
"""


@pytest.fixture(scope="session", autouse=True)
def collector_binary() -> Path:
    """Built, or why not."""
    try:
        return binary()
    except UnavailableError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture
def cluster(empty_broker: Broker, front: Front, tmp_path: Path) -> Cluster:
    made = Cluster(empty_broker, front, tmp_path, more=MORE, database=f"otel_{abs(hash(tmp_path.name))}", partitions=PARTITIONS)
    create(made.kafka, os.environ, made.settings.bridge.topics)
    return made


@pytest.fixture
def bridge(cluster: Cluster) -> Iterator[Process]:
    with Process("bridge", "-c", str(cluster.config)) as process:
        process.says("bridging")
        yield process
        assert process.stop() == 0, process.tail()


def post(url: str, body: bytes, patience_s: float = 60) -> bool:
    """Send a request; whether it was acknowledged."""
    request = urllib.request.Request(f"{url}/v1/traces", body, {"Content-Type": "application/x-protobuf"})  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=patience_s) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


async def runs_of(cluster: Cluster, traces: int) -> None:
    """Wait until each trace is one run, and nothing is outstanding."""
    async with cluster.store() as store:
        async with asyncio.timeout(120):
            while (done := await store.accounting(cluster.project)).received < traces or done.open_traces:  # noqa: ASYNC110 - others work
                await asyncio.sleep(0.2)
        assert done.received == traces


async def test_what_agents_send_to_a_collector_becomes_runs(cluster: Cluster, bridge: Process, tmp_path: Path) -> None:
    with OtelCollector(cluster.broker.address, tmp_path) as collector, cluster.worker("assemble") as worker:
        up = Up(bridge.process, cluster.config, collector.http, collector.grpc)
        sent = {an_agent_runs(grpc_exporter(up), "refunds"), an_agent_runs(http_exporter(up), "orders")}
        await runs_of(cluster, len(sent))
        async with cluster.store() as store:
            board = await store.scoreboard(cluster.project, 10)
        assert {run.trace_id for run in board} == sent
        assert worker.stop() == 0


async def test_writers_that_choose_other_partitions_make_one_run_of_a_trace(
    cluster: Cluster, bridge: Process, tmp_path: Path
) -> None:
    """The same traces through the Collector with FNV keys, through our receiver, and by murmur2 with a tenth of the keys missing (F18)."""
    del bridge
    traces, chance = 60, random.Random(18)
    keyed = tmp_path / "keyed.yaml"
    keyed.write_text(
        DEPLOYED.read_text().replace(
            "    traces:\n      # The topic", "    partition_traces_by_id: true\n    traces:\n      # The topic"
        )
    )
    assert "partition_traces_by_id" in keyed.read_text()
    now = SystemClock().now()
    spans = [span for body in load.requests(traces, now) for span in protobuf.decode(body, cluster.project, now).spans]
    ways: list[list[Span]] = [[], [], []]
    for span in spans:
        ways[chance.choices((0, 1, 2), (45, 45, 10))[0]].append(span)
    for way in ways:
        chance.shuffle(way)
    with (
        OtelCollector(cluster.broker.address, tmp_path, config=keyed) as collector,
        cluster.collector() as (_, ours, _),
        cluster.worker("assemble") as worker,
    ):
        for some in pieces(ways[0]):
            assert post(collector.http, encode.encode(some))
        for some in pieces(ways[1]):
            assert post(ours, encode.encode(some))
        for some in pieces(ways[2]):
            key = None if chance.random() < 0.1 else some[0].trace_id.encode()
            write(cluster.broker.address, TOPIC, [encode.encode(some)], keys=[key])
        await runs_of(cluster, traces)
        async with cluster.store() as store:
            board = await store.scoreboard(cluster.project, traces)
        assert {run.steps for run in board} == {load.SPANS}
        assert worker.stop() == 0
    keys = {message.partition() for message in on_topic(cluster.broker.address, TOPIC, PARTITIONS)}
    assert len(keys) > 1, "all writers chose one partition, and nothing was shown"


def pieces(spans: list[Span], size: int = 7) -> Iterator[list[Span]]:
    for first in range(0, len(spans), size):
        yield spans[first : first + size]


def test_requests_larger_than_any_record_are_split_and_carried(cluster: Cluster, bridge: Process, tmp_path: Path) -> None:
    del bridge
    requests = 5
    with OtelCollector(cluster.broker.address, tmp_path) as collector:
        for request in range(requests):
            spans = [
                a_span(trace_id=f"{request + 1:032x}", span_id=f"{at + 1:016x}", attributes={"text": os.urandom(1300).hex()})
                for at in range(1000)
            ]
            body = encode.encode(spans)
            assert len(body) > 2_500_000
            assert post(collector.http, body), collector.tail()
        names = eventually(lambda: ids(cluster) if len(ids(cluster)) == requests * 1000 else None)
    assert len(names) == requests * 1000


def ids(cluster: Cluster) -> set[tuple[str, str]]:
    return {(span.trace_id, span.span_id) for span in carried(cluster.broker.address, PARTITIONS)}


class Senders:
    """Clients that send one request after the other, and write down which were acknowledged."""

    def __init__(self, url: str, clients: int = 8) -> None:
        self.acknowledged: set[str] = set()
        self.failed = 0
        self._url = url
        self._stop = threading.Event()
        self._next = iter(range(1, 1_000_000))
        self._lock = threading.Lock()
        self._clients = ThreadPoolExecutor(clients)
        self._running = [self._clients.submit(self._run) for _ in range(clients)]

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                trace_id = f"{next(self._next):032x}"
            if post(self._url, encode.encode([a_span(trace_id=trace_id)]), patience_s=10):
                with self._lock:
                    self.acknowledged.add(trace_id)
            else:
                self.failed += 1
                time.sleep(0.05)

    def until(self, holds: Callable[[], bool]) -> None:
        eventually(holds)

    def stop(self) -> None:
        self._stop.set()
        for one in self._running:
            one.result()
        self._clients.shutdown()


def a_double_crash(config: Path, folder: Path) -> tuple[Senders, int, set[str]]:
    """Kill the broker, and then the Collector, while clients send; start both again. Returns what is on the topic in the end."""
    with Broker() as broker, OtelCollector(broker.address, folder, config=config) as collector:
        admin = broker.admin()

        for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
            made.result(30)
        senders = Senders(collector.http)
        try:
            senders.until(lambda: len(senders.acknowledged) > 200)
            broker.kill()
            time.sleep(3)  # what is accepted meanwhile is with the Collector alone
            collector.kill()
            before = len(senders.acknowledged)
            broker.start()
            collector.start()
            senders.until(lambda: len(senders.acknowledged) > before + 200)
        finally:
            senders.stop()
        return senders, before, all_of_it(broker)


def all_of_it(broker: Broker) -> set[str]:
    """The traces that are on the topic, once nothing more comes."""
    before = -1
    while before != (now := len(found := on_topic(broker.address, TOPIC, PARTITIONS))):
        before = now
        time.sleep(5)
    return {span.trace_id for message in found for span in protobuf.decode(message.value(), "p", 1).spans}


def said(senders: Senders, before: int, lost: set[str]) -> None:
    counts = f"acknowledged {len(senders.acknowledged)} ({before} before the Collector died), refused {senders.failed}, lost {len(lost)}"
    sys.stderr.write(f"\n{counts}\n")


def test_a_double_crash_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    senders, before, stored = a_double_crash(DEPLOYED, tmp_path)
    lost = senders.acknowledged - stored
    said(senders, before, lost)
    assert lost == set()
    assert senders.failed > 0, "nobody sent while they were away"


def test_under_the_defaults_the_same_crash_loses_spans(tmp_path: Path) -> None:
    """So that the test above is known to be one that can fail."""
    senders, before, stored = a_double_crash(DEFAULTS, tmp_path)
    lost = senders.acknowledged - stored
    said(senders, before, lost)
    assert lost
