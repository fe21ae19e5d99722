"""Spans of many requests travel together, nobody waits for long, and each request hears of its own spans only."""

import asyncio
from collections.abc import Sequence
from math import ceil

import pytest
from builders import a_span
from hypothesis import given
from hypothesis import strategies as st
from unit.kafka.mock_brokers import mock_brokers
from unit.kafka.nouns import LAWS
from unit.kafka.simulated import Brokers, simulate
from unit.kafka.test_kafka_records import arrived
from unit.otlp.wire_forms import TRACE_ID, request, wire_span

from collectors.kafka.producer import KafkaProducer
from collectors.kafka.publisher import HOLD_S, SpanBatcher
from collectors.kafka.records import LARGEST_RECORD, MAX_RECORD, MAX_SPANS, Outgoing, decode, span_parts
from collectors.otlp.keys import Keys
from collectors.otlp.passing import PASSED_ON
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import Encoding
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.model.span import Span
from pipeline.model.topology import TRACES

PARTITIONS = 4


class Batcher(SpanBatcher):
    """Takes spans, for tests that look at who travels with whom."""

    async def store(self, spans: Sequence[Span]) -> None:  # type: ignore[override]
        await super().store(span_parts(spans))


def trace(number: int, count: int = 1, size: int = 0, project: str = "default") -> list[Span]:
    """Some spans of one trace."""
    text = {"text": "x" * size}
    return [a_span(f"{n:016x}", trace_id=f"{number:032x}", project=project, attributes=text) for n in range(1, count + 1)]


def partition(number: int) -> int:
    return TRACES.partition_of(trace(number)[0], PARTITIONS)


def in_partition(wanted: int, count: int) -> list[int]:
    """Numbers of traces that share a partition."""
    return [number for number in range(1, 1000) if partition(number) == wanted][:count]


def spans_in(record: Outgoing) -> list[Span]:
    return decode(arrived(record)).records


def test_nobody_is_held_longer_than_the_promised_50_ms() -> None:
    assert HOLD_S <= 0.05


def test_while_nothing_is_in_flight_spans_leave_at_once_and_together() -> None:
    async def story() -> None:
        brokers, loop = Brokers(rtt=0.005), asyncio.get_running_loop()
        batcher = Batcher(brokers, 1)
        await asyncio.gather(*(batcher.store(trace(number)) for number in range(1, 6)))
        assert loop.time() == 0.005
        assert [(sent.at, len(spans_in(sent.outgoing))) for sent in brokers.sent] == [(0.0, 5)]

    simulate(story())


def test_what_gathers_leaves_when_what_was_in_flight_has_arrived() -> None:
    async def story() -> None:
        brokers = Brokers(rtt=0.008)
        batcher = Batcher(brokers, 1)
        first = asyncio.ensure_future(batcher.store(trace(1)))
        for number in range(2, 6):
            await asyncio.sleep(0.001)
            asyncio.ensure_future(batcher.store(trace(number)))  # noqa: RUF006 - its answer is not asked for
        await first
        await asyncio.sleep(0.1)
        assert [(round(sent.at, 6), len(spans_in(sent.outgoing))) for sent in brokers.sent] == [(0.0, 1), (0.008, 4)]

    simulate(story())


def test_what_gathers_while_the_brokers_are_slow_leaves_after_20_ms() -> None:
    async def story() -> None:
        brokers = Brokers(rtt=10)
        batcher = Batcher(brokers, 1)
        waiting = [asyncio.ensure_future(batcher.store(trace(1)))]
        for number in range(2, 60):
            await asyncio.sleep(0.001)
            waiting.append(asyncio.ensure_future(batcher.store(trace(number))))
        await asyncio.gather(*waiting)
        assert [(round(sent.at, 6), len(spans_in(sent.outgoing))) for sent in brokers.sent] == [
            (0.0, 1),
            (0.021, 20),
            (0.041, 20),
            (0.061, 18),
        ]

    simulate(story())


requests = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(1, 120)), min_size=1, max_size=25)


@LAWS
@given(requests, st.sampled_from([0.001, 0.02, 1.0]))
def test_no_span_waits_longer_than_20_ms_for_others(arrivals: list[tuple[int, int, int]], rtt: float) -> None:
    async def story() -> None:
        brokers, loop = Brokers(rtt), asyncio.get_running_loop()
        batcher = Batcher(brokers, PARTITIONS)
        stored: dict[str, float] = {}

        async def ask(index: int, after: int, number: int) -> None:
            await asyncio.sleep(after / 1000)
            spans = [a_span(f"{index + 1:016x}", trace_id=f"{number:032x}")]
            stored[spans[0].span_id] = loop.time()
            await batcher.store(spans)

        await asyncio.gather(*(ask(index, after, number) for index, (after, number, _) in enumerate(arrivals)))
        left = {span.span_id: sent.at for sent in brokers.sent for span in spans_in(sent.outgoing)}
        assert left.keys() == stored.keys()
        assert max(left[one] - stored[one] for one in left) <= HOLD_S + 1e-6

    simulate(story())


