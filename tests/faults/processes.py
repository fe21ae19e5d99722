"""Faults of processes: they are killed, frozen, broken and told to end, as often and for as long as the caller says."""

import shutil
import signal
import socket
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cluster import Process
from faults.lasting import lasting
from faults.ledger import REFUSED
from faults.records import foreign_traces, poison
from faults.rig import Rig
from faults.running import STAGES
from faults.sabotage import INSERTS, POINTS
from serving import eventually

END_S: Final = 15.0
"""What a process that is told to end may take."""
FEW: Final = 12
"""Spans that are always on their way."""
AT_WORK: Final = [name for name in (*POINTS, *INSERTS) if not name.startswith(("recv.", "bridge."))]
"""The points at which a worker is killed."""


def workers_are_killed(rig: Rig, times: int, calm_s: float) -> None:
    """``kill -9`` a worker of two at any moment, with an alert due; another takes its place."""
    with rig.load():
        for _ in range(times):
            rig.alert()
            lasting(rig.chance.uniform(0.5, 2.5))
            rig.end(rig.chance.choice(rig.workers), signal.SIGKILL)
            rig.start().says("working")
            lasting(rig.chance.uniform(0.0, calm_s))
        rig.working(2)


def workers_are_killed_every(rig: Rig, times: int, every_s: float) -> list[float]:
    """F1: the same, so many seconds apart and whatever the others are about. Returns the moments, in seconds from the beginning."""
    moments = []
    with rig.load():
        began = time.monotonic()
        for one in range(times):
            rig.alert()
            lasting(began + one * every_s + rig.chance.uniform(0.0, every_s / 2) - time.monotonic())
            rig.end(rig.chance.choice(rig.workers), signal.SIGKILL)
            moments.append(round(time.monotonic() - began, 1))
            rig.start()
        lasting(began + times * every_s - time.monotonic())
    rig.working(2)
    return moments


def workers_die_at(rig: Rig, points: Sequence[str], times: int = 1) -> None:
    """F1: ``kill -9`` at each of these points of the work; the points of gates need alerts, and that of dead letters poison."""
    for _ in range(times):
        with rig.load():
            rig.end(rig.workers[0], signal.SIGTERM)
            for point in points:
                # The second passing and not the first alone, where passings are many.
                doomed = rig.start(f"kill:{point}:{rig.chance.randint(1, 2) if point.startswith('work.') else 1}")
                began = time.monotonic()
                rig.dies(doomed, meanwhile=partial(poison, rig, 1) if point.startswith("dlq.") else rig.alert, every_s=2.0)
                rig.measured[point] = time.monotonic() - began
            rig.start()
        rig.working(2)


def all_workers_are_killed(rig: Rig, pause_s: float) -> None:
    """F2: nobody works for a while; those who come then catch up at twice the rate at which records arrive, at least."""
    with rig.load():
        for worker in list(rig.workers):
            rig.end(worker, signal.SIGKILL)
        lasting(pause_s)
        before = rig.stored()
        for _ in range(2):
            rig.start()
        eventually(lambda: rig.stored() > before)
        began, stored, arrived = time.monotonic(), rig.stored(), rig.ledger.spans
        behind = arrived - stored
        eventually(
            lambda: rig.ledger.spans - rig.stored() <= FEW,
            2 * pause_s,
            lambda: f"still {rig.ledger.spans - rig.stored()} spans behind\n{rig.tails()}",
        )
        took = max(time.monotonic() - began, 0.2)
        rate, ingest = (rig.stored() - stored) / took, (rig.ledger.spans - arrived) / took
        rig.measured |= {"paused": pause_s, "caught up within": took, "spans/s then": rate, "spans/s that came": ingest}
        assert behind > FEW
        assert rate >= 2 * ingest
    rig.working(2)


def collectors_die_before_they_answer(rig: Rig, times: int) -> None:
    """F3: ``kill -9`` between the brokers' acknowledgement and the answer; the sender does not know, and sends again."""
    unknown = rig.ledger.unknown
    with rig.load():
        assert rig.collector is not None
        rig.end(rig.collector, signal.SIGTERM)
        for _ in range(times):
            doomed = rig.collect(f"kill:recv.after_produce_before_reply:{rig.chance.randint(2, 10)}")
            rig.dies(doomed)
        rig.collect()
        rig.alert()
        lasting(2.0)
    assert rig.ledger.unknown - unknown >= times


def bridges_die_before_they_commit(rig: Rig, times: int) -> None:
    """F1 for bridges: ``kill -9`` when what a record had is with the brokers; the next one carries it again."""
    with rig.load():
        for _ in range(times):
            doomed = rig.bridge(f"kill:bridge.after_produce_before_commit:{rig.chance.randint(2, 6)}")
            rig.dies(doomed, meanwhile=partial(foreign_traces, rig, 3))
        rig.bridge().says("bridging")


