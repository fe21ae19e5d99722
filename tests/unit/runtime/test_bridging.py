"""A bridge: what it carries, what it buries, and what it says is done, in simulated time."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from opentelemetry.metrics import NoOpMeter
from unit.kafka.foreign import BAD_SPANS, GOOD, NOW, POISON, a_record, otlp, request_of
from unit.kafka.nouns import spans_of
from unit.kafka.simulated import simulate

from collectors.kafka.bridge_consumer import Arrived
from collectors.kafka.bridge_offsets import Offsets, Taken
from collectors.kafka.bridge_records import ForeignRecord
from collectors.kafka.bridge_share import SEEN, BadShare
from collectors.otlp.encode import Part
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.topology import DeadLetter
from pipeline.runtime.bridging import DRAIN_S, Bridge, TooManyBadError
from pipeline.runtime.clock import ManualClock
from pipeline.runtime.telemetry import Telemetry

PLACE = ("otlp_spans", 0)


class World:
    """A source of records and what is behind the bridge."""

    def __init__(self, values: Sequence[bytes | None], *, limit: int = 1 << 20, share: float = 0.5) -> None:
        self.records = [a_record(value, offset) for offset, value in enumerate(values)]
        self.offsets = Offsets()
        self.share = BadShare(share)
        self.took = 0
        self.looks: list[bool] = []
        self.committed = 0
        self.stored: list[Part] = []
        self.letters: list[DeadLetter] = []
        self.story: list[str] = []
        self.rtt = 0.005
        self.trouble: Callable[[Sequence[Part]], Exception | None] = lambda _: None
        self.letter_trouble: list[Exception] = []
        self.telemetry = Telemetry(NoOpMeter("test"))
        self.stop = asyncio.Event()
        self.bridge = Bridge(self, {"otlp_spans": "shop"}, self, self.keep, ManualClock(NOW), self.telemetry, in_flight=limit)

    async def take(self, *, hold: bool) -> list[Arrived]:
        """As the consumer does: a commit first, then what is there."""
        self.commit()
        self.looks.append(hold)
        await asyncio.sleep(0.1 if hold or self.took == len(self.records) else 0.001)
        if hold or self.took == len(self.records):
            return []
        record: ForeignRecord = self.records[self.took]
        self.took += 1
        taken = Taken(record.offset, record.timestamp_ns)
        self.offsets.took(PLACE, taken)
        return [Arrived(record, taken, self.share)]

    def commit(self) -> None:
        for due in self.offsets.committable().values():
            self.committed = due.offset
            self.story.append(f"commit {due.offset}")

    async def store(self, spans: Sequence[Part]) -> None:
        await asyncio.sleep(self.rtt)
        error = self.trouble(spans)
        if error is not None:
            raise error
        self.stored += spans
        self.story.append("stored")

    async def keep(self, letters: Sequence[DeadLetter]) -> None:
        await asyncio.sleep(self.rtt)
        if self.letter_trouble:
            raise self.letter_trouble.pop()
        self.letters += letters
        self.story.append("kept")

    async def run(self, seconds: float) -> None:
        """Run so long, then stop."""
        running = asyncio.ensure_future(self.bridge.run(self.stop))
        await asyncio.sleep(seconds)
        self.stop.set()
        try:
            await running
        finally:
            self.commit()

    @property
    def names(self) -> list[str]:
        return [span.name for span in spans_of(self.stored)]


def told(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    simulate(story())


def test_what_is_stored_is_committed_and_nothing_else_is() -> None:
    async def story() -> None:
        world = World([otlp("a"), otlp("b"), otlp("c")])
        await world.run(1)
        assert (world.names, world.committed) == (["a", "b", "c"], 3)
        assert world.story.index("commit 1" if "commit 1" in world.story else "commit 3") > world.story.index("stored")
        assert {span.project for span in world.stored} == {"shop"}

    told(story)


def test_a_watch_is_called_whatever_comes() -> None:
    async def story() -> None:
        world = World([])
        looks: list[float] = []
        world.bridge._watch = lambda: looks.append(asyncio.get_running_loop().time())
        await world.run(5)
        assert len(looks) > 20

    told(story)


def test_temporary_trouble_is_waited_out_while_the_source_is_polled_and_nothing_is_committed() -> None:
    async def story() -> None:
        world = World([otlp("a"), otlp("b")])
        until = asyncio.get_running_loop().time() + 30
        world.trouble = lambda _: TemporaryError("away") if asyncio.get_running_loop().time() < until else None
        running = asyncio.ensure_future(world.bridge.run(world.stop))
        await asyncio.sleep(29)
        assert (world.committed, world.stored) == (0, [])
        assert len(world.looks) > 200, "a member that is not polled loses its partitions"
        await asyncio.sleep(30)
        world.stop.set()
        await running
        assert (sorted(world.names), world.committed) == (["a", "b"], 2)

    told(story)


def test_one_record_that_waits_holds_the_offsets_of_those_after_it() -> None:
    async def story() -> None:
        world = World([otlp("slow"), *[otlp(f"quick{at}") for at in range(5)]])
        world.trouble = lambda spans: TemporaryError("away") if spans_of(spans)[0].name == "slow" else None
        running = asyncio.ensure_future(world.bridge.run(world.stop))
        await asyncio.sleep(5)
        assert (len(world.stored), world.committed) == (5, 0)
        world.trouble = lambda _: None
        await asyncio.sleep(15)
        assert world.committed == 6
        world.stop.set()
        await running

    told(story)


def test_reading_pauses_while_too_much_is_under_way() -> None:
    async def story() -> None:
        world = World([otlp("x" * 1000)] * 100, limit=10_000)
        world.rtt = 5
        running = asyncio.ensure_future(world.bridge.run(world.stop))
        await asyncio.sleep(4)
        assert world.took < 12
        assert world.looks[-1], "it goes on asking for more"
        await asyncio.sleep(100)
        assert world.committed == 100
        world.stop.set()
        await running

    told(story)


@pytest.mark.parametrize("value", POISON.values(), ids=POISON)
def test_poison_goes_to_the_dead_letters_with_its_origin_and_its_bytes_before_it_is_committed(value: bytes | None) -> None:
    async def story() -> None:
        world = World([value, otlp("good")])
        await world.run(2)
        (letter,) = world.letters
        assert letter.origin == "bridge: otlp_spans[0]@0"
        assert letter.reason
        assert (letter.project, letter.received_ns) == ("shop", NOW - 5)
        assert (value or b"") in (letter.body, b"") or letter.body in (value or b"")
        assert (world.names, world.committed) == (["good"], 2)
        assert world.telemetry.snapshot()["tracegrade.dead_letters bridge"] == 1
        assert world.telemetry.snapshot()["tracegrade.bridge.records refused"] == 1

    told(story)


def test_a_dead_letter_that_cannot_be_kept_yet_holds_its_record() -> None:
    async def story() -> None:
        world = World([b"garbage"])
        world.letter_trouble = [TemporaryError("away")] * 3
        running = asyncio.ensure_future(world.bridge.run(world.stop))
        await asyncio.sleep(0.3)
        assert world.committed == 0
        await asyncio.sleep(5)
        assert (world.committed, len(world.letters)) == (1, 1)
        world.stop.set()
        await running

    told(story)


def test_refused_spans_are_kept_and_counted_beside_their_neighbours() -> None:
    async def story() -> None:
        world = World([request_of(GOOD, BAD_SPANS["cut short"], BAD_SPANS["no ids"])])
        await world.run(2)
        assert (world.names, world.committed) == (["odd"], 1)
        assert len(world.letters) == 2
        snapshot = world.telemetry.snapshot()
        assert snapshot["tracegrade.spans.received"] == 1
        assert snapshot["tracegrade.spans.rejected"] == 2

    told(story)


def test_a_span_that_no_broker_takes_costs_no_other_span_its_place() -> None:
    async def story() -> None:
        world = World([otlp("a", "b", "never", "c")])
        world.trouble = lambda spans: PermanentError("too large") if "never" in [span.name for span in spans_of(spans)] else None
        await world.run(2)
        assert (sorted(world.names), world.committed) == (["a", "b", "c"], 1)
        assert [letter.reason for letter in world.letters] == ["too large"]
        assert world.telemetry.snapshot()["tracegrade.spans.rejected"] == 1

    told(story)


def test_most_of_it_bad_stops_the_bridge_and_nothing_from_there_on_is_committed() -> None:
    async def story() -> None:
        world = World([*[otlp("good")] * 50, *[b"garbage"] * (SEEN // 2 + 1), *[otlp("later")] * 50])
        running = asyncio.ensure_future(world.run(60))
        with pytest.raises(TooManyBadError, match=r"of the last 200 records of otlp_spans\[0\] 100 could not be read"):
            await running
        assert (len(world.letters), world.committed) == (SEEN // 2, 50 + SEEN // 2)
        assert "later" not in world.names

    told(story)


def test_a_bridge_that_is_started_again_buries_nothing_more() -> None:
    async def story() -> None:
        world = World([b"garbage"] * 3)
        before = BadShare(0.5)
        while before.note(bad=True):
            pass
        world.share = BadShare(0.5, before.mark)
        with pytest.raises(TooManyBadError):
            await world.run(1)
        assert (world.letters, world.committed) == ([], 0)

    told(story)


def test_a_stop_waits_for_what_is_under_way_and_reads_nothing_more() -> None:
    async def story() -> None:
        world = World([otlp(f"{at}") for at in range(50)])
        world.rtt = 2
        running = asyncio.ensure_future(world.bridge.run(world.stop))
        await asyncio.sleep(0.0301)
        world.stop.set()
        took = world.took
        await running
        world.commit()
        assert world.took <= took + 1
        assert len(world.stored) == world.committed == world.took

    told(story)


def test_a_stop_while_the_brokers_are_away_ends_in_time_and_commits_nothing_that_is_not_there() -> None:
    async def story() -> None:
        world = World([otlp("a")])
        world.trouble = lambda _: TemporaryError("away")
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(world.bridge.run(world.stop))
        await asyncio.sleep(1)
        began = loop.time()
        world.stop.set()
        await running
        world.commit()
        assert loop.time() - began < DRAIN_S + 1
        assert (world.committed, world.stored) == (0, [])

    told(story)
