"""Shared by the tests of faults: one broker and one store for the tests of a file, and a new cluster on them for each test that asks."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from clickhouse_front import Front
from faults.rig import NewRig, Rig, a_rig
from kafka_broker import Broker


@pytest.fixture(scope="module")
def new_rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewRig]:
    numbers = itertools.count()
    folder = tmp_path_factory.mktemp("faults")
    with Broker() as broker, Front(folder / "store") as front:

        @contextmanager
        def made(workers: int = 2, **more: Any) -> Iterator[Rig]:
            _mend(broker, front)
            number = next(numbers)
            own = folder / f"{number}"
            own.mkdir()
            with a_rig(broker, front, own, database=f"faults{number}", **more) as rig, _at_work(rig, workers):
                yield rig

        yield made


def _mend(broker: Broker, front: Front) -> None:
    """Undo what a test that failed has left."""
    if not broker.running:
        broker.restart()
    if not front.running:
        front.start()
    front.faults(down_s=0, delay_ms=0, lie_share=0.0, apply_then_500=0, apply_then_close=0)
    broker.clear()


@contextmanager
def _at_work(rig: Rig, workers: int) -> Iterator[None]:
    for _ in range(workers):
        rig.start()
    if workers:
        rig.working(workers)
    yield
    # In good order, where all is well: the topics of the next rig need not wait for sessions to end.
    for one in rig.running:
        one.process.terminate()
    for one in rig.running:
        one.stop()


@pytest.fixture
def rig(new_rig: NewRig) -> Iterator[Rig]:
    with new_rig() as made:
        yield made


@pytest.fixture(scope="module")
def lasting_rig(new_rig: NewRig) -> Iterator[Rig]:
    """One for all tests of the file: each reckons with everything that was before, too."""
    with new_rig() as made:
        yield made
