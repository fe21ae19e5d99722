"""The same faults as in test_faults.py and all others, as often and for as long as they happen in a bad week: ``make faults-full``.

F1 is run from many seeds, and its failures are counted. ``FAULTS_SEED=7 make faults-full PYTEST="-k seeds"`` runs the seventh alone.
"""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from clickhouse_front import Front
from faults import parts, processes, records
from faults.disk import a_small_disk
from faults.lasting import lasting
from faults.load import WHOLE
from faults.rig import SESSION_S, NewRig, Rig, a_rig
from kafka_broker import Broker
from serving import eventually

from pipeline.model.time import MINUTE, SECOND, minute_of
from pipeline.runtime.clock import SystemClock
from pipeline.runtime.telemetry import Metric

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.faults_full, pytest.mark.timeout(900)]

SEEDS = range(1, 21)
KILLS, APART_S = 3, 8.0
MOMENTS = (
    "before:spans:3",
    "after:spans:3",
    "before:results:2",
    "before:traces:2",
    "before:minutes:1",
    "after:notifications:1",
    "before:notifications:2",
)
"""In the middle of every write that a stage makes, as far as no point has a name of its own."""
SLIPPING = (
    ", {name: slipping, kind: floor, agent: slipping, dimension: no_deletion, raise_below: 0.5, clear_above: 0.6, window: 1m,"
    " min_n: 2, min_n_effective: 1, notify: []}"
)


@pytest.mark.timeout(2400)
def test_f1_twenty_seeds(new_rig: NewRig) -> None:
    asked = os.environ.get("FAULTS_SEED")
    seeds = [int(asked)] if asked else list(SEEDS)
    failures: dict[int, str] = {}
    for seed in seeds:
        moments: list[float] = []
        try:
            with new_rig(seed=seed) as rig:
                moments = processes.workers_are_killed_every(rig, KILLS, APART_S)
                rig.assert_nothing_is_lost_or_doubled()
        except AssertionError as error:
            failures[seed] = str(error)[:2000]
        print(f"seed {seed}: killed after {moments} s: {'FAILED' if seed in failures else 'held'}")  # noqa: T201
    print(f"F1: {len(failures)} failures of {len(seeds)} seeds with {KILLS} kills each, {APART_S:.0f} s apart")  # noqa: T201
    assert not failures


def test_f1_every_point_three_times(rig: Rig) -> None:
    processes.workers_die_at(rig, processes.AT_WORK, 3)
    rig.assert_nothing_is_lost_or_doubled()


def test_f2_nobody_works_for_two_minutes(rig: Rig) -> None:
    processes.all_workers_are_killed(rig, 120)
    rig.alert()
    rig.assert_nothing_is_lost_or_doubled()


def test_f3_ten_collectors(rig: Rig) -> None:
    processes.collectors_die_before_they_answer(rig, 10)
    rig.assert_nothing_is_lost_or_doubled()


def test_f4_a_broker_that_restarts_dies_and_is_away(rig: Rig) -> None:
    parts.the_broker_is_away(rig, "stop", 20)
    parts.the_broker_is_away(rig, "kill", 2)
    parts.the_broker_is_away(rig, "kill", 150)
    rig.assert_nothing_is_lost_or_doubled()


def test_f5_a_store_that_is_away_slow_or_hangs(rig: Rig) -> None:
    parts.the_store_is_away(rig, 150)
    parts.the_store_is_slow(rig, 5000, 45)
    parts.the_store_hangs(rig, 75)
    parts.the_store_is_killed(rig, 2, 5)
    rig.assert_nothing_is_lost_or_doubled()


def test_f6_a_store_that_lies_about_a_fifth_of_all_inserts(rig: Rig) -> None:
    parts.the_store_lies_often(rig, 0.2, 90)
    rig.assert_nothing_is_lost_or_doubled()
    parts.the_store_forgets(rig, 10)
    parts.the_store_lies_often(rig, 0.2, 60)
    rig.assert_nothing_is_lost_or_doubled()


@pytest.mark.timeout(400)
def test_f9_f10_disks_that_are_full(tmp_path: Path) -> None:
    with ExitStack() as stack:
        broker = Broker()
        stores = stack.enter_context(a_small_disk(tmp_path / "store", 200))
        topics = stack.enter_context(a_small_disk(broker.data, 200))
        stack.enter_context(broker)
        front = stack.enter_context(Front(stores.path / "data"))
        rig = stack.enter_context(a_rig(broker, front, tmp_path))
        for _ in range(2):
            rig.start()
        rig.working(2)
        parts.the_store_has_no_room(rig, stores, 20, 600)
        rig.assert_nothing_is_lost_or_doubled()
        parts.the_broker_has_no_room(rig, topics, 20, 600)
        rig.assert_nothing_is_lost_or_doubled()


