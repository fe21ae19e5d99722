"""Rig: a cluster under load that faults are done to, and the reckoning afterwards.

Every fault is an action on a :class:`Rig`; how often and for how long is the caller's. :meth:`Rig.assert_nothing_is_lost_or_doubled` waits until nothing is under
way any more and holds that nothing was lost, nothing doubled and everybody was told. What must hold at every moment is watched meanwhile.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from clickhouse_front import Front
from cluster import PATIENCE_S, Cluster, Process
from faults.lasting import lasting
from faults.ledger import GATE, PAGER, PROJECT, Ledger
from faults.load import WHOLE, Load
from faults.logical import back_to_the_beginning, differing, logical
from faults.oracle import Counts, check
from faults.outside import Outside
from faults.running import Running
from faults.watch import Watch
from kafka_broker import Broker
from serving import eventually

from pipeline.judges.scripted import MODEL
from pipeline.runtime.telemetry import Metric
from sinks.clickhouse.connection import connect
from sinks.clickhouse.store import Store

SEED: Final = int(os.environ.get("FAULTS_SEED", "20261130"))
"""Of all chance in a rig; write FAULTS_SEED to have another one, or that of a run that failed."""
SESSION_S: Final = 6.0
ALERT_EVERY_S: Final = 4.0
DRAIN_S: Final = 240.0
STILL_S: Final = 60.0
"""How long the stages may make no progress while there is some to be made (I10)."""
FRESH_S: Final = 30.0
"""How long after the end of a fault a new run may take to its scores, beside what records that wait before it take (I10)."""
RSS_MIB: Final = 768
FILES: Final = 256
"""What a process may take (I11)."""
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
gates: [{{name: {gate}, kind: hard, dimensions: [no_deletion], quiet: 2h}}{gates}]
alerts: [{{name: {pager}, webhook: "{url}"}}]
"""
_OUTCOME: Final = (
    "SELECT outcome FROM results FINAL WHERE run_id = {run:String} AND dimension = {dimension:String} AND weight > 0"
)


