"""Every question is answered by its deadline, one way or the other, and none waits for another source."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from builders import T0
from opentelemetry.metrics import NoOpMeter

from collectors.records.ask import LARGEST, Ask
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.evidence import Evidence, Found, Question, seal
from pipeline.model.topology import TRACES, Topic
from pipeline.runtime import record_desk
from pipeline.runtime.clock import ManualClock
from pipeline.runtime.record_desk import OpenSource, RecordDesk, as_it_is
from pipeline.runtime.telemetry import Telemetry


def question(key: str = '{"order": "A-1"}', source: str = "payments", run: str = "r") -> Question:
    return Question("default", "ab" * 16, run, source, "0123456789abcdef", key, "c")


class Desk:
    """A desk, and what came out of it."""

    def __init__(self, redact: Callable[[Any], Any] = as_it_is, **sources: OpenSource) -> None:
        self.telemetry = Telemetry(NoOpMeter("test"))
        self.evidence: list[Evidence] = []
        self.desk = RecordDesk(sources, self._publish, ManualClock(T0), self.telemetry, redact)

    async def _publish(self, topic: Topic, records: Sequence[Any]) -> None:
        assert topic is TRACES
        self.evidence.extend(records)

    async def all_of(self, *questions: Question) -> list[Evidence]:
        self.desk.take(questions)
        await self.until(lambda: not self.desk.busy)
        return self.evidence

    async def until(self, holds: Callable[[], object]) -> None:
        """Give others their turn until something holds."""
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - the desk tells nobody
                await asyncio.sleep(0.001)


def source(ask: Ask, timeout: float = 5, deadline: float = 5, concurrency: int = 4) -> OpenSource:
    return OpenSource(ask, timeout, deadline, concurrency)


def saying(*answers: Any) -> Ask:
    """A source that answers, or raises, one after the other; then the last one for ever."""
    left = list(answers)

    async def ask(_: Mapping[str, Any]) -> Any:
        said = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(said, BaseException):
            raise said
        return said

    return ask


async def never(_: Mapping[str, Any]) -> Any:
    await asyncio.Event().wait()


async def test_what_was_read_is_kept_as_it_was_written_with_its_time() -> None:
    desk = Desk(payments=source(saying({"b": [Decimal("12.50"), 1], "a": "Ä"})))
    (evidence,) = await desk.all_of(question())
    assert (evidence.found, evidence.body, evidence.error) == (Found.RECORD, '{"a":"Ä","b":[12.50,1]}', "")
    assert (evidence.id, evidence.read_ns) == (question().id, T0)
    assert seal(evidence) == evidence
    assert desk.telemetry.snapshot() == {"tracegrade.record_reads payments record": 1}


async def test_a_source_is_given_the_key_with_decimals() -> None:
    given: list[Mapping[str, Any]] = []

    async def ask(key: Mapping[str, Any]) -> Any:
        given.append(key)

    (evidence,) = await Desk(payments=source(ask)).all_of(question('{"a": 1, "b": 0.1, "c": "x"}'))
    assert given == [{"a": 1, "b": Decimal("0.1"), "c": "x"}]
    assert evidence.found is Found.ABSENT


async def test_what_may_pass_is_asked_again_until_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_desk, "FIRST_DELAY", 0.001)
    trouble = TemporaryError("status 503")
    (evidence,) = await Desk(payments=source(saying(trouble, trouble, []))).all_of(question())
    assert (evidence.found, evidence.body) == (Found.RECORD, "[]")
    (evidence,) = await Desk(payments=source(saying(trouble), deadline=0.05)).all_of(question())
    assert (evidence.found, evidence.error) == (Found.FAILED, "status 503; given up after 0.05 s")
    wish = TemporaryError("status 429", retry_after=60)
    (evidence,) = await Desk(payments=source(saying(wish), deadline=0.05)).all_of(question())
    assert evidence.error == "status 429; given up after 0.05 s", "a source that asks for an hour is not waited for"


async def test_a_source_that_does_not_answer_is_given_up() -> None:
    (evidence,) = await Desk(payments=source(never, timeout=0.01, deadline=0.03)).all_of(question())
    assert (evidence.found, evidence.error) == (Found.FAILED, "no answer within 0.01 s; given up after 0.03 s")


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        (PermanentError("status 403"), "status 403"),
        (RuntimeError("password=hunter2"), "RuntimeError"),
        (TimeoutError("hunter2"), "no answer within 5 s; given up after 0.02 s"),
    ],
)
async def test_whatever_a_source_raises_costs_one_read_and_tells_no_secret(raised: Exception, why: str) -> None:
    (evidence,) = await Desk(payments=source(saying(raised), deadline=0.02)).all_of(question())
    assert (evidence.found, evidence.body, evidence.error) == (Found.FAILED, "", why)


@pytest.mark.parametrize("said", [object(), "\ud83d", {"a": "x" * LARGEST}])
async def test_what_cannot_be_kept_was_not_read(said: Any) -> None:
    (evidence,) = await Desk(payments=source(saying(said))).all_of(question())
    assert (evidence.found, evidence.body) == (Found.FAILED, "")


async def test_secrets_are_replaced_before_anything_is_kept() -> None:
    def redact(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("4111111111111111", "[redacted:card]"))

    (evidence,) = await Desk(redact, payments=source(saying([{"card": "4111111111111111"}]))).all_of(question())
    assert evidence.body == '[{"card":"[redacted:card]"}]'


async def test_a_source_that_hangs_keeps_no_other_waiting_and_the_same_is_asked_once() -> None:
    asked = 0
    release = asyncio.Event()

    async def slow(_: Mapping[str, Any]) -> Any:
        nonlocal asked
        asked += 1
        await release.wait()
        return []

    desk = Desk(payments=source(slow, concurrency=1), ledger=source(saying({})))
    desk.desk.take([question()])
    desk.desk.take([question(), question(source="ledger")])
    await desk.until(lambda: desk.evidence)
    assert [one.source for one in desk.evidence] == ["ledger"]
    release.set()
    assert [one.source for one in await desk.all_of()] == ["ledger", "payments"]
    assert asked == 1


async def test_no_more_is_read_at_once_than_a_source_may_be_asked() -> None:
    running = most = 0

    async def counting(_: Mapping[str, Any]) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return []

    desk = Desk(payments=source(counting, concurrency=3))
    found = await desk.all_of(*(question(run=str(number)) for number in range(20)))
    assert (len(found), most) == (20, 3)
    assert {one.found for one in found} == {Found.RECORD}


async def test_answers_that_are_ready_at_once_are_given_back_in_few_pieces() -> None:
    desk = Desk(payments=source(saying([]), concurrency=100))
    pieces: list[int] = []

    async def slowly(topic: Topic, records: Sequence[Any]) -> None:
        pieces.append(len(records))
        await asyncio.sleep(0.05)
        await desk._publish(topic, records)

    desk.desk._publish = slowly
    found = await desk.all_of(*(question(run=str(number)) for number in range(50)))
    assert sorted(int(one.run_id) for one in found) == list(range(50))
    assert sum(pieces) == 50
    assert len(pieces) < 10


async def test_what_was_answered_is_not_read_again_while_its_owner_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(payments=source(saying([])))
    await desk.all_of(question())
    assert len(await desk.all_of(question())) == 1
    monkeypatch.setattr(record_desk, "REMEMBERED", -1.0)
    assert len(await desk.all_of(question())) == 2, "it seems to have been lost"


async def test_what_is_too_much_at_once_is_left_to_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_desk, "IN_FLIGHT", 2)
    desk = Desk(payments=source(saying([])))
    many = [question(run=str(number)) for number in range(3)]
    assert [one.run_id for one in await desk.all_of(*many)] == ["0", "1"]
    assert [one.run_id for one in await desk.all_of(*many[2:])] == ["0", "1", "2"]


async def test_a_desk_that_is_closed_answers_nothing_any_more() -> None:
    desk = Desk(payments=source(never))
    desk.desk.take([question()])
    await asyncio.sleep(0)
    await desk.desk.close()
    assert not desk.desk.busy
    assert desk.evidence == []


async def test_a_source_that_nobody_configured_here_was_not_read() -> None:
    (evidence,) = await Desk().all_of(question())
    assert (evidence.found, evidence.error) == (Found.FAILED, "no such source is configured where the trace is graded")
