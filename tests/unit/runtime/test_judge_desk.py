"""The judge works beside the pipeline: what it cannot say in time costs its own dimension and nothing else (promise 6)."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.metrics import NoOpMeter
from unit.runtime.turns import a_while, until
from worlds import T0, verdict_of

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.model.result import JudgeRequest, Judgment
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.topology import TRACES, Topic
from pipeline.runtime import guard
from pipeline.runtime.clock import ManualClock
from pipeline.runtime.desk import JudgeDesk
from pipeline.runtime.telemetry import Telemetry

REQUEST = JudgeRequest(
    project="default",
    trace_id="ab" * 16,
    run_id="cd" * 16,
    agent="refunds",
    run_version=4,
    transcript_hash="t1",
    transcript="…",
    dimensions=(("support", "c1"), ("tone", "c2")),
    plan="rate:1:1",
    inclusion_probability=1.0,
    requested_ns=T0,
    deadline_ns=T0 + 10 * MINUTE,
)


class World:
    """A desk with a judge that answers at once unless it is told how to fail, or held."""

    def __init__(self, concurrency: int = 8) -> None:
        self.clock = ManualClock(T0)
        self.asked: list[tuple[str, str]] = []
        """(transcript, dimension) of every question."""
        self.at_once = self.most_at_once = 0
        self.fails: defaultdict[str, deque[Exception]] = defaultdict(deque)
        self.answers = asyncio.Event()
        self.answers.set()
        self.publish_fails: deque[Exception] = deque()
        self.given_back: list[Judgment] = []
        self.telemetry = Telemetry(NoOpMeter("test"))
        self.desk = JudgeDesk(self._ask, self._publish, self.clock, self.telemetry, concurrency)

    async def _ask(self, request: JudgeRequest, dimension: str, contract: str) -> Judgment:
        self.asked.append((request.transcript_hash, dimension))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.answers.wait()
            if self.fails[dimension]:
                raise self.fails[dimension].popleft()
        finally:
            self.at_once -= 1
        return verdict_of(request, dimension, contract)

    async def _publish(self, topic: Topic, records: Sequence[Judgment]) -> None:
        assert topic is TRACES
        if self.publish_fails:
            raise self.publish_fails.popleft()
        self.given_back.extend(records)

    @property
    def heard(self) -> list[str]:
        """Dimensions of which the owner heard."""
        return sorted(judgment.dimension for judgment in self.given_back)

    async def judged(self, request: JudgeRequest = REQUEST) -> None:
        """Take a request and wait for all that comes of it."""
        self.desk.take(request)
        await until(lambda: not self.desk.busy)


class Pauses:
    """Stands in for asyncio.sleep: keeps what was asked for, and lets a manual clock go on instead."""

    def __init__(self, patch: pytest.MonkeyPatch, clock: ManualClock) -> None:
        self.taken: list[float] = []
        self._turn = asyncio.sleep
        self._clock = clock
        patch.setattr(asyncio, "sleep", self)

    async def __call__(self, seconds: float, result: Any = None) -> Any:
        if seconds:
            self.taken.append(seconds)
            self._clock.advance_to(self._clock.now() + int(seconds * SECOND))
        return await self._turn(0, result)


async def test_a_judgment_is_given_back_and_counted() -> None:
    world = World()
    await world.judged()
    assert world.heard == ["support", "tone"]
    assert sum(count for name, count in world.telemetry.snapshot().items() if name.startswith("tracegrade.judgments")) == 2


async def test_a_question_that_is_being_asked_is_not_asked_again() -> None:
    world = World()
    world.answers.clear()
    world.desk.take(REQUEST)
    world.desk.take(REQUEST)
    world.desk.take(replace(REQUEST, run_version=8, dimensions=(("tone", "c2"), ("support", "c9"))))
    await until(lambda: len(world.asked) == 3)
    await a_while()
    assert sorted(dimension for _, dimension in world.asked) == ["support", "support", "tone"], "another contract asks anew"
    world.desk.take(replace(REQUEST, transcript_hash="t2"))
    await until(lambda: len(world.asked) == 5)  # another transcript is another question
    world.answers.set()
    await until(lambda: not world.desk.busy)
    await world.judged()
    assert len(world.asked) == 7, "what was answered may be asked again: the judge knows its answer"


async def test_no_more_questions_are_asked_at_once_than_allowed() -> None:
    world = World(concurrency=2)
    world.answers.clear()
    for number in range(3):
        world.desk.take(replace(REQUEST, transcript_hash=f"t{number}"))
    await a_while()
    world.answers.set()
    await until(lambda: not world.desk.busy)
    assert world.most_at_once == 2
    assert len(world.given_back) == 6


async def test_temporary_trouble_is_waited_out_for_as_long_as_the_judge_says(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    pauses = Pauses(monkeypatch, world.clock)
    world.fails["tone"].extend([TemporaryError("429", retry_after=17.0), TemporaryError("429", retry_after=5.0)])
    await world.judged()
    for pause, asked in zip(pauses.taken, [17.0, 5.0], strict=True):
        assert asked <= pause <= 1.1 * asked, "in full, and a little more so that not all come back at once"
    assert world.heard == ["support", "tone"]


async def test_unasked_the_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    pauses = Pauses(monkeypatch, world.clock)
    world.fails["tone"].extend([TemporaryError("503")] * 9)
    await world.judged()
    for pause, most in zip(pauses.taken, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0], strict=True):
        assert most / 2 <= pause <= most
    assert world.heard == ["support", "tone"]


async def test_what_is_answered_does_not_wait_for_a_dimension_that_is_in_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    heard_at: list[list[str]] = []
    turn = asyncio.sleep

    async def pause(seconds: float) -> None:
        if seconds:
            heard_at.append(world.heard)
        await turn(0)

    monkeypatch.setattr(asyncio, "sleep", pause)
    world.fails["tone"].extend([TemporaryError("503")] * 2)
    await world.judged()
    assert heard_at == [["support"], ["support"]]
    assert [dimension for _, dimension in world.asked].count("support") == 1


async def test_nobody_is_asked_after_the_deadline() -> None:
    world = World()
    world.clock.advance_to(REQUEST.deadline_ns)
    await world.judged()
    assert world.asked == []
    assert world.given_back == []


async def test_who_waits_for_a_slot_until_the_deadline_is_not_asked() -> None:
    world = World(concurrency=1)
    world.answers.clear()
    world.desk.take(REQUEST)
    await until(lambda: world.asked)
    world.clock.advance_to(REQUEST.deadline_ns)
    world.answers.set()
    await until(lambda: not world.desk.busy)
    assert len(world.asked) == 1


async def test_a_judge_that_stays_away_is_given_up_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    pauses = Pauses(monkeypatch, world.clock)
    for dimension in ("support", "tone"):
        world.fails[dimension].extend([TemporaryError("503", retry_after=60.0)] * 100)
    await world.judged()
    assert world.given_back == []
    assert len(pauses.taken) == 9, "a pause that ends with the deadline is not begun"
    assert world.clock.now() < REQUEST.deadline_ns
    assert not world.desk.busy


LATER = replace(REQUEST, requested_ns=T0 + 5 * MINUTE, deadline_ns=T0 + 15 * MINUTE)
"""The same questions after a restart of the run's owner."""