class Rig(Running):
    """A broker, a store, a collector, workers, and the ledger of what was sent."""

    def __init__(self, cluster: Cluster, outside: Outside, seed: int = SEED) -> None:
        super().__init__(cluster, outside)
        self.ledger: Ledger = self.sender.ledger
        self.measured: dict[str, float] = {}
        """What took how many seconds."""
        self.seed = seed
        self.chance = random.Random(seed)
        self.watch = Watch(cluster, lambda: self.running)
        self._alerts = 0

    # Load

    @contextmanager
    def load(self, traces_per_s: float = 6.0) -> Iterator[None]:
        """Report without pause; in a test that means something, some of it is acknowledged."""
        before = self.ledger.spans
        with Load(self.sender, traces_per_s=traces_per_s, seed=self.seed + self._alerts):
            yield
        assert self.ledger.spans > before, "nothing was acknowledged under this load"

    def alert(self) -> str:
        """Have one notification become due: an agent that nobody heard of deletes a customer. Returns the agent's name."""
        self._alerts += 1
        agent = f"deleter-{self._alerts}"
        self.sender.send(self.ledger.trace(agent, fails=True), *WHOLE)
        return agent

    def fresh(self, within_s: float = FRESH_S) -> float:
        """Return how long a run that starts now takes to its scores."""
        began = time.monotonic()
        sent = self.ledger.trace("fresh")
        self.sender.send(sent, *WHOLE)
        eventually(
            lambda: self.graded(sent.run_id, "no_deletion") == "pass",
            within_s,
            lambda: f"a new run has no scores\n{self.tails()}",
        )
        return time.monotonic() - began

    # Workers

    def struck(self, process: Process, event: str = "") -> None:
        """Wait until a worker has stopped itself, or said this; now and then an alert becomes due, for one owner or the other."""
        until = time.monotonic() + PATIENCE_S
        while not (_has_said(process, event) if event else is_stopped(process)):
            assert process.process.poll() is None, process.tail()
            assert time.monotonic() < until, f"{process.pid} was not struck: {self.owners()}\n{self.tails()}"
            self.alert()
            lasting(ALERT_EVERY_S)
        self.done["broken in the middle" if event else "stopped in the middle"] += 1

    def graded(self, run_id: str, dimension: str) -> str | None:
        """Return what readers are told of one dimension of a run now; None where nothing is stored."""
        database = connect(self.cluster.settings.store, {})
        try:
            rows = database.query(_OUTCOME, {"run": run_id, "dimension": dimension})
        finally:
            database.close()
        return rows[0]["outcome"] if rows else None

    def stored(self) -> int:
        """Return how many spans are stored now, whatever goes wrong with the store for others."""
        table = f"{self.cluster.settings.store.database}.spans"
        ((count,),) = self.cluster.front.look(f"SELECT uniqExact(trace_id, span_id) FROM {table}")  # noqa: S608 - a name of ours
        return int(count)

    # The end

    def assert_nothing_is_lost_or_doubled(self, *, anything: bool = True, within_s: float = DRAIN_S) -> Counts:
        """Wait until nothing is under way, and hold that everything is as it must be; the workers still run.

        Unless ``anything`` is false, what makes the reckoning mean something must have happened at least once.
        """
        self.drain(within_s)
        ended = [one for one in self.running if one.process.poll() is not None]
        assert not ended, f"processes ended by themselves:\n{self.tails()}"
        counts = asyncio.run(check(self.cluster.settings, self.ledger, self.outside.pager.told))
        self.counted()
        self.tell(counts)
        self.bounded()
        assert not self.watch.early, f"{len(self.watch.early)} commits were early: {self.watch.early[:3]}"
        vacuous = [name for name in ("spans", "runs", "results", "minutes", "windows") if not getattr(counts, name)]
        if anything:
            vacuous += [name for name in ("late", "trips", "alerts") if not getattr(counts, name)]
            vacuous += ["doubled"] if not self.watch.seen.doubled else []
            vacuous += ["looks"] if not self.watch.looks else []
        assert not vacuous, f"there was nothing to hold: {vacuous}"
        return counts

    def counted(self) -> None:
        """Hold that the collectors' own metrics say what the ledger says (I9)."""
        total, ledger = partial(self.outside.metered.total, of="collector"), self.ledger
        if self.uncounted:
            return

        def told() -> bool:
            accepted, rejected = total(Metric.SPANS_RECEIVED), total(Metric.SPANS_REJECTED)
            beyond = accepted + rejected - ledger.accepted - ledger.rejected
            return accepted >= ledger.accepted and rejected >= ledger.rejected and beyond <= ledger.unanswered

        try:
            eventually(told)
        except AssertionError:
            metered = total(Metric.SPANS_RECEIVED), total(Metric.SPANS_REJECTED)
            noted = ledger.accepted, ledger.rejected, ledger.unanswered
            raise AssertionError(f"accepted and rejected are {metered}; the ledger has, with unanswered, {noted}") from None

    def bounded(self, rss_mib: int = RSS_MIB) -> None:
        """Hold that no process took more than it may (I11)."""
        for peak in self.watch.peaks.values():
            assert peak.rss_mib < rss_mib, peak
            assert peak.files < FILES, peak

    def drain(self, within_s: float = DRAIN_S) -> None:
        """Wait until all that was acknowledged is graded, told and acknowledged to the broker; there must be progress all the time."""
        left = asyncio.run(self._drained(within_s))
        assert not left, f"still under way: {left}\n{self.tails()}"

    async def _drained(self, within_s: float) -> dict[str, int]:
        until = time.monotonic() + within_s
        before: dict[str, int] = {}
        moved = time.monotonic()
        async with self.cluster.store() as store:
            while (left := await self._left(store)) and time.monotonic() < until:
                if left != before:
                    moved, before = time.monotonic(), left
                if time.monotonic() - moved > STILL_S:
                    break
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

    def read_again(self) -> None:
        """Have every stage read its topic from the beginning, and hold that no reader sees a difference (I12)."""
        workers = len(self.workers)
        self.drain()
        for worker in list(self.workers):
            self.end(worker, signal.SIGTERM)
        before, calls = logical(self.cluster.front, self.cluster.settings.store.database), self.outside.pager.calls
        asked, records = len(self.outside.judge.asked), self.watch.seen.records
        back_to_the_beginning(self.cluster.broker.admin(), self.cluster.kafka.partitions)
        assert self.cluster.backlog()["assemble"] >= records, "nothing was there to be read again"
        for _ in range(workers):
            self.start()
        self.working(workers)
        self.drain()
        after = logical(self.cluster.front, self.cluster.settings.store.database)
        wrong = {table: rows[:2] for table, rows in differing(before, after).items()}
        assert not wrong, f"reading again changed what readers see: {wrong}"
        assert self.outside.pager.calls == calls, "somebody was notified again"
        assert len(self.outside.judge.asked) == asked, "the judge was asked again"
        self.done["read again"] += 1

    def tell(self, counts: Counts) -> None:
        """Print what a reader of a run wants to see."""
        peaks = ", ".join(
            f"{one.name} {one.rss_mib} MiB, {one.files} files" for one in map(self.watch.peak, ("collector", "worker"))
        )
        lines = {
            f"seed {self.seed}; done": dict(self.done),
            "answers": dict(self.sender.answers),
            "counts": {name: getattr(counts, name) for name in counts.__struct_fields__},
            "watched": f"{self.watch.looks} looks at offsets, {len(self.watch.early)} early; {self.watch.seen.records} records, "
            f"{self.watch.seen.doubled} spans delivered twice, {self.ledger.unknown} sent without an answer, "
            f"{self.ledger.rejected} refused, {self.ledger.poisons} poisons; at most {peaks}",
            "told": f"{self.outside.pager.calls} deliveries, {len(self.outside.judge.asked)} questions",
            "seconds": {name: round(seconds, 1) for name, seconds in self.measured.items()},
            "said": {text[:100]: count for text, count in self.said().most_common(5)},
        }
        print("\n" + "\n".join(f"{name}: {said}" for name, said in lines.items()))  # noqa: T201 - that is what it is for


NewRig: TypeAlias = Callable[..., AbstractContextManager[Rig]]
"""A rig with so many workers, on empty topics and in a database of its own; the rest is as for :func:`a_rig`."""


def is_stopped(process: Process) -> bool:
    """Whether a process is stopped now, by itself or by somebody else."""
    return os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None


def _has_said(process: Process, event: str) -> bool:
    return any(one.get("event") == event for one in process.told)


@contextmanager
def a_rig(
    broker: Broker, front: Front, folder: Path, *, database: str = "faults", gates: str = "", more: str = "", seed: int = SEED
) -> Iterator[Rig]:
    """A cluster without workers, and a collector that listens. Processes that still run at the end are killed."""
    with ExitStack() as stack:
        outside = stack.enter_context(Outside())
        own = CONFIG.format(judge=outside.judge.url, model=MODEL, gate=GATE, pager=PAGER, url=outside.pager.url, gates=gates)
        rig = Rig(Cluster(broker, front, folder, more=own + more, project=PROJECT, database=database), outside, seed)
        stack.enter_context(rig.watch)
        stack.callback(rig.kill)
        rig.collect()
        yield rig
