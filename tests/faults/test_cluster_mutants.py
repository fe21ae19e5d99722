"""The reckoning finds what it is for: a cluster that is broken on purpose does not pass it, and one that is not passes the same faults."""

import itertools
import signal
from collections.abc import Iterator

import pytest
from faults import records
from faults.lasting import lasting
from faults.ledger import PROJECT, Sent
from faults.load import WHOLE
from faults.rig import SESSION_S, NewRig, Rig, is_stopped
from faults.sabotage import ACKNOWLEDGE_FIRST, NO_DEDUPLICATION, NO_VERSIONS, TRUST_THE_PARTITION
from serving import eventually

from pipeline.model.ids import uniform

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.real]
SAMPLED = 0.1
TRACES = 20
RUNS = 6
COMMITTED_S = 4.0
"""Commits are made every second: what is acknowledged too early is, by then."""


@pytest.fixture
def rig(new_rig: NewRig) -> Iterator[Rig]:
    with new_rig(workers=0) as made:
        yield made


def a_worker_dies_while_the_store_is_away(rig: Rig, sabotage: str = "") -> None:
    """What it had taken and could not store is delivered again, or else gone."""
    worker = rig.start(sabotage)
    rig.working(1)
    rig.cluster.front.faults(down_s=600)
    for _ in range(TRACES):
        rig.sender.send(rig.ledger.trace("agent"), *WHOLE)
    worker.says("retrying")
    lasting(COMMITTED_S)
    rig.end(worker, signal.SIGKILL)
    rig.cluster.front.faults(down_s=0)
    rig.start()
    rig.working(1)


def a_frozen_worker_writes_what_it_knew(rig: Rig, sabotage: str = "") -> None:
    """It stops before it writes the first version of a run; the next owner writes that, and a later one; then it goes on, and dies.

    The next owner is gone by then. Did anybody gain the partition after that write, they would mend it: a run that is older than the last
    version of its trace is read back. (Without versions every run is, so what the oracle says of that would say nothing here.)
    """
    frozen = rig.start(",".join(filter(None, (sabotage, "stop:before:results:1", "kill:before:traces:1"))))
    rig.working(1)
    sent = rig.ledger.trace("agent")
    rig.sender.send(sent, *WHOLE)
    eventually(lambda: is_stopped(frozen))
    other = rig.start(sabotage)
    eventually(lambda: rig.graded(sent.run_id, "no_escalation") == "pass")
    rig.sender.send(sent, 4)
    eventually(lambda: rig.graded(sent.run_id, "no_escalation") == "fail")
    rig.drain()
    rig.end(other, signal.SIGTERM)
    frozen.signal(signal.SIGCONT)
    assert frozen.process.wait(SESSION_S) == -signal.SIGKILL
    rig.workers.remove(frozen)


def the_store_lies_of_a_run(rig: Rig, sabotage: str = "") -> None:
    """F6 on a few runs that nobody judges and that nothing comes late for: each has one row, however often it is written."""
    rig.start(sabotage)
    rig.working(1)
    rig.cluster.front.faults(lie_share=0.3)
    for _ in range(RUNS):
        sent = an_unsampled_trace(rig)
        rig.sender.send(sent, *WHOLE)
        eventually(lambda sent=sent: rig.graded(sent.run_id, "no_deletion") == "pass")
    rig.cluster.front.faults(lie_share=0.0, apply_then_500=0, apply_then_close=0)
    assert rig.cluster.front.counted["apply_then_500"]


def an_unsampled_trace(rig: Rig) -> Sent:
    """A trace whose run is not judged, by its id."""
    for number in itertools.count():
        sent = rig.ledger.trace(f"agent-{number}")
        if uniform(PROJECT, sent.trace_id, "1") >= SAMPLED:
            return sent
        del rig.ledger.traces[sent.trace_id]
    raise AssertionError


def two_workers(rig: Rig, sabotage: str = "") -> None:
    for _ in range(2):
        rig.start(sabotage)
    rig.working(2)
    records.mixed_writers(rig, 12, 0.1)


def test_what_a_dead_worker_could_not_store_is_delivered_again(rig: Rig) -> None:
    a_worker_dies_while_the_store_is_away(rig)
    rig.assert_nothing_is_lost_or_doubled(anything=False)


def test_acknowledging_before_the_store_has_it_loses_spans(rig: Rig) -> None:
    """Mutant a: seen at once, by the offsets (I8), and in the end, by the ledger (I1)."""
    a_worker_dies_while_the_store_is_away(rig, ACKNOWLEDGE_FIRST)
    with pytest.raises(AssertionError, match="acknowledged spans are not stored"):
        rig.assert_nothing_is_lost_or_doubled(anything=False)
    assert rig.watch.early


def test_what_a_frozen_worker_writes_late_counts_less(rig: Rig) -> None:
    a_frozen_worker_writes_what_it_knew(rig)
    assert rig.assert_nothing_is_lost_or_doubled(anything=False).late == 1


def test_without_versions_a_frozen_worker_takes_a_run_back(rig: Rig) -> None:
    """Mutant b, the versions."""
    a_frozen_worker_writes_what_it_knew(rig, NO_VERSIONS)
    with pytest.raises(AssertionError, match=r"differs \(expected, stored\)"):
        rig.assert_nothing_is_lost_or_doubled(anything=False)


def test_what_a_store_applied_and_denied_is_there_once(rig: Rig) -> None:
    the_store_lies_of_a_run(rig)
    rig.assert_nothing_is_lost_or_doubled(anything=False)


def test_without_keys_and_tokens_a_lying_store_doubles_runs(rig: Rig) -> None:
    """Mutant b, the keys and tokens: what is written again is there again (I2)."""
    the_store_lies_of_a_run(rig, NO_DEDUPLICATION)
    with pytest.raises(AssertionError, match="not one live run for each trace"):
        rig.assert_nothing_is_lost_or_doubled(anything=False, within_s=20)


def test_a_trace_in_two_partitions_is_one_run(rig: Rig) -> None:
    two_workers(rig)
    rig.assert_nothing_is_lost_or_doubled(anything=False)


def test_trusting_the_partition_tears_traces_apart(rig: Rig) -> None:
    """Mutant e: two owners of one trace, each with half of it (I2)."""
    two_workers(rig, TRUST_THE_PARTITION)
    with pytest.raises(AssertionError):
        rig.assert_nothing_is_lost_or_doubled(anything=False, within_s=30)
