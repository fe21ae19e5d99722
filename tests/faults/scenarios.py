"""Scenarios: faults done to a rig under load, as often and for as long as the caller says."""

import signal
import time
from collections.abc import Iterable

from cluster import Process
from faults.rig import Rig
from serving import eventually


def workers_are_killed(rig: Rig, times: int, calm_s: float) -> None:
    """``kill -9`` a worker of two at any moment, with an alert due; another takes its place."""
    with rig.load():
        for _ in range(times):
            rig.alert()
            time.sleep(rig.chance.uniform(0.5, 2.5))
            rig.end(rig.chance.choice(rig.workers), signal.SIGKILL)
            rig.start().says("working")
            time.sleep(rig.chance.uniform(0.0, calm_s))
        rig.working(2)


def workers_come_and_go(rig: Rig, times: int, every_s: float) -> None:
    """SIGTERM under load, a new worker in its place, over and over."""
    with rig.load():
        for _ in range(times):
            began = time.monotonic()
            rig.alert()
            rig.end(rig.workers[0], signal.SIGTERM)
            time.sleep(every_s / 3)
            rig.start().says("working")
            time.sleep(max(0.0, began + every_s - time.monotonic()))
        rig.working(2)


def a_worker_is_frozen(rig: Rig, moments: Iterable[str]) -> None:
    """A worker stops in the middle of its work, longer than its session; its partitions go elsewhere, and it goes on."""
    with rig.load():
        for moment in moments:
            rig.end(rig.workers[0], signal.SIGTERM)
            frozen = rig.start(f"stop:{moment}")
            _freeze(rig, frozen)
        rig.working(2)


def a_stage_breaks(rig: Rig, moments: Iterable[str]) -> None:
    """An exception that nobody foresaw, in the middle of work: the stage starts over, and is killed before it has caught up."""
    with rig.load():
        for moment in moments:
            rig.end(rig.workers[0], signal.SIGTERM)
            broken = rig.start(f"raise:{moment}")
            rig.struck(broken, "a stage starts over from what is stored")
            time.sleep(2.0)
            rig.end(broken, signal.SIGKILL)
            rig.start().says("working")
        rig.working(2)


def _freeze(rig: Rig, frozen: Process) -> None:
    rig.struck(frozen)
    eventually(lambda: all(not _owns(rig, frozen.pid, stage) for stage in ("assemble", "judge", "gate")))
    time.sleep(1.0)
    frozen.signal(signal.SIGCONT)
    time.sleep(2.0)


def _owns(rig: Rig, pid: int, stage: str) -> bool:
    return any(f":{pid} " in f"{owner} " for owner in rig.cluster.owners(stage))


def the_broker_is_killed(rig: Rig, times: int, down_s: float) -> None:
    """``kill -9`` of the broker under load: what is not acknowledged is answered retryable or not at all, and sent again."""
    with rig.load():
        for _ in range(times):
            rig.alert()
            time.sleep(rig.chance.uniform(0.5, 2.0))
            rig.cluster.broker.kill()
            rig.done["broker killed"] += 1
            time.sleep(down_s)
            rig.cluster.broker.start()
            rig.alert()
            time.sleep(2.0)
    rig.working(2)


def the_store_is_away(rig: Rig, down_s: float) -> None:
    """The store refuses everything for a while."""
    with rig.load():
        rig.alert()
        rig.cluster.front.faults(down_s=down_s)
        rig.done["store down"] += 1
        time.sleep(down_s / 2)
        rig.alert()
        time.sleep(down_s / 2 + 1.0)


def the_store_lies(rig: Rig, times: int) -> None:
    """Inserts that are applied and answered 500, or not at all: two in a row each time, so that a repetition meets it too."""
    with rig.load():
        for fault in ("apply_then_500", "apply_then_close"):
            rig.alert()
            for _ in range(times):
                lied = rig.cluster.front.faults(**{fault: 2}).get(fault, 0) + 2
                eventually(lambda fault=fault, lied=lied: rig.cluster.front.counted.get(fault, 0) >= lied)
                rig.done[fault] += 2


def the_store_is_killed(rig: Rig, times: int, down_s: float) -> None:
    """``kill -9`` of the store under load, and a start on what it left."""
    with rig.load():
        for _ in range(times):
            rig.alert()
            time.sleep(rig.chance.uniform(0.5, 2.0))
            rig.cluster.front.kill()
            rig.done["store killed"] += 1
            time.sleep(down_s)
            rig.cluster.front.start()
            time.sleep(1.0)
