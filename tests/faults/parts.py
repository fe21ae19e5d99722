"""Faults of what is behind: brokers and stores that are away, slow, full or lie."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from cluster import Process
from faults.disk import Disk
from faults.lasting import lasting
from faults.ledger import HEAD
from faults.load import WHOLE
from faults.rig import FRESH_S, Rig
from faults.running import STAGES
from serving import eventually

PROGRESS_S: Final = 60.0
"""How long after the start of a broker or a store until something more is done with."""
RETRY_S: Final = 2
HANG_S: Final = 10.0
"""A sender is told before it gives up by itself."""
ASKED_S: Final = 15.0
"""So long down, and senders must have been told."""


def the_broker_is_away(rig: Rig, how: str, down_s: float) -> None:
    """F4: ``kill`` or ``stop`` of the broker under load: no success without it, no hang, and all goes on when it is back."""
    with rig.load():
        rig.alert()
        lasting(rig.chance.uniform(0.5, 2.0))
        getattr(rig.cluster.broker, how)()
        began = time.monotonic()
        lasting(down_s)
        ended = time.monotonic()
        before = sum(rig.watch.progress.values())
        rig.cluster.broker.start()
        rig.done[f"broker {how}"] += 1
        _goes_on(rig, before, "broker back, progress after")
        rig.alert()
        rig.measured["new run after"] = rig.fresh(PROGRESS_S)
    _told_to_wait(rig, began, ended)
    rig.working(2)


def workers_change_while_the_broker_is_away(rig: Rig, times: int) -> None:
    """F4 and F12 together: workers are told to end when there is no broker to hear of it; others come when it is back."""
    with rig.load():
        for _ in range(times):
            rig.alert()
            rig.cluster.broker.kill()
            took = rig.end(rig.workers[0], signal.SIGTERM)
            rig.measured["worker ends without broker within"] = max(
                rig.measured.get("worker ends without broker within", 0.0), took
            )
            rig.cluster.broker.start()
            rig.start().says("working")
        rig.working(2)


def _goes_on(rig: Rig, before: int, name: str) -> None:
    began = time.monotonic()
    eventually(lambda: sum(rig.watch.progress.values()) > before, PROGRESS_S, lambda: f"nothing was committed\n{rig.tails()}")
    rig.measured[name] = max(rig.measured.get(name, 0.0), time.monotonic() - began)


def _told_to_wait(rig: Rig, began: float, ended: float) -> None:
    """No answer before the end is a success; each is a 503 with a time to wait, before the sender gives up."""
    answers = [one for one in rig.sender.between(began, ended) if one.ended <= ended]
    assert not [one for one in answers if one.status == 200], "success was answered while the broker was away"
    assert all(one.status == 503 and int(one.retry_after or "99") <= RETRY_S for one in answers), answers[:3]
    longest = max((one.ended - one.began for one in answers), default=0.0)
    assert longest <= HANG_S
    assert answers or ended - began < ASKED_S, "nobody was told anything"
    rig.measured["longest 503"] = max(rig.measured.get("longest 503", 0.0), longest)


@contextmanager
def nobody_leaves(rig: Rig) -> Iterator[None]:
    """Hold that workers keep their partitions: they wait for the store, and the group need not know."""
    eventually(lambda: _taken(rig) == _given(rig))
    given, gains = _given(rig), _gains(rig)
    yield
    assert _given(rig) == given, f"partitions went elsewhere: {given} and then {_given(rig)}"
    assert _gains(rig) == gains, "the group was on the move"


def _given(rig: Rig) -> set[tuple[str, tuple[int, ...]]]:
    """What the group has given to its members, by stage."""
    return {(stage, tuple(some)) for stage in STAGES for some in rig.cluster.owners(stage).values()}


def _taken(rig: Rig) -> set[tuple[str, tuple[int, ...]]]:
    """What the workers have said they own, last: read back, and worked on."""
    last = {(worker.pid, one["stage"]): tuple(one["partitions"]) for worker in rig.workers for one in _taking(worker)}
    return {(stage, some) for (_, stage), some in last.items()}


def _gains(rig: Rig) -> int:
    return sum(1 for worker in rig.workers for _ in _taking(worker))


def _taking(worker: Process) -> Iterator[dict[str, Any]]:
    return (one for one in worker.told if one.get("event") == "partitions owned")


def behind(seconds: float) -> float:
    """Within how many seconds a new run has its scores when records have waited for so long: they are before it, in the order of offsets.

    They came at the rate of the load, and are worked off at twice that rate or more (F2), so in half the time in which they came.
    """
    return FRESH_S + seconds / 2


def the_store_is_away(rig: Rig, down_s: float) -> None:
    """F5: the store refuses everything for a while."""
    with rig.load():
        rig.alert()
        with nobody_leaves(rig):
            rig.cluster.front.faults(down_s=down_s)
            rig.done["store down"] += 1
            lasting(down_s / 2)
            rig.alert()
            lasting(down_s / 2)
        rig.measured["store back, new run after"] = rig.fresh(behind(down_s))


def the_store_is_slow(rig: Rig, delay_ms: int, seconds: float) -> None:
    """F5, F11: everything that is asked of the store takes longer; lag grows, memory does not."""
    with rig.load():
        rig.alert()
        with nobody_leaves(rig):
            rig.cluster.front.faults(delay_ms=delay_ms)
            rig.done[f"store {delay_ms} ms late"] += 1
            lasting(seconds)
            rig.measured[f"lag at {delay_ms} ms"] = sum(rig.cluster.backlog().values())
            rig.cluster.front.faults(delay_ms=0)
        rig.measured["store quick, new run after"] = rig.fresh(behind(seconds))


def the_store_hangs(rig: Rig, seconds: float) -> None:
    """F5: the store takes connections and says nothing."""
    with rig.load():
        rig.alert()
        with nobody_leaves(rig):
            front = rig.cluster.front.pid
            os.kill(front, signal.SIGSTOP)
            try:
                lasting(seconds)
            finally:
                os.kill(front, signal.SIGCONT)
            rig.done["store hung"] += 1
        rig.measured["store awake, new run after"] = rig.fresh(behind(seconds))


def the_store_lies(rig: Rig, times: int) -> None:
    """F6: inserts that are applied and answered 500, or not at all: two in a row each time, so that a repetition meets it too."""
    with rig.load():
        for fault in ("apply_then_500", "apply_then_close"):
            rig.alert()
            for _ in range(times):
                lied = rig.cluster.front.faults(**{fault: 2}).get(fault, 0) + 2
                eventually(lambda fault=fault, lied=lied: rig.cluster.front.counted.get(fault, 0) >= lied)
                rig.done[fault] += 2


def the_store_lies_often(rig: Rig, share: float, seconds: float) -> None:
    """F6: this share of all inserts is applied and answered 500, or by closing the connection."""
    with rig.load():
        before = rig.cluster.front.faults(lie_share=share)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            rig.alert()
            lasting(min(10.0, seconds / 2))
        after = rig.cluster.front.faults(lie_share=0.0, apply_then_500=0, apply_then_close=0)
    for fault in ("apply_then_500", "apply_then_close"):
        lied = after.get(fault, 0) - before.get(fault, 0)
        assert lied, f"the store never lied as {fault}"
        rig.done[fault] += lied


def the_store_forgets(rig: Rig, tokens: int) -> None:
    """Have the store compare an insert with so few before it that a repetition may find none that is like it (reliability D7)."""
    front, database = rig.cluster.front, rig.cluster.settings.store.database
    for (table,) in front.look(f"SELECT name FROM system.tables WHERE database = '{database}'"):  # noqa: S608 - a name of ours
        front.look(f"ALTER TABLE {database}.{table} MODIFY SETTING non_replicated_deduplication_window = {tokens}")
    rig.done["window of tokens"] = tokens


def the_store_is_killed(rig: Rig, times: int, down_s: float) -> None:
    """``kill -9`` of the store under load, and a start on what it left."""
    with rig.load():
        for _ in range(times):
            rig.alert()
            lasting(rig.chance.uniform(0.5, 2.0))
            rig.cluster.front.kill()
            rig.done["store killed"] += 1
            lasting(down_s)
            rig.cluster.front.start()
            lasting(1.0)


def the_store_has_no_room(rig: Rig, disk: Disk, seconds: float, mib: int) -> None:
    """F9: the disk of the store is full, and grows some time later; nothing is acknowledged that is not stored."""
    with rig.load():
        rig.alert()
        lasting(2.0)
        disk.fill()
        stored = rig.stored()
        lasting(seconds)
        rig.measured["spans stored without room"] = rig.stored() - stored
        assert any(one.get("event") == "retrying" for worker in rig.workers for one in worker.told), "the disk was not missed"
        disk.make_room(mib)
        rig.done["store's disk full"] += 1
        rig.measured["room again, new run after"] = rig.fresh(PROGRESS_S)


def the_broker_has_no_room(rig: Rig, disk: Disk, seconds: float, mib: int) -> None:
    """F10: the disk of the broker is full: it ends by itself, as its only disk is gone. It grows, and the broker is started."""
    with rig.load():
        rig.alert()
        lasting(2.0)
        disk.fill()
        eventually(lambda: not rig.cluster.broker.running)
        began = time.monotonic()
        lasting(seconds)
        ended = time.monotonic()
        disk.make_room(mib)
        before = sum(rig.watch.progress.values())
        rig.cluster.broker.restart()
        rig.done["broker's disk full"] += 1
        _goes_on(rig, before, "broker has room, progress after")
        rig.measured["new run after"] = rig.fresh(PROGRESS_S)
    _told_to_wait(rig, began, ended)
    rig.working(2)


def a_giant_trace(rig: Rig, spans: int, at_once: int) -> None:
    """F11: one trace as large as no other; the rest of the world does not wait for it."""
    giant = rig.ledger.trace("giant")
    with rig.load():
        rig.sender.send(giant, *WHOLE)
        began = time.monotonic()
        for first in range(5, spans + 2, at_once):
            rig.sender.send(giant, *range(first, min(first + at_once, spans + 2)))
        rig.measured |= {"giant sent within": time.monotonic() - began, "new run beside it after": rig.fresh()}
    assert len(giant.acknowledged) == spans
    assert HEAD in giant.acknowledged
    rig.done["spans of one trace"] = spans