def test_f11_a_slow_consumer_and_a_giant(rig: Rig) -> None:
    parts.the_store_is_slow(rig, 200, 90)
    parts.a_giant_trace(rig, 20_000, 500)
    rig.assert_nothing_is_lost_or_doubled()


def test_f12_a_storm_of_workers(rig: Rig) -> None:
    processes.workers_come_and_go(rig, 16, 15)
    rig.assert_nothing_is_lost_or_doubled()


def test_f13_workers_that_sleep_or_stop_in_the_middle_of_a_write(rig: Rig) -> None:
    processes.workers_sleep(rig, 3, 4 * SESSION_S)
    processes.a_worker_is_frozen(rig, MOMENTS)
    rig.assert_nothing_is_lost_or_doubled()


def test_two_faults_at_once(rig: Rig) -> None:
    rig.cluster.front.faults(lie_share=0.2)
    processes.workers_sleep(rig, 2, 2 * SESSION_S)
    rig.cluster.front.faults(lie_share=0.0, apply_then_500=0, apply_then_close=0)
    parts.workers_change_while_the_broker_is_away(rig, 3)
    rig.assert_nothing_is_lost_or_doubled()


def test_stages_that_break_in_the_middle_of_a_write(rig: Rig) -> None:
    processes.a_stage_breaks(rig, ("before:spans:4", "before:runs:2", "after:trips:1"))
    rig.assert_nothing_is_lost_or_doubled()


def test_f14_everything_again_after_a_minute(rig: Rig) -> None:
    rig.alert()
    records.everything_comes_again(rig, 10, [1, 60])
    rig.assert_nothing_is_lost_or_doubled()
    rig.read_again()
    rig.assert_nothing_is_lost_or_doubled()


def test_f16_late_heads_and_spans(rig: Rig) -> None:
    rig.alert()
    records.late_data(rig, 12)
    rig.assert_nothing_is_lost_or_doubled()


def test_f16_a_span_after_its_window_was_gated_fires_nothing_again(new_rig: NewRig) -> None:
    with new_rig(gates=SLIPPING) as rig:
        ended = SystemClock().now()
        failing = [rig.ledger.trace("slipping", fails=True, ended_ns=ended) for _ in range(3)]
        for sent in failing:
            rig.sender.send(sent, *WHOLE)
        over_s = (minute_of(ended) + MINUTE - ended) / SECOND
        with rig.load():
            lasting(over_s + 30)
            eventually(lambda: _trips(rig) == 1)
            for sent in failing[:2]:
                rig.sender.send(sent, 4)
            rig.sender.send(rig.ledger.trace("slipping", ended_ns=ended), *WHOLE)
            eventually(lambda: all(rig.graded(sent.run_id, "no_escalation") == "fail" for sent in failing[:2]))
            lasting(10)
        rig.assert_nothing_is_lost_or_doubled()
        assert _trips(rig) == 1


def _trips(rig: Rig) -> int:
    table = f"{rig.cluster.settings.store.database}.trips"
    ((count,),) = rig.cluster.front.look(f"SELECT count() FROM {table} FINAL WHERE gate = 'slipping'")  # noqa: S608 - a name of ours
    return int(count)


def test_f17_one_record_of_a_hundred_is_poison(rig: Rig) -> None:
    with rig.load(20.0):
        rig.alert()
        for _ in range(8):
            records.poison(rig, 4)
            lasting(5.0)
    rig.assert_nothing_is_lost_or_doubled()
    assert rig.outside.metered.total(Metric.DEAD_LETTERS, "worker") == rig.ledger.poisons


def test_f18_mixed_writers(rig: Rig) -> None:
    rig.alert()
    records.foreign_topic(rig)
    processes.bridges_die_before_they_commit(rig, 5)
    records.mixed_writers(rig, 120, 0.3)
    records.mixed_writers(rig, 120, 0.3, records.FOREIGN)
    records.foreign_poison(rig, 60)
    rig.assert_nothing_is_lost_or_doubled()


def test_f20_three_times(rig: Rig) -> None:
    records.foreign_topic(rig)
    rig.bridge().says("bridging")
    processes.each_is_told_to_end(rig, 3)
    records.mixed_writers(rig, 20, 0.1, records.FOREIGN)
    rig.assert_nothing_is_lost_or_doubled()


def test_f21_garbage_where_workers_keep_files(rig: Rig, tmp_path: Path) -> None:
    processes.workers_find_garbage(rig, tmp_path)
    rig.alert()
    rig.assert_nothing_is_lost_or_doubled()