async def test_a_question_that_is_asked_anew_while_it_is_open_has_the_later_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    Pauses(monkeypatch, world.clock)
    world.fails["tone"].extend([TemporaryError("503", retry_after=60.0)] * 12)
    task = world.desk.take(REQUEST)
    await until(lambda: bool(world.asked))
    assert world.desk.take(LATER) is None, "nothing is asked twice at once"
    await until(lambda: not world.desk.busy)
    assert world.heard == ["support", "tone"]
    assert REQUEST.deadline_ns < world.clock.now() < LATER.deadline_ns
    assert task is not None
    assert task.done(), "what acknowledges the first request waits for the answer too"


async def test_a_repeated_request_of_before_takes_no_time_from_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    Pauses(monkeypatch, world.clock)
    world.fails["tone"].extend([TemporaryError("503", retry_after=60.0)] * 12)
    world.desk.take(LATER)
    world.desk.take(REQUEST)
    await until(lambda: not world.desk.busy)
    assert world.heard == ["support", "tone"]


async def test_only_the_questions_that_are_asked_anew_have_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    Pauses(monkeypatch, world.clock)
    for dimension in ("support", "tone"):
        world.fails[dimension].extend([TemporaryError("503", retry_after=60.0)] * 12)
    world.desk.take(REQUEST)
    world.desk.take(replace(LATER, dimensions=(("tone", "c2"),)))
    await until(lambda: not world.desk.busy)
    assert world.heard == ["tone"]