def workers_come_and_go(rig: Rig, times: int, every_s: float) -> None:
    """F12: SIGTERM under load, a new worker in its place, over and over."""
    with rig.load():
        for _ in range(times):
            began = time.monotonic()
            rig.alert()
            rig.end(rig.workers[0], signal.SIGTERM)
            lasting(every_s / 3)
            rig.start().says("working")
            lasting(began + every_s - time.monotonic())
        rig.working(2)


def a_worker_is_frozen(rig: Rig, moments: Iterable[str]) -> None:
    """F13: a worker stops in the middle of its work, longer than its session; its partitions go elsewhere, and it goes on."""
    with rig.load():
        for moment in moments:
            rig.end(rig.workers[0], signal.SIGTERM)
            frozen = rig.start(f"stop:{moment}")
            _freeze(rig, frozen)
        rig.working(2)


def _freeze(rig: Rig, frozen: Process) -> None:
    rig.struck(frozen)
    eventually(lambda: not _owns(rig, frozen))
    lasting(1.0)
    frozen.signal(signal.SIGCONT)
    lasting(2.0)


def workers_sleep(rig: Rig, times: int, seconds: float) -> None:
    """F13: the same at any moment, for several sessions."""
    with rig.load():
        for _ in range(times):
            asleep = rig.chance.choice(rig.workers)
            rig.alert()
            lasting(rig.chance.uniform(0.0, 1.0))
            asleep.signal(signal.SIGSTOP)
            try:
                lasting(seconds / 2)
                rig.alert()
                lasting(seconds / 2)
            finally:
                asleep.signal(signal.SIGCONT)
            rig.done["SIGSTOP"] += 1
            rig.working(2)


def a_stage_breaks(rig: Rig, moments: Iterable[str]) -> None:
    """An exception that nobody foresaw, in the middle of work: the stage starts over, and is killed before it has caught up."""
    with rig.load():
        for moment in moments:
            rig.end(rig.workers[0], signal.SIGTERM)
            broken = rig.start(f"raise:{moment}")
            rig.struck(broken, "a stage starts over from what is stored")
            lasting(2.0)
            rig.end(broken, signal.SIGKILL)
            rig.start().says("working")
        rig.working(2)


def each_is_told_to_end(rig: Rig, times: int) -> None:
    """F20: SIGTERM to each under load: what is in hand is finished, senders get an answer, and nothing is left behind."""
    with rig.load():
        for _ in range(times):
            _the_collector_ends(rig)
            rig.alert()
            worker = rig.workers[0]
            _in_time(rig, worker)
            assert not _owns(rig, worker), "a worker that ended is a member still"
            rig.start().says("working")
            for other in list(rig.others):
                _in_time(rig, other)
                rig.others.append(rig.process(other.arguments[0]))
        rig.working(2)


def _the_collector_ends(rig: Rig) -> None:
    collector, url = rig.collector, urlsplit(rig.sender.url)
    assert collector is not None
    began = time.monotonic()
    _in_time(rig, collector)
    hung_up = [one for one in rig.sender.between(began - 1.0, began - 0.05) if one.status == 0]
    assert not hung_up, f"requests in flight got no answer: {hung_up}"
    with socket.socket() as tried:
        assert tried.connect_ex((url.hostname, url.port)), "somebody listens after the end"
    rig.collect()


def _in_time(rig: Rig, process: Process) -> None:
    name = f"{process.arguments[0]} ends within"
    seconds = rig.end(process, signal.SIGTERM)
    rig.measured[name] = max(rig.measured.get(name, 0.0), seconds)
    assert seconds <= END_S, f"{name} {seconds} s:\n{process.tail()}"


def _owns(rig: Rig, process: Process) -> bool:
    owners = (owner for stage in STAGES for owner in rig.cluster.owners(stage))
    return any(f":{process.pid} " in f"{owner} " for owner in owners)


def workers_find_garbage(rig: Rig, folder: Path) -> None:
    """F21: whatever lies where a worker keeps files: rubbish under all names, in use and left over. State is in the store alone."""
    with rig.load():
        rig.end(rig.workers[0], signal.SIGTERM)
        worker = rig.start(TMPDIR=str(folder))
        worker.says("working")
        made = sorted(folder.glob("tracegrade-*"))
        assert made, "a worker keeps no files here any more: then nothing of it can be corrupt"
        for one in made:
            _spoil(one)
        lasting(2.0)
        rig.end(worker, signal.SIGKILL)
        assert any(folder.iterdir()), "nothing was left over"
        rig.start(TMPDIR=str(folder)).says("working")
        rig.done["files spoiled"] += len(made)
        rig.working(2)


def _spoil(folder: Path) -> None:
    for path in list(folder.rglob("*")):
        if path.is_file():
            path.write_bytes(REFUSED.encode() * 1000)
    for name in ("v1/tables/rubbish.db", "checkpoint", "offsets"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\0garbage\xff" * 100)
