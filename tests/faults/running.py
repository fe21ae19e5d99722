"""Running: the processes of an installation under test, each of which can be started, ended and broken."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from cluster import PATIENCE_S, Cluster, Process
from faults.ledger import Ledger
from faults.load import Sender
from faults.outside import Outside

TESTS: Final = Path(__file__).parents[1]
STAGES: Final = ("assemble", "judge", "gate")
TOLD: Final = ("warning", "error", "critical")


class Running:
    """A collector, workers, and what else was started on one configuration."""

    def __init__(self, cluster: Cluster, outside: Outside) -> None:
        self.cluster = cluster
        self.outside = outside
        self.sender = Sender("", Ledger())
        self.collector: Process | None = None
        self.workers: list[Process] = []
        self.others: list[Process] = []
        """What else runs, such as a bridge."""
        self.former: list[Process] = []
        self.done: Counter[str] = Counter()
        """What was done to it, for whoever reads the run."""
        self.uncounted = False
        """Whether a collector was killed, with what it had not told of its metrics."""
        self._started = 0

    @property
    def running(self) -> list[Process]:
        """Everything of the product that was started and not ended."""
        return [*([self.collector] if self.collector else []), *self.workers, *self.others]

    def process(self, command: str, sabotage: str = "", **more: str) -> Process:
        """Start a command of the product on this configuration, which may be broken on purpose."""
        self._started += 1
        environment = {"SABOTAGE": sabotage, "PYTHONPATH": os.pathsep.join(map(str, (TESTS.parent, TESTS))), **more}
        return Process(
            command,
            "-c",
            str(self.cluster.config),
            environment={**environment, **self.outside.metered.environment(f"{command}-{self._started}")},
            module="faults.sabotage" if sabotage else "pipeline.apps",
        )

    def collect(self, sabotage: str = "") -> Process:
        """Start the collector, or the next one after it ended; senders find it."""
        assert self.collector is None or self.collector.process.poll() is not None, "a collector runs"
        if self.collector is not None:
            self.former.append(self.collector)
        self.collector = process = self.process("collector", sabotage)
        self.sender.url = process.says("collecting")["http"]
        return process

    def start(self, sabotage: str = "", **more: str) -> Process:
        """Start one more worker; it may not own anything yet."""
        process = self.process("worker", sabotage, **more)
        self.workers.append(process)
        return process

    def bridge(self, sabotage: str = "") -> Process:
        """Start a bridge; it has joined its group when it says ``bridging``."""
        process = self.process("bridge", sabotage)
        self.others.append(process)
        return process

    def end(self, process: Process, how: signal.Signals) -> float:
        """End a process: with SIGKILL as a power cut would, with SIGTERM in good order. Returns the seconds that it took."""
        began = time.monotonic()
        if how is signal.SIGKILL:
            process.kill()
            self.uncounted |= process is self.collector
        else:
            assert process.stop() == 0, process.tail()
        self.done[f"{process.arguments[0]} {how.name}"] += 1
        self._gone(process)
        return time.monotonic() - began

    def dies(self, process: Process, meanwhile: Callable[[], object] = lambda: None, every_s: float = 0.5) -> None:
        """Wait until a process has killed itself; something happens again and again meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while process.process.poll() is None:
            assert time.monotonic() < until, f"{process.pid} was not struck: {self.owners()}\n{self.tails()}"
            meanwhile()
            with suppress(subprocess.TimeoutExpired):
                process.process.wait(every_s)
        assert process.process.returncode == -signal.SIGKILL, process.tail()
        self.uncounted |= process is self.collector
        self.done[f"{process.arguments[0]} killed in the middle"] += 1
        self._gone(process)

    def kill(self) -> None:
        """End whatever runs, without a word."""
        for process in self.running:
            process.kill()

    def _gone(self, process: Process) -> None:
        self.former.append(process)
        for some in (self.workers, self.others):
            if process in some:
                some.remove(process)
        self.collector = None if process is self.collector else self.collector

    def working(self, workers: int) -> None:
        """Wait until so many workers own all partitions of every stage."""
        try:
            for stage in STAGES:
                self.cluster.shared_by(workers, stage)
        except AssertionError:
            raise AssertionError(f"{workers} workers never owned everything: {self.owners()}\n{self.tails()}") from None

    def owners(self) -> dict[str, dict[str, list[int]]]:
        """Return who owns what, by stage."""
        return {stage: self.cluster.owners(stage) for stage in STAGES}

    def tails(self) -> str:
        """Return the end of what the processes that run have logged."""
        return "\n".join(f"--- {one.arguments[0]} {one.pid}\n{one.tail(60)}" for one in self.running)

    def said(self) -> Counter[str]:
        """Return how often the processes, former ones too, said what is no ordinary course of things."""
        found: Counter[str] = Counter()
        for process in (*self.former, *self.running):
            found.update(f"{one['level']}: {one['event']}" for one in process.told if one.get("level") in TOLD)
        return found