async def test_who_waits_for_a_slot_has_the_later_deadline_too() -> None:
    world = World(concurrency=1)
    world.answers.clear()
    world.desk.take(REQUEST)
    await until(lambda: bool(world.asked))
    world.desk.take(LATER)
    world.clock.advance_to(REQUEST.deadline_ns)
    world.answers.set()
    await until(lambda: not world.desk.busy)
    assert world.heard == ["support", "tone"]


async def test_a_question_that_was_too_late_to_be_asked_and_has_more_time_now_is_asked() -> None:
    world = World(concurrency=1)
    world.answers.clear()
    world.desk.take(replace(REQUEST, deadline_ns=LATER.deadline_ns, dimensions=(("support", "c1"),)))
    await until(lambda: bool(world.asked))
    world.desk.take(replace(REQUEST, dimensions=(("tone", "c2"), ("style", "c3"))))
    world.desk.take(replace(LATER, dimensions=(("style", "c3"),)))
    world.clock.advance_to(REQUEST.deadline_ns)
    world.answers.set()
    await until(lambda: ("t1", "style") in world.asked)  # by now it is too late for the other one
    world.desk.take(LATER)
    await until(lambda: not world.desk.busy)
    assert world.heard == ["style", "support", "tone"]


async def test_a_question_that_was_given_up_is_begun_anew_while_others_of_its_request_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    pauses = Pauses(monkeypatch, world.clock)
    for dimension in ("support", "tone"):
        world.fails[dimension].extend([TemporaryError("503", retry_after=60.0)] * 10)
    world.desk.take(REQUEST)
    world.desk.take(replace(LATER, dimensions=(("tone", "c2"),)))
    await until(lambda: len(pauses.taken) == 10)  # the last of these pauses is not begun for the other question
    again = world.desk.take(LATER)
    assert again is not None
    await until(lambda: not world.desk.busy)
    assert world.heard == ["support", "tone"]


@pytest.mark.parametrize("trouble", [ConfigurationError("no such model"), PermanentError("refused"), RuntimeError("a bug")])
async def test_a_question_that_cannot_be_answered_costs_only_its_own_dimension(trouble: Exception) -> None:
    world = World()
    world.fails["tone"].append(trouble)
    await world.judged()
    assert world.heard == ["support"]
    assert len(world.asked) == 2, "it is not asked again by the desk"
    await world.judged()
    assert world.heard == ["support", "support", "tone"], "the next time its run is looked at, it is"


async def test_judgments_outlast_temporary_trouble_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FIRST_DELAY", 0.0)
    world = World()
    world.publish_fails.extend([TemporaryError("busy")] * 3)
    await world.judged()
    assert world.heard == ["support", "tone"]
    assert len(world.asked) == 2


async def test_judgments_that_cannot_be_kept_leave_the_question_open_to_be_asked_again() -> None:
    world = World()
    world.publish_fails.append(PermanentError("the store cannot hold this"))
    await world.judged()
    assert world.given_back == []
    await world.judged()
    assert world.heard == ["support", "tone"]


async def test_closing_cancels_what_is_being_asked() -> None:
    world = World()
    world.answers.clear()
    world.desk.take(REQUEST)
    await until(lambda: len(world.asked) == 2)
    await world.desk.close()
    assert not world.desk.busy
    assert world.at_once == 0
    assert world.given_back == []
    world.answers.set()
    await world.judged()
    assert world.heard == ["support", "tone"]
