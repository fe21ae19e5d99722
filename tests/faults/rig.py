"""Rig: a cluster under load that faults are done to, and the reckoning afterwards.

Every fault is an action on a :class:`Rig`; how often and for how long is the caller's. :meth:`Rig.reckon` waits until nothing is under
way any more and holds that nothing was lost, nothing doubled and everybody was told.
"""

import asyncio
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from clickhouse_front import Front
from cluster import PATIENCE_S, Cluster, Process
from faults.ledger import GATE, PAGER, PROJECT, Ledger
from faults.load import WHOLE, Load, Sender
from faults.oracle import Counts, check
from kafka_broker import Broker

from pipeline.apps.demo.receiver import Pager
from pipeline.judges.scripted import MODEL, ScriptedJudge
from sinks.clickhouse.connection import connect
from sinks.clickhouse.store import Store

TESTS: Final = Path(__file__).parents[1]
SESSION_S: Final = 6.0
ALERT_EVERY_S: Final = 4.0
STAGES: Final = ("assemble", "judge", "gate")
DRAIN_S: Final = 240.0
CONFIG: Final = """
assemble: {{quiet_period: 1s, parent_unseen: 2s, idle_timeout: 5s}}
judge: {{base_url: "{judge}", model: {model}}}
agents:
  default:
    sampling: {{rate: 0.1}}
    checks:
      policies:
        - {{name: no_deletion, forbid: {{tool: delete_customer}}}}
        - {{name: no_escalation, forbid: {{tool: escalate}}}}
gates: [{{name: {gate}, kind: hard, dimensions: [no_deletion], quiet: 2h}}]
alerts: [{{name: {pager}, webhook: "{url}"}}]
"""
TOLD: Final = ("warning", "error", "critical")
_OUTCOME: Final = (
    "SELECT outcome FROM results FINAL WHERE run_id = {run:String} AND dimension = {dimension:String} AND weight > 0"
)


class Outside:
    """Whoever is told and whoever is asked: a pager and a judge, in a thread of their own."""

    def __init__(self) -> None:
        self.pager = Pager()
        self.judge = ScriptedJudge()
        self._up = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), name="outside")

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        async with self.pager, self.judge:
            self._up.set()
            await self._ended.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()


