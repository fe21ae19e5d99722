"""Promises 1 to 3 over Kafka: a cluster under load, real faults, and nothing lost, nothing doubled, everybody told."""

import pytest
from faults import parts, processes
from faults.rig import Rig

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.real]


def test_killed_workers(lasting_rig: Rig) -> None:
    processes.workers_are_killed(lasting_rig, 3, 1)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_workers_that_come_and_go(lasting_rig: Rig) -> None:
    processes.workers_come_and_go(lasting_rig, 1, 5)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_a_worker_that_was_frozen_in_the_middle_of_a_write(lasting_rig: Rig) -> None:
    processes.a_worker_is_frozen(lasting_rig, ["before:results:2"])
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_a_killed_broker(lasting_rig: Rig) -> None:
    parts.the_broker_is_away(lasting_rig, "kill", 2)
    lasting_rig.assert_nothing_is_lost_or_doubled()


def test_a_store_that_lies_and_is_killed(lasting_rig: Rig) -> None:
    parts.the_store_lies(lasting_rig, 2)
    parts.the_store_is_killed(lasting_rig, 1, 1)
    lasting_rig.assert_nothing_is_lost_or_doubled()
