"""Promises 1 to 3 over Kafka: a cluster under load, real faults, and nothing lost, nothing doubled, everybody told."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_front import Front
from faults.rig import Rig, a_rig
from kafka_broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.kill]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("faults")
    with Broker() as broker, Front(folder / "store") as front, a_rig(broker, front, folder) as made:
        for _ in range(2):
            made.start()
        made.working(2)
        yield made


def test_killed_workers(rig: Rig) -> None:
    with rig.load():
        for _ in range(3):
            rig.alert()
            time.sleep(rig.chance.uniform(0.5, 2.5))
            rig.end(rig.chance.choice(rig.workers), signal.SIGKILL)
            rig.start()
            time.sleep(4)
        rig.working(2)
    rig.reckon()
