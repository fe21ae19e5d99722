"""An accepted span is a stored span, and what is stored and not yet folded holds the owner's clock back (promise 1, design section 4)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from builders import T0, a_log_record, a_span
from unit.runtime.turns import a_while, until

from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.result import Feedback
from pipeline.model.span import Link, Span
from pipeline.model.time import MINUTE, SECOND
from pipeline.runtime import intake as module
from pipeline.runtime.clock import ManualClock
from pipeline.runtime.intake import Accepted, Intake


class Store:
    """A store whose inserts wait until they are let go, and then work or fail."""

    def __init__(self) -> None:
        self.begun: list[list[Accepted]] = []
        self.stored: list[Accepted] = []
        self.trouble: deque[BaseException] = deque()
        self.poison: Span | None = None
        self._goes = asyncio.Event()

    def let_go(self) -> None:
        self._goes.set()

    async def insert(self, spans: Sequence[Accepted]) -> None:
        self.begun.append(list(spans))
        await self._goes.wait()
        if self.trouble:
            raise self.trouble.popleft()
        if self.poison in spans:
            raise PermanentError("the store cannot hold this")
        self.stored.extend(spans)


class World:
    def __init__(self) -> None:
        self.store = Store()
        self.clock = ManualClock(T0 + MINUTE)
        self.handed: list[list[Accepted]] = []
        self.intake = Intake(self.store.insert, self._take, self.clock)

    async def _take(self, spans: Sequence[Accepted]) -> None:
        assert all(span in self.store.stored for span in spans), "handed over before it was stored"
        self.handed.append(list(spans))


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    world = World()
    running = asyncio.create_task(world.intake.run())
    try:
        yield world
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def spans(first: int, count: int = 1, received_ns: int = T0) -> list[Span]:
    return [a_span(f"{first + index:016x}", received_ns=received_ns) for index in range(count)]


async def test_a_request_is_answered_only_after_the_insert_that_holds_its_spans() -> None:
    async with a_world() as world:
        request = asyncio.create_task(world.intake.store(spans(1)))
        await until(lambda: world.store.begun)
        await a_while()
        assert not request.done()
        assert world.handed == []
        world.store.let_go()
        await request
        assert world.store.stored == spans(1)
        await until(lambda: world.handed == [spans(1)])


async def test_requests_that_come_during_an_insert_share_the_next() -> None:
    async with a_world() as world:
        requests = [asyncio.create_task(world.intake.store(spans(1)))]
        await until(lambda: world.store.begun)
        requests += [asyncio.create_task(world.intake.store(spans(number))) for number in range(2, 12)]
        await a_while()
        world.store.let_go()
        await asyncio.gather(*requests)
        assert [len(batch) for batch in world.store.begun] == [1, 10]
        assert world.handed == [spans(1), spans(2, 10)], "in the order in which they came"


async def test_an_insert_has_an_upper_size_unless_one_request_alone_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INSERT", 4)
    async with a_world() as world:
        world.store.let_go()
        sizes = (3, 1, 1, 9, 2, 2)
        await asyncio.gather(*(world.intake.store(spans(100 * number, size)) for number, size in enumerate(sizes)))
        assert [len(batch) for batch in world.store.begun] == [4, 1, 9, 4]


@pytest.mark.parametrize("trouble", [TemporaryError("disk full", retry_after=7.0), RuntimeError("a bug"), KeyError("x")])
async def test_trouble_reaches_every_request_of_the_insert_as_temporary_and_the_next_insert_works(trouble: Exception) -> None:
    async with a_world() as world:
        world.store.trouble.append(trouble)
        requests = [asyncio.create_task(world.intake.store(spans(number))) for number in range(3)]
        await until(lambda: world.store.begun)
        world.store.let_go()
        answers = await asyncio.gather(*requests, return_exceptions=True)
        assert len(world.store.begun) == 1
        assert [type(answer) for answer in answers] == [TemporaryError] * 3
        assert all(isinstance(answer, TemporaryError) and answer.retry_after for answer in answers)
        assert world.handed == []
        assert not world.intake.busy
        await world.intake.store(spans(9))
        assert world.store.stored == spans(9)


async def test_a_request_that_the_store_will_never_take_does_not_cost_the_others_theirs() -> None:
    async with a_world() as world:
        world.store.let_go()
        (world.store.poison,) = spans(2)
        requests = [asyncio.create_task(world.intake.store(spans(number))) for number in range(1, 5)]
        answers = await asyncio.gather(*requests, return_exceptions=True)
        assert [type(answer) for answer in answers] == [type(None), PermanentError, type(None), type(None)]
        assert world.store.stored == [*spans(1), *spans(3, 2)]
        await until(lambda: len(world.handed) == 3)
        world.intake.folded(3)
        assert not world.intake.busy
        assert world.intake.now() == world.clock.now()


async def test_senders_are_asked_to_wait_while_the_backlog_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKLOG", 3)
    async with a_world() as world:
        waiting = [asyncio.create_task(world.intake.store(spans(1, 2))), asyncio.create_task(world.intake.store(spans(3, 2)))]
        await until(lambda: world.store.begun)
        with pytest.raises(TemporaryError, match="backlog"):
            await world.intake.store(spans(5))
        world.store.let_go()
        await asyncio.gather(*waiting)
        with pytest.raises(TemporaryError, match="backlog"):
            await world.intake.store(spans(5))  # stored is not folded
        world.intake.folded(2)
        await world.intake.store(spans(5))


async def test_spans_log_records_and_feedback_share_an_insert_and_hold_the_clock_alike() -> None:
    async with a_world() as world:
        first = [a_log_record(received_ns=T0 + SECOND)]
        second = [Feedback("default", "ab" * 16, "f", 1.0, received_ns=T0 + 2 * SECOND)]
        world.store.let_go()
        requests = [asyncio.create_task(world.intake.store(some)) for some in (first, second, spans(1, 2, T0 + 3 * SECOND))]
        await asyncio.gather(*requests)
        assert [type(one).__name__ for one in world.store.stored] == ["LogRecord", "Feedback", "Span", "Span"]
        assert world.intake.now() == T0 + SECOND
        world.intake.folded(1)
        await a_while()
        assert world.intake.busy
        world.intake.folded(3)
        assert not world.intake.busy
        assert world.intake.now() == world.clock.now()


async def test_a_sender_that_went_away_does_not_stop_the_insert() -> None:
    async with a_world() as world:
        gone, other = (asyncio.create_task(world.intake.store(spans(number))) for number in (1, 2))
        await until(lambda: world.store.begun)
        gone.cancel()
        await a_while()
        assert gone.cancelled()
        world.store.let_go()
        await other
        assert world.store.stored == spans(1, 2)
        await until(lambda: world.handed == [spans(1, 2)])


async def test_the_owners_clock_waits_for_what_is_on_its_way_and_catches_up_when_it_is_folded() -> None:
    async with a_world() as world:
        intake, clock = world.intake, world.clock
        assert intake.now() == clock.now()
        first = asyncio.create_task(intake.store(spans(1, 2, T0)))
        await until(lambda: world.store.begun)
        assert intake.now() == T0, "while it is inserted"
        second = asyncio.create_task(intake.store(spans(3, 3, T0 + 5 * SECOND)))
        await a_while()
        world.store.let_go()
        await asyncio.gather(first, second)
        clock.advance_to(T0 + 10 * MINUTE)
        assert intake.now() == T0, "while it is stored and not folded"
        intake.folded(1)
        assert intake.now() == T0, "while any of it is not folded"
        intake.folded(1)
        assert intake.now() == T0 + 5 * SECOND, "what came next holds it now"
        assert intake.busy
        intake.folded(3)
        assert intake.now() == clock.now()
        assert not intake.busy


async def test_a_request_that_waits_for_its_turn_holds_the_clock_too() -> None:
    async with a_world() as world:
        waiting = [asyncio.create_task(world.intake.store(spans(1, 1, T0 + 9 * SECOND)))]
        await until(lambda: world.store.begun)
        waiting.append(asyncio.create_task(world.intake.store(spans(2, 1, T0 + SECOND))))
        await a_while()
        assert world.intake.now() == T0 + SECOND
        world.store.let_go()
        await asyncio.gather(*waiting)


async def test_spans_of_several_inserts_are_folded_at_once() -> None:
    async with a_world() as world:
        world.store.let_go()
        await world.intake.store(spans(1, 2))
        await world.intake.store(spans(3, 2, T0 + SECOND))
        world.intake.folded(3)
        assert world.intake.now() == T0 + SECOND
        world.intake.folded(1)
        assert world.intake.now() == world.clock.now()


async def test_an_insert_that_failed_holds_no_clock() -> None:
    async with a_world() as world:
        world.store.let_go()
        world.store.trouble.extend([TemporaryError("later")])
        await asyncio.gather(world.intake.store(spans(1)), return_exceptions=True)
        assert world.intake.now() == world.clock.now()


async def test_a_request_without_spans_is_answered_and_holds_no_clock() -> None:
    async with a_world() as world:
        await world.intake.store([])
        world.clock.advance_to(T0 + 5 * MINUTE)
        assert world.store.begun == []
        assert world.intake.now() == world.clock.now()


async def test_senders_hear_that_nothing_is_stored_when_the_intake_stops() -> None:
    async with a_world() as world:
        requests = [asyncio.create_task(world.intake.store(spans(1)))]
        await until(lambda: world.store.begun)
        requests.append(asyncio.create_task(world.intake.store(spans(2))))
        await a_while()
    answers = await asyncio.gather(*requests, return_exceptions=True)
    assert [type(answer) for answer in answers] == [TemporaryError, TemporaryError]
    assert not world.intake.busy


async def test_what_a_carrier_says_of_another_trace_is_stored_with_it_and_counted_as_folded_with_it() -> None:
    said = {"annotations.0.annotation.name": "tone", "annotations.0.annotation.label": "thumbs_down"}
    carrier = a_span("00000000000000f1", links=(Link("cd" * 16, "00000000000000c1"),), attributes=said)
    async with a_world() as world:
        world.store.let_go()
        await world.intake.store([carrier])
        (span, feedback) = world.store.stored
        assert span == carrier
        assert isinstance(feedback, Feedback)
        assert (feedback.trace_id, feedback.span_id, feedback.value) == ("cd" * 16, "00000000000000c1", -1.0)
        await until(lambda: world.handed)
        world.intake.folded(len(world.handed[0]))
        assert not world.intake.busy
