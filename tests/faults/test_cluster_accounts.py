"""The same over Kafka, with two workers that share the traces, and for longer (I3, I5)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_front import Front
from clickhouse_front_databases import a_database
from cluster import Cluster
from faults.accounted import RECEIVER, Accounted, an_embedded, configured, outside
from faults.kinds import ONE_DIMENSION, PLAIN, JudgeOfKinds, Kind, Traffic
from faults.outside import Outside
from faults.running import Running
from faults.sabotage import NO_CLASS_ONCE
from kafka_broker import Broker

from pipeline.config.store import StoreSettings

pytestmark = [pytest.mark.kafka, pytest.mark.real, pytest.mark.timeout(900)]
DEADLINE_S = 20
TRACES = 8 * len(Kind)
RATE = 4.0


@pytest.fixture
def settings(front: Front) -> Iterator[StoreSettings]:
    with a_database(front.url) as made:
        yield made


@pytest.fixture
def running(
    empty_broker: Broker, front: Front, settings: StoreSettings, tmp_path: Path
) -> Iterator[tuple[Running, JudgeOfKinds]]:
    """A collector that listens, and no worker yet."""
    serving, judge = outside()
    with serving:
        yield from _running(empty_broker, front, settings, tmp_path, serving, judge)


def _running(
    broker: Broker, front: Front, settings: StoreSettings, folder: Path, serving: Outside, judge: JudgeOfKinds
) -> Iterator[tuple[Running, JudgeOfKinds]]:
    more = configured(serving.judge.url, DEADLINE_S)
    cluster = Cluster(broker, front, folder, more=more, project=PLAIN, database=settings.database, receiver=RECEIVER)
    made = Running(cluster, serving)
    try:
        made.collect()
        yield made, judge
    finally:
        made.kill()


def test_every_run_is_in_one_class_at_every_moment_over_kafka(
    running: tuple[Running, JudgeOfKinds], front: Front, settings: StoreSettings
) -> None:
    cluster, judge = running
    for _ in range(2):
        cluster.start()
    cluster.working(2)
    accounted = Accounted(front, settings, judge)
    accounted.run(cluster.sender.url, traces=TRACES, traces_per_s=RATE, within_s=180)
    accounted.hold()
    assert accounted.accounts.looks > 20


def test_a_class_that_is_lost_for_a_moment_is_seen_over_kafka(
    running: tuple[Running, JudgeOfKinds], front: Front, settings: StoreSettings
) -> None:
    cluster, judge = running
    cluster.start(NO_CLASS_ONCE)
    cluster.working(1)
    accounted = Accounted(front, settings, judge, Traffic((Kind.LATE,), sampled_first=False))
    accounted.run(cluster.sender.url, traces=2, traces_per_s=4)
    with pytest.raises(AssertionError, match="are in no class"):
        accounted.hold()


def test_every_run_is_in_one_class_at_every_moment_embedded(front: Front, settings: StoreSettings, tmp_path: Path) -> None:
    """The short test of ``test_accounts.py``, for longer, and with a judge that is waited for in vain."""
    serving, judge = outside()
    rubric = tmp_path / "tone.yaml"
    rubric.write_text(ONE_DIMENSION)
    with serving, an_embedded(front, settings, tmp_path, configured(serving.judge.url, DEADLINE_S, rubric)) as url:
        accounted = Accounted(front, settings, judge)
        accounted.run(url, traces=TRACES, traces_per_s=RATE, within_s=180)
        accounted.hold()
    assert accounted.accounts.looks > 20
