"""Promises 1 to 3 over Kafka: a cluster under load, real faults, and nothing lost, nothing doubled, everybody told."""

from collections.abc import Iterator

import pytest
from clickhouse_front import Front
from faults import scenarios
from faults.rig import Rig, a_rig
from kafka_broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.real]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("faults")
    with Broker() as broker, Front(folder / "store") as front, a_rig(broker, front, folder) as made:
        for _ in range(2):
            made.start()
        made.working(2)
        yield made


def test_killed_workers(rig: Rig) -> None:
    scenarios.workers_are_killed(rig, 3, 1)
    rig.reckon()


def test_workers_that_come_and_go(rig: Rig) -> None:
    scenarios.workers_come_and_go(rig, 1, 5)
    rig.reckon()


def test_a_worker_that_was_frozen_in_the_middle_of_a_write(rig: Rig) -> None:
    scenarios.a_worker_is_frozen(rig, ["before:results:2"])
    rig.reckon()


def test_a_killed_broker(rig: Rig) -> None:
    scenarios.the_broker_is_killed(rig, 1, 2)
    rig.reckon()


def test_a_store_that_is_away_or_lies(rig: Rig) -> None:
    scenarios.the_store_is_away(rig, 5)
    scenarios.the_store_lies(rig, 2)
    scenarios.the_store_is_killed(rig, 1, 1)
    rig.reckon()