class Rig:
    """A broker, a store, a collector, workers by name, and the ledger of what was sent."""

    def __init__(self, cluster: Cluster, outside: Outside, sender: Sender, collector: Process) -> None:
        self.cluster = cluster
        self.outside = outside
        self.sender = sender
        self.collector = collector
        self.ledger: Ledger = sender.ledger
        self.workers: list[Process] = []
        self.former: list[Process] = []
        self.done: Counter[str] = Counter()
        """What was done to it, for whoever reads the run."""
        self.chance = random.Random(20261129)
        self._alerts = 0

    # Load

    @contextmanager
    def load(self, traces_per_s: float = 6.0) -> Iterator[None]:
        """Report without pause."""
        with Load(self.sender, traces_per_s=traces_per_s):
            yield

    def alert(self) -> str:
        """Have one notification become due: an agent that nobody heard of deletes a customer. Returns the agent's name."""
        self._alerts += 1
        agent = f"deleter-{self._alerts}"
        self.sender.send(self.ledger.trace(agent, fails=True), *WHOLE)
        return agent

    # Workers

    def start(self, sabotage: str = "") -> Process:
        """Start one more worker, which may be broken on purpose; it may not own anything yet."""
        environment = {"SABOTAGE": sabotage, "PYTHONPATH": os.pathsep.join(map(str, (TESTS.parent, TESTS)))}
        process = Process(
            "worker",
            "-c",
            str(self.cluster.config),
            environment=environment,
            module="faults.sabotage" if sabotage else "pipeline.apps",
        )
        self.workers.append(process)
        return process

    def end(self, process: Process, how: signal.Signals) -> None:
        """End a worker: with SIGKILL as a power cut would, with SIGTERM in good order."""
        self.workers.remove(process)
        self.former.append(process)
        self.done[how.name] += 1
        if how is signal.SIGKILL:
            process.kill()
        else:
            assert process.stop() == 0, process.tail()

    def freeze(self, process: Process, seconds: float) -> None:
        """Stop a worker in the middle of what it does, and let it go on after its partitions went elsewhere."""
        process.signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.signal(signal.SIGCONT)
        self.done["SIGSTOP"] += 1

    def struck(self, process: Process, event: str = "") -> None:
        """Wait until a worker has stopped itself, or said this; now and then an alert becomes due, for one owner or the other."""
        until = time.monotonic() + PATIENCE_S
        while not (_has_said(process, event) if event else is_stopped(process)):
            assert process.process.poll() is None, process.tail()
            assert time.monotonic() < until, f"{process.pid} was not struck: {self.owners()}\n{self.tails()}"
            self.alert()
            time.sleep(ALERT_EVERY_S)
        self.done["broken in the middle" if event else "stopped in the middle"] += 1

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

    def graded(self, run_id: str, dimension: str) -> str | None:
        """Return what readers are told of one dimension of a run now; None where nothing is stored."""
        database = connect(self.cluster.settings.store, {})
        try:
            rows = database.query(_OUTCOME, {"run": run_id, "dimension": dimension})
        finally:
            database.close()
        return rows[0]["outcome"] if rows else None

    # The end

    def reckon(self) -> Counts:
        """Wait until nothing is under way, and hold that everything is as it must be; the workers still run."""
        self.drain()
        ended = [one for one in self.workers if one.process.poll() is not None]
        assert not ended, f"workers ended by themselves:\n{self.tails()}"
        counts = asyncio.run(check(self.cluster.settings, self.ledger, self.outside.pager.told))
        self.tell(counts)
        assert all(counts.__getattribute__(name) for name in ("spans", "runs", "results", "minutes", "windows"))
        return counts

    def drain(self, within_s: float = DRAIN_S) -> None:
        """Wait until all that was acknowledged is graded, told and acknowledged to the broker."""
        left = asyncio.run(self._drained(within_s))
        assert not left, f"still under way after {within_s} s: {left}\n{self.tails()}"

    async def _drained(self, within_s: float) -> dict[str, int]:
        until = time.monotonic() + within_s
        async with self.cluster.store() as store:
            while (left := await self._left(store)) and time.monotonic() < until:  # noqa: ASYNC110 - other processes get on
                await asyncio.sleep(0.5)
        return left

    async def _left(self, store: Store) -> dict[str, int]:
        accounting = await store.accounting(PROJECT)
        left = {
            "pending": accounting.pending,
            "open": accounting.open_traces,
            "stale minutes": len(await store.stale_minutes()),
            "untold": len(self.ledger.due() - set(self.outside.pager.told)),
            **self.cluster.backlog(),
        }
        return {name: count for name, count in left.items() if count}

    def tails(self) -> str:
        """Return the end of what the workers that run have logged."""
        return "\n".join(f"--- {one.arguments[0]} {one.pid}\n{one.tail(60)}" for one in (self.collector, *self.workers))

    def tell(self, counts: Counts) -> None:
        """Print what a reader of a run wants to see."""
        said = self.said()
        print(  # noqa: T201 - that is what it is for
            f"\ndone: {dict(self.done)}; answers: {dict(self.sender.answers)}; "
            f"counts: { {name: getattr(counts, name) for name in counts.__struct_fields__} } "
            f"in {self.outside.pager.calls} deliveries, {len(self.outside.judge.asked)} questions; said: {dict(said)}"
        )

    def said(self) -> Counter[str]:
        """Return how often the workers, former ones too, said what is no ordinary course of things."""
        found: Counter[str] = Counter()
        for process in (*self.former, *self.workers):
            found.update(f"{one['level']}: {one['event']}" for one in told(process) if one.get("level") in TOLD)
        return found


def is_stopped(process: Process) -> bool:
    """Whether a process is stopped now, by itself or by somebody else."""
    return os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None


def _has_said(process: Process, event: str) -> bool:
    return any(one.get("event") == event for one in told(process))


def told(process: Process) -> Iterator[dict[str, Any]]:
    """Return what a process has logged."""
    for line in list(process.lines):
        with suppress(ValueError):
            one = json.loads(line)
            if isinstance(one, dict):
                yield one


@contextmanager
def a_rig(broker: Broker, front: Front, folder: Path, *, database: str = "faults") -> Iterator[Rig]:
    """A cluster without workers, and a collector that listens. Processes that still run at the end are killed."""
    with ExitStack() as stack:
        outside = stack.enter_context(Outside())
        more = CONFIG.format(judge=outside.judge.url, model=MODEL, gate=GATE, pager=PAGER, url=outside.pager.url)
        cluster = Cluster(broker, front, folder, more=more, project=PROJECT, database=database)
        process, url, _ = stack.enter_context(cluster.collector())
        rig = Rig(cluster, outside, Sender(url, Ledger()), process)
        try:
            yield rig
        finally:
            for worker in rig.workers:
                worker.kill()
