"""The faults that every change must stand, one at a time: ``make faults``. docs/faults.md says what each of them is."""

from pathlib import Path

import pytest
from faults import parts, processes, records
from faults.embedded import assert_up_ends_with_nothing_lost
from faults.lasting import lasting
from faults.rig import Rig

from pipeline.runtime.telemetry import Metric

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.real, pytest.mark.faults, pytest.mark.timeout(600)]


def test_f1_workers_that_are_killed_at_every_point_of_their_work(lasting_rig: Rig) -> None:
    processes.workers_die_at(lasting_rig, processes.AT_WORK)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_f3_collectors_that_are_killed_between_the_brokers_answer_and_their_own(lasting_rig: Rig) -> None:
    processes.collectors_die_before_they_answer(lasting_rig, 3)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_f5_a_store_that_is_away_or_hangs(lasting_rig: Rig) -> None:
    parts.the_store_is_away(lasting_rig, 15)
    parts.the_store_hangs(lasting_rig, 10)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_f6_a_store_that_applies_and_answers_failure(lasting_rig: Rig) -> None:
    parts.the_store_lies_often(lasting_rig, 0.2, 15)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_f14_requests_that_come_again_and_topics_that_are_read_again(lasting_rig: Rig) -> None:
    records.everything_comes_again(lasting_rig, 5, [1])
    lasting_rig.assert_nothing_is_lost_or_doubled()
    lasting_rig.read_again()


def test_f17_records_that_nobody_can_read(lasting_rig: Rig) -> None:
    with lasting_rig.load():
        lasting_rig.alert()
        records.poison(lasting_rig, 2 * len(records.POISONS))
        lasting(6.0)
    lasting_rig.assert_nothing_is_lost_or_doubled()
    assert lasting_rig.outside.metered.total(Metric.DEAD_LETTERS, "worker") >= 2 * len(records.POISONS)


def test_f18_writers_that_place_a_trace_in_two_partitions(lasting_rig: Rig) -> None:
    records.mixed_writers(lasting_rig, 20, 0.3)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_f17_f18_the_same_on_a_topic_that_collectors_write(lasting_rig: Rig) -> None:
    records.foreign_topic(lasting_rig)
    processes.bridges_die_before_they_commit(lasting_rig, 1)
    records.foreign_poison(lasting_rig, 2 * len(records.FOREIGN_POISONS))
    records.mixed_writers(lasting_rig, 20, 0.3, records.FOREIGN)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_f20_processes_that_are_told_to_end_under_load(lasting_rig: Rig) -> None:
    processes.each_is_told_to_end(lasting_rig, 1)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_f20_up_that_is_told_to_end_under_load(tmp_path: Path) -> None:
    assert_up_ends_with_nothing_lost(tmp_path, 2)
