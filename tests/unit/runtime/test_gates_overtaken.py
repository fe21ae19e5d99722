"""Whoever takes gates over reads back what is stored, while what the former owner still had on its way arrives between any two reads."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from gate_worlds import NAMED, SHOP, START, Destination, Faults
from opentelemetry.metrics import NoOpMeter

from pipeline.model.time import SECOND
from pipeline.model.window import Notification, Touched, Transition
from pipeline.runtime.gates import Gates
from pipeline.runtime.messenger import Messenger
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages import gate_hard
from pipeline.stages.alert import notifications
from pipeline.stages.gate_hard import Failure
from sinks.memory_gates import MemoryGateStore

FAILURE = Failure(START, "r1", "forbid", "c1", "default", SHOP, "forbid: seen")
FIRED = gate_hard.on_failures(NAMED, Gates._fresh(("default", NAMED.name, SHOP)), [FAILURE], (), START)
READS = ("gate_states", "trips", "unnotified_trips", "unconfirmed_notifications")
NEVER = len(READS) + 1
Write = Callable[[], Awaitable[None]]


class Overtaken:
    """A store in which writes of somebody else arrive, each before a read of this number."""

    def __init__(self, store: MemoryGateStore, arriving: Sequence[tuple[int, Write]]) -> None:
        self._store = store
        self._arriving = list(arriving)
        self._reads = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in READS:
            return method

        async def read(*args: Any) -> Any:
            await self.arrive(self._reads)
            self._reads += 1
            return await method(*args)

        return read

    async def arrive(self, until: int) -> None:
        while self._arriving and self._arriving[0][0] <= until:
            await self._arriving.pop(0)[1]()


@pytest.mark.parametrize("arrivals", list(itertools.combinations_with_replacement(range(NEVER + 1), 3)), ids=str)
async def test_a_run_is_named_once_and_told_of_whenever_the_former_owners_writes_arrive(arrivals: tuple[int, int, int]) -> None:
    """Trip, state, notification: written in this order, each arriving before one of the reads, after them, or never."""
    store = MemoryGateStore()
    writes: list[Write] = [
        lambda: store.write_trips(FIRED.trips),
        lambda: store.write_gate_states([FIRED.state]),
        lambda: store.write_notifications(notifications(FIRED.trips[0], ("pager",))),
    ]
    overtaken: Any = Overtaken(store, [(at, write) for at, write in zip(arrivals, writes, strict=True) if at < NEVER])
    pager = Destination(Faults())
    gates = Gates(overtaken, [NAMED], 0, 0, {"forbid": "code"})
    messenger = Messenger(overtaken, {"pager": pager}, {NAMED.name: ("pager",)}, Telemetry(NoOpMeter("test")))
    await gates.recover()
    await messenger.recover(START)
    await overtaken.arrive(len(READS))
    await gates.step([Touched("default", SHOP, START)], [FAILURE], START + SECOND)
    await messenger.announce(gates.unannounced)
    await messenger.send_due(START + SECOND)
    assert [(trip.transition, trip.run_id) for trip in await store.trips()] == [(Transition.FIRED, "r1")]
    due = Notification("default", FIRED.trips[0].trip_id, Transition.FIRED, "pager", "", 0)
    assert pager.keys == {due.idempotency_key}
