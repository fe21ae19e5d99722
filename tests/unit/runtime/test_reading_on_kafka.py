"""Record sources on Kafka: the holding that a worker makes for its partitions asks them, and its answers come back on the topic."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from opentelemetry.metrics import NoOpMeter
from worlds import T0, Log, agent, model, tool

from pipeline.apps.holdings import Holdings
from pipeline.apps.parts import Parts
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.evidence import Evidence
from pipeline.model.result import Outcome
from pipeline.model.time import SECOND
from pipeline.model.topology import ASSEMBLE, TOPICS, TRACES, Topic
from pipeline.runtime.assembling import Assembling
from pipeline.runtime.clock import ManualClock, Times
from pipeline.runtime.fence import Fence
from pipeline.runtime.record_desk import OpenSource
from pipeline.runtime.telemetry import Telemetry
from sinks.memory import MemoryStore

SETTINGS = TracegradeSettings.model_validate(
    {
        "records": {"ledger": {"sql": {"url": "sqlite://", "query": "SELECT 1 WHERE :id"}}},
        "agents": {
            "default": {
                "rubric": None,
                "checks": {
                    "records": [{"name": "on_the_ledger", "source": "ledger", "each": "refund", "key": {"id": "arguments.id"}}]
                },
            }
        },
    }
)
SPANS = [agent(0, 0, None, "a", end=T0 + 5 * SECOND), tool(0, 1, 0, "refund", fails=False), model(0, 9, 0, "done")]


class Worker:
    """A worker's assemble node on one partition, without brokers."""

    def __init__(self, log: Log, store: MemoryStore, ask: Callable[[Mapping[str, Any]], Any]) -> None:
        self.log, self.store = log, store
        self.clock = ManualClock(T0 + 30 * SECOND)
        self.fence = Fence()
        self.acknowledged: list[int] = []
        telemetry = Telemetry(NoOpMeter("test"))
        stored: Any = store
        holdings = Holdings(
            Parts(SETTINGS, telemetry, self.clock, AsyncExitStack()),
            stored,
            self._publish,
            {topic.name: 1 for topic in TOPICS},
            lambda *_: self._nobody,
            self.clock,
            telemetry,
            {"ledger": OpenSource(ask, 5, 5, 4)},
        )
        held = holdings.of(ASSEMBLE)([0], self.fence, lambda _, offset: self.acknowledged.append(offset))
        assert isinstance(held, Assembling)
        self.node = held

    async def _publish(self, topic: Topic, records: Sequence[Any]) -> None:
        if topic is TRACES:
            self.log.append(records, self.clock.now())

    async def _nobody(self, *_: Any) -> Any:
        raise AssertionError("no judge is configured")

    async def take(self, since: int = 0) -> None:
        await self.node.take(self.log.partitions[0][since:])

    async def tick(self, seconds: int) -> None:
        self.clock.advance_to(self.clock.now() + seconds * SECOND)
        await self.node.tick(Times({0: self.clock.now()}, self.clock.now()))

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - the desk tells nobody
                await asyncio.sleep(0.001)


async def test_the_answer_travels_on_the_topic_of_its_trace_and_is_stored_before_it_counts() -> None:
    async def ask(_: Mapping[str, Any]) -> Any:
        return [{"id": 1}]

    log, store = Log(TRACES), MemoryStore()
    log.append(SPANS, T0)
    worker = Worker(log, store, ask)
    await worker.node.recover()
    await worker.take()
    await worker.tick(60)
    assert store.live_runs() == []
    await worker.until(lambda: len(log.partitions[0]) == len(SPANS) + 1)
    assert store.evidence == {}, "on the topic it is safe, and nobody has stored it yet"
    assert dict(log.partitions[0][-1].headers)["kind"] == b"evidence"
    await worker.take(len(SPANS))
    await worker.tick(1)
    (run,) = store.live_runs()
    (result,) = [one for one in run.results if one.dimension == "on_the_ledger"]
    assert result.outcome is Outcome.PASS
    ((evidence,),) = [tuple(one.values()) for one in store.evidence.values()]
    assert isinstance(evidence, Evidence)
    assert worker.acknowledged == list(range(len(SPANS) + 1))


async def test_a_worker_that_loses_its_partitions_reads_no_further_and_the_next_one_asks_again() -> None:
    asked = 0

    async def hangs(_: Mapping[str, Any]) -> Any:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()

    log, store = Log(TRACES), MemoryStore()
    log.append(SPANS, T0)
    first = Worker(log, store, hangs)
    await first.node.recover()
    await first.take()
    await first.tick(60)
    await first.until(lambda: asked)
    first.fence.fall()
    await first.node.close()
    assert len(log.partitions[0]) == len(SPANS)

    async def answers(_: Mapping[str, Any]) -> Any:
        return []

    second = Worker(log, store, answers)
    second.clock.advance_to(first.clock.now())
    await second.node.recover()
    await second.tick(1)
    await second.tick(60)
    await second.until(lambda: len(log.partitions[0]) == len(SPANS) + 1)
    await second.take(len(SPANS))
    await second.tick(1)
    (run,) = store.live_runs()
    assert [one.outcome for one in run.results if one.dimension == "on_the_ledger"] == [Outcome.FAIL]
