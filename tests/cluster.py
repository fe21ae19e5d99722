"""A whole installation for tests: a real broker, a ClickHouse front, and ``tracegrade`` processes between them.

Processes are the product's own commands. What is read back is read as the commands read it: through a ``Store`` on the server.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from clickhouse_front import Front
from kafka_broker import Broker
from serving import eventually

from collectors.kafka.lag import lag
from collectors.kafka.topics import create
from pipeline.config.kafka import KafkaSettings
from pipeline.config.load import load
from pipeline.errors import TemporaryError
from sinks.clickhouse.store import Store

PATIENCE_S: Final = 90.0
CONFIG: Final = """
project: {project}
store: {{url: "{store}", database: {database}}}
kafka: {{brokers: ["{broker}"], partitions: {partitions}, session_timeout: {session}}}
receiver: {{http_port: 0, grpc_port: 0, project: {project}{receiver}}}
"""


class Process:
    """A running ``tracegrade`` command. What it logs is kept; the last lines stand in the errors of the waits here."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None, module: str = "pipeline.apps") -> None:
        """``module`` is another way to start the same commands, such as a broken one."""
        self.arguments = arguments
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONFAULTHANDLER": "1", **(environment or {})},
        )
        self.lines: list[str] = []
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                try:
                    told = json.loads(line)
                except ValueError:
                    continue
                if isinstance(told, dict):
                    self._events.put(told)
        self._events.put(None)

    @property
    def pid(self) -> int:
        return self.process.pid

    def says(self, event: str, within_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait until the process logs an event, and return it; events before it are passed over."""
        until = time.monotonic() + within_s
        while True:
            try:
                told = self._events.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.arguments} never said {event!r}:\n" + self.tail()) from None
            if told is None:
                raise AssertionError(f"{self.arguments} ended ({self.process.wait()}) before it said {event!r}:\n" + self.tail())
            if told.get("event") == event:
                return told

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self, within_s: float = PATIENCE_S) -> int:
        """End it with SIGTERM, and return its exit code. Where it does not end, its threads are asked what they are at."""
        self.process.terminate()
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGABRT)
            self.process.wait(within_s)
            raise AssertionError(f"{self.arguments} did not end within {within_s} s:\n{self.tail(200)}") from None

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.lines[-lines:])

    @property
    def told(self) -> Iterator[dict[str, Any]]:
        """All events that it has logged."""
        for line in list(self.lines):
            with suppress(ValueError):
                one = json.loads(line)
                if isinstance(one, dict):
                    yield one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Cluster:
    """A broker and a front, their topics, and the configuration that all processes share."""

    def __init__(
        self,
        broker: Broker,
        front: Front,
        folder: Path,
        *,
        more: str = "",
        project: str = "cluster",
        database: str = "tracegrade",
        partitions: int = 4,
        session: str = "6s",
        receiver: str = "",
    ) -> None:
        """Declare the topics. ``more`` is YAML that is added to the configuration, ``receiver`` to that section of it."""
        self.broker = broker
        self.front = front
        self.project = project
        self.config = folder / "tracegrade.yaml"
        self.config.write_text(
            CONFIG.format(
                project=project,
                store=front.url,
                database=database,
                broker=broker.address,
                partitions=partitions,
                session=session,
                receiver=receiver,
            )
            + more
        )
        self.settings = load(self.config)
        create(self.kafka, os.environ)

    @property
    def kafka(self) -> KafkaSettings:
        return self.settings.kafka_or_refuse()

    @contextmanager
    def collector(self) -> Iterator[tuple[Process, str, str]]:
        """A collector that listens: the process, its HTTP address and its gRPC address."""
        with Process("collector", "-c", str(self.config)) as process:
            told = process.says("collecting")
            yield process, told["http"], told["grpc"]

    def worker(self, stages: str = "assemble,judge,gate") -> Process:
        """Start a worker; it has joined its groups when it says ``working``."""
        return Process("worker", "-c", str(self.config), "--stages", stages)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        """The store, to look at."""
        store = Store.open(self.settings.store)
        try:
            yield store
        finally:
            await store.close()

    def owners(self, stage: str = "assemble") -> dict[str, list[int]]:
        """Return the partitions of a stage by the client that owns them."""
        owned: dict[str, list[int]] = {}
        try:
            (group,) = (one for one in lag(self.kafka, os.environ) if one.node == stage)
        except TemporaryError:  # a busy broker does not say; who waits asks again
            return owned
        for one in group.partitions:
            if one.owner:
                owned.setdefault(one.owner, []).append(one.partition)
        return owned

    def shared_by(self, workers: int, stage: str = "assemble") -> dict[str, list[int]]:
        """Wait until so many workers own all partitions of a stage between them."""

        def shared() -> dict[str, list[int]] | None:
            owned = self.owners(stage)
            whole = sum(map(len, owned.values())) == self.kafka.partitions
            return owned if whole and len(owned) == workers else None

        found: dict[str, list[int]] = eventually(shared)
        return found

    def backlog(self) -> dict[str, int]:
        """Return how many records each stage has not acknowledged."""
        return {one.node: one.lag for one in lag(self.kafka, os.environ)}


def ended_well(processes: Sequence[Process]) -> None:
    """Stop processes with SIGTERM and hold that each was asked to, and said nothing that nobody foresaw."""
    for process in processes:
        assert process.stop() == 0, process.tail()