@LAWS
@given(requests)
def test_spans_of_one_request_and_trace_are_in_as_few_records_as_they_fit_in(arrivals: list[tuple[int, int, int]]) -> None:
    async def story() -> None:
        brokers = Brokers(rtt=0.03)
        batcher = Batcher(brokers, PARTITIONS)

        async def ask(index: int, after: int, count: int) -> None:
            await asyncio.sleep(after / 1000)
            await batcher.store(
                [a_span(f"{n:016x}", trace_id=f"{index + 1:032x}", attributes={"t": "x" * 5000}) for n in range(1, count)]
            )

        await asyncio.gather(*(ask(index, after, 1 + count) for index, (after, _, count) in enumerate(arrivals)))
        holding: dict[str, int] = {}
        for sent in brokers.sent:
            found = spans_in(sent.outgoing)
            assert len(sent.outgoing.value) <= MAX_RECORD
            assert len(found) <= MAX_SPANS
            assert {TRACES.partition_of(span, PARTITIONS) for span in found} == {sent.outgoing.partition}
            for one in {span.trace_id for span in found}:
                holding[one] = holding.get(one, 0) + 1
        fit = len(range(5100, MAX_RECORD, 5100))
        for index, (_, __, count) in enumerate(arrivals):
            assert holding[f"{index + 1:032x}"] <= ceil(count / fit)
        assert sum(len(spans_in(sent.outgoing)) for sent in brokers.sent) == sum(count for *_, count in arrivals)

    simulate(story())


def test_a_full_record_leaves_although_others_are_in_flight() -> None:
    async def story() -> None:
        brokers = Brokers(rtt=10)
        batcher = Batcher(brokers, 1)
        waiting = [asyncio.ensure_future(batcher.store(trace(1))), asyncio.ensure_future(asyncio.sleep(0.001))]
        await waiting[1]
        waiting += [asyncio.ensure_future(batcher.store(trace(number, 50))) for number in (2, 3, 4, 5)]
        await asyncio.gather(*waiting)
        assert [(sent.at, len(spans_in(sent.outgoing))) for sent in brokers.sent] == [(0.0, 1), (0.001, 200)]

    simulate(story())


def test_projects_do_not_share_a_record() -> None:
    async def story() -> None:
        brokers = Brokers()
        batcher = Batcher(brokers, 1)
        await asyncio.gather(batcher.store(trace(1)), batcher.store(trace(1, project="shop")))
        assert [{span.project for span in spans_in(sent.outgoing)} for sent in brokers.sent] == [{"default"}, {"shop"}]

    simulate(story())


async def _answers(batcher: Batcher, asked: Sequence[list[Span]]) -> list[BaseException | None]:
    return await asyncio.gather(*(batcher.store(spans) for spans in asked), return_exceptions=True)


def test_a_failed_record_fails_exactly_the_requests_that_have_spans_in_it() -> None:
    one, other = in_partition(0, 2), in_partition(1, 2)

    async def story() -> None:
        batcher = Batcher(
            Brokers(answer=lambda record: TemporaryError("away", 3.0) if record.partition == 0 else None), PARTITIONS
        )
        asked = [trace(one[0]), trace(other[0]), [*trace(one[1]), *trace(other[1])]]
        first, second, both = await _answers(batcher, asked)
        assert (type(first), second, type(both)) == (TemporaryError, None, TemporaryError)
        assert isinstance(first, TemporaryError)
        assert first.retry_after == 3.0

    simulate(story())


@pytest.mark.parametrize(
    "poison",
    [trace(1, 1, LARGEST_RECORD), [a_span(attributes={"int": 2**63})]],
    ids=["too large", "no OTLP"],
)
def test_poison_costs_only_its_own_request(poison: list[Span]) -> None:
    async def story() -> None:
        brokers = Brokers()
        batcher = Batcher(brokers, 1)
        before, bad, after = await _answers(batcher, [trace(1), [*trace(2), *poison], trace(3)])
        assert (before, type(bad), after) == (None, PermanentError, None)
        assert [len(spans_in(sent.outgoing)) for sent in brokers.sent] == [2]

    simulate(story())


