"""The reckoning finds what it is for: a cluster that is broken on purpose does not pass it, and one that is not passes the same faults."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_front import Front
from faults.load import WHOLE
from faults.rig import SESSION_S, Rig, a_rig, is_stopped
from faults.sabotage import ACKNOWLEDGE_FIRST, NO_VERSIONS
from kafka_broker import Broker
from serving import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.real]
TRACES = 20
COMMITTED_S = 4.0
"""Commits are made every second."""


@pytest.fixture
def rig(empty_broker: Broker, tmp_path: Path) -> Iterator[Rig]:
    with Front(tmp_path / "store") as front, a_rig(empty_broker, front, tmp_path) as made:
        yield made


def a_worker_dies_while_the_store_is_away(rig: Rig, sabotage: str = "") -> None:
    """What it had taken and could not store is delivered again, or else gone."""
    worker = rig.start(sabotage)
    rig.working(1)
    rig.cluster.front.faults(down_s=600)
    for _ in range(TRACES):
        rig.sender.send(rig.ledger.trace("agent"), *WHOLE)
    worker.says("retrying")
    until = time.monotonic() + COMMITTED_S
    while rig.cluster.backlog()["assemble"] == TRACES and time.monotonic() < until:
        time.sleep(0.1)
    rig.end(worker, signal.SIGKILL)
    rig.cluster.front.faults(down_s=0)
    rig.start()
    rig.working(1)


def a_frozen_worker_writes_what_it_knew(rig: Rig, sabotage: str = "") -> None:
    """It stops before it writes the first version of a run; the next owner writes that, and a later one; then it goes on, and dies.

    Did it live, it would join again, and whoever owned the trace then would mend it.
    """
    frozen = rig.start(",".join(filter(None, (sabotage, "stop:before:results:1", "kill:before:traces:1"))))
    rig.working(1)
    sent = rig.ledger.trace("agent")
    rig.sender.send(sent, *WHOLE)
    eventually(lambda: is_stopped(frozen))
    rig.start(sabotage)
    eventually(lambda: rig.graded(sent.run_id, "no_escalation") == "pass")
    rig.sender.send(sent, 4)
    eventually(lambda: rig.graded(sent.run_id, "no_escalation") == "fail")
    frozen.signal(signal.SIGCONT)
    assert frozen.process.wait(SESSION_S) == -signal.SIGKILL
    rig.workers.remove(frozen)
    rig.working(1)


def test_what_a_dead_worker_could_not_store_is_delivered_again(rig: Rig) -> None:
    a_worker_dies_while_the_store_is_away(rig)
    rig.reckon()


def test_acknowledging_before_the_store_has_it_loses_spans(rig: Rig) -> None:
    a_worker_dies_while_the_store_is_away(rig, ACKNOWLEDGE_FIRST)
    with pytest.raises(AssertionError, match="acknowledged spans are not stored"):
        rig.reckon()


def test_what_a_frozen_worker_writes_late_counts_less(rig: Rig) -> None:
    a_frozen_worker_writes_what_it_knew(rig)
    assert rig.reckon().late == 1


def test_without_versions_a_frozen_worker_takes_a_run_back(rig: Rig) -> None:
    a_frozen_worker_writes_what_it_knew(rig, NO_VERSIONS)
    with pytest.raises(AssertionError, match="differs \\(expected, stored\\)"):
        rig.reckon()
