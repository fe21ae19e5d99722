"""What a collector was told beside spans is acknowledged when the brokers have it, and reaches the owner of its trace."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from assembly_law import grading
from builders import a_log_record
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from unit.kafka.simulated import Brokers
from unit.otlp.test_log_records import a_map, logs, record
from worlds import T0, World, agent, span

from collectors.feedback.desk import FeedbackDesk
from collectors.kafka.facts import FactPublisher
from collectors.kafka.publisher import KafkaPublisher, SpanBatcher
from collectors.kafka.records import Incoming, decode, span_parts
from collectors.otlp.keys import Keys
from collectors.otlp.logs import LOGS
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import Encoding
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.model.result import Feedback
from pipeline.model.run import RunClass
from pipeline.model.time import SECOND
from pipeline.model.topology import TRACES, Record, Topic

PARTITIONS = 4
TRACE = f"{1:032x}"


class Collector:
    """What a collector is made of, on brokers that only take note."""

    def __init__(self) -> None:
        self.brokers = Brokers(rtt=0.0)
        publish = KafkaPublisher(self.brokers, {TRACES.name: PARTITIONS})
        facts = FactPublisher(publish)
        self.spans = SpanBatcher(self.brokers, PARTITIONS)
        self.receiver = Receiver({LOGS: facts}, lambda: T0 + 21 * SECOND, Keys({}, "default"))
        self.desk = FeedbackDesk(facts.store, None, lambda: T0 + 3600 * SECOND)

    def arrived(self) -> list[Record]:
        """Everything that is on the topic, as a worker reads it."""
        sent = [one.outgoing for one in self.brokers.sent]
        assert len({one.partition for one in sent}) == 1, "all of a trace is in one partition"
        return [
            noun
            for offset, one in enumerate(sent)
            for noun in decode(Incoming(one.topic, one.partition, offset, T0, one.value, one.headers)).records
        ]


def a_message(index: int, name: str, body: AnyValue) -> bytes:
    sent = record(trace_id=bytes.fromhex(TRACE), span_id=index.to_bytes(8), event_name=name, body=body, time_unix_nano=T0)
    return logs(sent).SerializeToString()


async def test_spans_log_records_and_feedback_meet_at_the_owner_of_their_trace() -> None:
    collector = Collector()
    said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    await collector.spans.store(span_parts([agent(0, 0, None, "a"), span(0, 1, 0, name="chat m", **said)]))
    asked, answered = a_map(content="Where is it?"), AnyValue(string_value='{"message": {"content": "At the door."}}')
    for name, body in (("gen_ai.user.message", asked), ("gen_ai.choice", answered)):
        await collector.receiver.export(LOGS, a_message(2, name, body), Encoding.PROTOBUF, "default")
    world = World(grading(sampling={"rate": 0.0}))
    records = collector.arrived()
    await world.arrive(records)
    await world.settle()
    (run,) = world.store.live_runs()
    assert (run.run.request, run.run.answer, run.run_class) == ("Where is it?", "At the door.", RunClass.UNSAMPLED)
    await collector.desk.take(f'{{"trace_id": "{TRACE}", "value": "down"}}'.encode(), "default")
    await world.arrive(collector.arrived()[len(records) :])
    await world.settle()
    (run,) = world.store.live_runs()
    assert run.sampling.plan == "keep:thumbs_down"


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (TemporaryError("no answer", 2.0), TemporaryError),
        (PermanentError("too large"), PermanentError),
        (ConfigurationError("there is no topic"), TemporaryError),
    ],
)
async def test_trouble_is_told_so_that_the_sender_keeps_what_may_yet_be_taken(trouble: Exception, told: type[Exception]) -> None:
    async def publish(topic: Topic, records: Sequence[Any]) -> None:
        assert (topic, len(records)) == (TRACES, 1)
        raise trouble

    with pytest.raises(told, match=str(trouble)):
        await FactPublisher(publish).store([a_log_record()])


async def test_nothing_is_acknowledged_before_the_brokers_have_it() -> None:
    gate = asyncio.Event()

    async def publish(topic: Topic, records: Sequence[Any]) -> None:
        assert (topic, len(records)) == (TRACES, 1)
        await gate.wait()

    stored = asyncio.create_task(FactPublisher(publish).store([Feedback("p", TRACE, "f", 1.0)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not stored.done()
    gate.set()
    await stored