def test_what_is_refused_for_good_is_refused_only_where_it_was_alone() -> None:
    async def story() -> None:
        batcher = Batcher(Brokers(answer=lambda _: PermanentError("too large")), 1)
        assert {type(answer) for answer in await _answers(batcher, [trace(1), trace(2)])} == {TemporaryError}
        assert [type(answer) for answer in await _answers(batcher, [trace(1)])] == [PermanentError]

    simulate(story())


def test_senders_keep_their_spans_while_a_person_has_yet_to_make_the_topic() -> None:
    async def story() -> None:
        batcher = Batcher(Brokers(answer=lambda _: ConfigurationError("make the topic")), 1)
        (answer,) = await _answers(batcher, [trace(1)])
        assert isinstance(answer, TemporaryError)
        assert (str(answer), answer.retry_after) == ("make the topic", 1.0)

    simulate(story())


def test_what_may_yet_work_is_told_before_what_never_will() -> None:
    (one,), (other,) = in_partition(0, 1), in_partition(1, 1)

    def answer(record: Outgoing) -> Exception:
        return PermanentError("never") if record.partition == 0 else TemporaryError("away")

    async def story() -> None:
        (told,) = await _answers(Batcher(Brokers(answer=answer), PARTITIONS), [[*trace(one), *trace(other)]])
        assert isinstance(told, TemporaryError)

    simulate(story())


def test_above_the_limit_senders_are_asked_to_wait_until_there_is_room() -> None:
    async def story() -> None:
        brokers = Brokers(rtt=1)
        batcher = Batcher(brokers, 1, limit=100_000)
        first = asyncio.ensure_future(batcher.store(trace(1, 1, 60_000)))
        await asyncio.sleep(0.1)
        for size in (60_000, 200_000):
            with pytest.raises(TemporaryError, match="than there is room for") as caught:
                await batcher.store(trace(2, 1, size))
            assert caught.value.retry_after == 1.0
        second = asyncio.ensure_future(batcher.store(trace(3, 1, 30_000)))
        await first
        await second
        await batcher.store(trace(4, 1, 200_000))  # more than the limit, but there is nothing else
        assert batcher._bytes == 0

    simulate(story())


def test_a_sender_that_hangs_up_disturbs_nobody() -> None:
    async def story() -> None:
        brokers = Brokers(rtt=1, answer=lambda _: TemporaryError("away"))
        batcher = Batcher(brokers, 1)
        leaving = asyncio.ensure_future(batcher.store(trace(1)))
        staying = asyncio.ensure_future(batcher.store(trace(2)))
        await asyncio.sleep(0.1)
        leaving.cancel()
        with pytest.raises(TemporaryError):
            await staying
        assert (batcher._bytes, batcher._sending) == (0, set())

    simulate(story())


def test_whatever_ends_a_sending_its_requests_are_answered() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        batcher = Batcher(Brokers(rtt=1, answer=lambda _: RuntimeError("a mistake of ours")), 1)
        with pytest.raises(TemporaryError, match="interrupted"):
            await batcher.store(trace(1))
        asking = asyncio.ensure_future(batcher.store(trace(2)))
        await asyncio.sleep(0.1)
        for task in batcher._sending:
            task.cancel()
        with pytest.raises(TemporaryError, match="interrupted"):
            await asking

    simulate(story())


async def test_what_the_receiver_acknowledges_is_on_the_brokers() -> None:
    with mock_brokers() as brokers:
        brokers.topic(TRACES.name, PARTITIONS)
        async with KafkaProducer(brokers.settings, {}) as producer:
            batcher = SpanBatcher(producer, PARTITIONS)
            receiver = Receiver({PASSED_ON: batcher}, lambda: 42, Keys({}, "shop"))
            bodies = [
                request(*(wire_span(trace_id=n.to_bytes(2) + TRACE_ID[2:], span_id=s.to_bytes(8)) for s in range(1, 11)))
                for n in range(50)
            ]
            replies = await asyncio.gather(
                *(receiver.export(PASSED_ON, body.SerializeToString(), Encoding.PROTOBUF, "shop") for body in bodies)
            )
            stored = brokers.stored(TRACES.name, PARTITIONS)
    assert {reply.rejected for reply in replies} == {0}
    spans = [span for record in stored for span in decode(record).records]
    assert len({(span.trace_id, span.span_id) for span in spans}) == len(spans) == 500
    assert {(span.project, span.received_ns) for span in spans} == {("shop", 42)}
    assert all(TRACES.partition_of(span, PARTITIONS) == record.partition for record in stored for span in decode(record).records)
    assert len(stored) <= 12
