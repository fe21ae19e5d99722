"""The same faults as in test_cluster_faults, as often and for as long as they happen in a bad week: ``make real``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_front import Front
from faults import scenarios
from faults.rig import SESSION_S, Rig, a_rig
from kafka_broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.real, pytest.mark.timeout(900)]

MOMENTS = (
    "before:spans:3",
    "after:spans:3",
    "before:results:2",
    "before:runs:2",
    "before:traces:2",
    "before:minutes:1",
    "after:trips:1",
    "after:notifications:1",
    "before:notifications:2",
)
"""In the middle of every write that a stage makes."""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Broker() as broker, Front(tmp_path / "store") as front, a_rig(broker, front, tmp_path) as made:
        for _ in range(2):
            made.start()
        made.working(2)
        yield made


def test_ten_killed_workers(rig: Rig) -> None:
    scenarios.workers_are_killed(rig, 10, SESSION_S)
    rig.reckon()


def test_a_storm_of_workers_that_come_and_go(rig: Rig) -> None:
    scenarios.workers_come_and_go(rig, 12, 15)
    rig.reckon()


def test_workers_that_were_frozen_in_the_middle_of_every_write(rig: Rig) -> None:
    scenarios.a_worker_is_frozen(rig, MOMENTS)
    rig.reckon()


def test_stages_that_break_in_the_middle_of_a_write(rig: Rig) -> None:
    scenarios.a_stage_breaks(rig, ("before:spans:4", "after:spans:4", "before:runs:2", "after:trips:1"))
    rig.reckon()


def test_a_broker_that_is_killed_and_away_for_long(rig: Rig) -> None:
    scenarios.the_broker_is_killed(rig, 2, 2)
    scenarios.the_broker_is_killed(rig, 1, 45)
    rig.reckon()
    assert rig.sender.answers["503"]


def test_a_store_that_is_away_lies_and_is_killed(rig: Rig) -> None:
    scenarios.the_store_is_away(rig, 60)
    scenarios.the_store_lies(rig, 20)
    scenarios.the_store_is_killed(rig, 3, 5)
    rig.reckon()
