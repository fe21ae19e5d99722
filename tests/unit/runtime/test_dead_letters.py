"""Dead letters: what is kept of what could not be processed, how much of it, and what becomes of it when it is sent back."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from builders import a_span
from opentelemetry.metrics import NoOpMeter
from unit.kafka.foreign import BAD_SPANS, GOOD, NOW, otlp, otlp_json, request_of

from collectors.kafka.records import encode
from collectors.otlp.decoding import Refused
from collectors.otlp.signal import Encoding
from collectors.otlp.traces import TRACES as TRACES_SIGNAL
from collectors.redaction.configured import redactor
from pipeline.config.redaction import RedactionSettings
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.dead_letter import Outcome, Replay
from pipeline.model.span import Span
from pipeline.model.time import MINUTE
from pipeline.model.topology import LARGEST_BODY, TRACES, DeadLetter, Topic
from pipeline.runtime import dead_letters
from pipeline.runtime.clock import ManualClock
from pipeline.runtime.dead_letters import A_LETTER, A_MINUTE, BURST, Allowance, LetterBox, a_letter
from pipeline.runtime.replaying import Replayer
from pipeline.runtime.telemetry import Telemetry


def test_a_letter_is_cut_where_it_is_too_large_and_says_so() -> None:
    letter = a_letter("shop", "bridge: t[0]@1", "why", bytes(LARGEST_BODY + 1), NOW)
    assert (len(letter.body), letter.size, letter.cut) == (LARGEST_BODY, LARGEST_BODY + 1, True)
    assert letter.reason.startswith("why (of ")


def test_secrets_in_body_reason_headers_and_key_are_masked_at_their_length() -> None:
    secret = b"ann@example.com"
    mask = redactor(RedactionSettings())
    assert mask is not None
    letter = a_letter(
        "shop", "o", f"no: {secret.decode()}", b"\x0a" + secret, NOW, headers=[("h", secret)], key=secret, mask=mask.mask
    )
    said = [letter.body, letter.reason.encode(), letter.headers[0][1], letter.key or b""]
    assert all(secret not in one for one in said)
    assert len(letter.body) == 1 + len(secret)
    assert letter.masked
    assert not a_letter("shop", "o", "r", b"nothing", NOW, mask=mask.mask).masked


def test_what_is_allowed_is_a_burst_and_then_so_much_a_minute() -> None:
    allowance = Allowance(100, 10)
    assert allowance.take(100, NOW)
    assert not allowance.take(1, NOW)
    assert not allowance.take(11, NOW + MINUTE)
    assert allowance.take(10, NOW + MINUTE)
    assert not allowance.take(1, NOW)  # a clock that goes back gives nothing
    assert allowance.take(100, NOW + 60 * MINUTE)
    assert not allowance.take(1, NOW + 60 * MINUTE)


class Keeping:
    """Keeps letters, with trouble at first where it is asked for."""

    def __init__(self, trouble: Sequence[Exception] = ()) -> None:
        self.letters: list[DeadLetter] = []
        self.trouble = list(trouble)
        self.telemetry = Telemetry(NoOpMeter("test"))
        self.clock = ManualClock(NOW)
        self.box = LetterBox("receiver", self, self.clock, self.telemetry)

    async def __call__(self, letters: Sequence[DeadLetter]) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        self.letters += letters

    def counted(self, name: str) -> float:
        return self.telemetry.snapshot().get(f"tracegrade.{name} receiver", 0)


async def written(box: LetterBox) -> None:
    """Wait until nothing is waiting."""
    async with asyncio.timeout(30):
        while box._bytes:  # noqa: ASYNC110 - a thread masks
            await asyncio.sleep(0.005)


async def test_what_a_receiver_refused_is_kept_with_its_encoding_beside_the_answer() -> None:
    keeping = Keeping([TemporaryError("away", 0.01), TemporaryError("away", 0.01)])
    async with keeping.box:
        keeping.box.refused("shop", TRACES_SIGNAL, Encoding.JSON, Refused("no request", b"{"))
        assert keeping.letters == []  # nobody waited
        await written(keeping.box)
    (letter,) = keeping.letters
    assert (letter.project, letter.origin, letter.reason) == ("shop", "receiver: /v1/traces", "no request")
    assert letter.headers == (("content-type", b"application/json"),)
    assert letter.received_ns == NOW
    assert (keeping.counted("dead_letters"), keeping.counted("dead_letters.dropped")) == (1, 0)


@pytest.mark.parametrize("error", [PermanentError("too large"), RuntimeError("a bug")])
async def test_a_letter_that_cannot_be_kept_costs_no_other(error: Exception) -> None:
    keeping = Keeping([error])
    async with keeping.box:
        for body in (b"first", b"second"):
            keeping.box.add("shop", "door", "bad", body)
        await written(keeping.box)
    assert [letter.body for letter in keeping.letters] == [b"second"]
    assert keeping.counted("dead_letters.dropped") == 1


async def test_a_flood_is_counted_and_fills_nothing() -> None:
    keeping = Keeping()
    body = bytes(1024 * 1024)
    async with keeping.box:
        for _ in range(200):
            keeping.box.add("shop", "door", "bad", body)
        await written(keeping.box)
        assert len(keeping.letters) == BURST // (len(body) + A_LETTER)
        for minute in range(1, 11):
            keeping.clock.advance_to(NOW + minute * MINUTE)
            for _ in range(100):
                keeping.box.add("shop", "door", "bad", body)
            await written(keeping.box)
    kept = sum(len(letter.body) + A_LETTER for letter in keeping.letters)
    assert BURST < kept <= BURST + 10 * A_MINUTE
    assert keeping.counted("dead_letters") + keeping.counted("dead_letters.dropped") == 1200


async def test_a_store_that_is_away_costs_no_memory_without_an_end_and_a_stop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "GRACE_S", 0.1)
    keeping = Keeping([TemporaryError("away")] * 1000)
    async with keeping.box:
        for minute in range(100):
            keeping.clock.advance_to(NOW + minute * MINUTE)
            keeping.box.add("shop", "door", "bad", bytes(1024 * 1024))
        assert keeping.box._bytes <= BURST
    assert keeping.letters == []
    assert keeping.counted("dead_letters.dropped") == 100


class Back:
    """Where letters go back to."""

    def __init__(self, trouble: Callable[[Sequence[Any]], Exception | None] = lambda _: None) -> None:
        self.sent: list[tuple[Topic, Any]] = []
        self.noted: list[Replay] = []
        self.trouble = trouble
        self.replayer = Replayer(self, self, ManualClock(NOW), None)

    async def __call__(self, topic: Topic, records: Sequence[Any]) -> None:
        error = self.trouble(records)
        if error is not None:
            raise error
        self.sent += [(topic, record) for record in records]

    async def note_replays(self, replays: Sequence[Replay]) -> None:
        self.noted += replays

    @property
    def names(self) -> list[str]:
        return [record.name for _, record in self.sent if isinstance(record, Span)]


def foreign(body: bytes, origin: str = "bridge: otlp_spans[0]@7") -> DeadLetter:
    return a_letter("shop", origin, "it was refused", body, NOW - 9)


async def test_spans_of_a_foreign_record_and_of_a_request_go_back_to_the_traces_topic_received_when_they_were() -> None:
    back = Back()
    letters = [foreign(otlp("one")), foreign(otlp_json("two"), "receiver: /v1/traces")]
    done = await back.replayer.replay(letters)
    assert [(one.outcome, one.detail) for one in done] == [(Outcome.SENT, "1 to tracegrade.traces")] * 2
    assert back.names == ["one", "two"]
    assert {(topic, record.project, record.received_ns) for topic, record in back.sent} == {(TRACES, "shop", NOW - 9)}
    assert back.noted == done


async def test_what_fails_again_stays_and_costs_no_other_its_turn() -> None:
    back = Back()
    done = await back.replayer.replay(
        [foreign(b"garbage"), foreign(otlp("good")), foreign(request_of(GOOD, BAD_SPANS["no ids"]))]
    )
    assert [one.outcome for one in done] == [Outcome.FAILED, Outcome.SENT, Outcome.FAILED]
    assert "1 sent, and the rest cannot be read" in done[2].detail
    assert back.names == ["good", "odd"]


async def test_a_record_of_our_own_topic_goes_back_to_it_with_its_kind() -> None:
    (record,) = encode(TRACES, [a_span()], 4)
    letter = DeadLetter("default", "assemble: tracegrade.traces[2]@5", "of another version", record.value, record.headers, size=0)
    back = Back()
    (done,) = await back.replayer.replay([letter])
    assert done.outcome is Outcome.SENT
    assert [(topic, noun.span_id) for topic, noun in back.sent] == [(TRACES, a_span().span_id)]


@pytest.mark.parametrize(
    ("letter", "why"),
    [
        (a_letter("shop", "receiver: /v1/traces", "r", bytes(LARGEST_BODY + 1), NOW), "only 5242880 of its 5242881 bytes"),
        (a_letter("shop", "assemble", "it broke", b"ab" * 16, NOW), "its spans are stored"),
    ],
)
async def test_what_cannot_be_sent_back_says_why(letter: DeadLetter, why: str) -> None:
    (done,) = await Back().replayer.replay([letter])
    assert done.outcome is Outcome.FAILED
    assert why in done.detail


async def test_brokers_that_are_away_end_a_replay_that_can_be_repeated() -> None:
    back = Back(lambda records: TemporaryError("away") if records[0].name == "second" else None)
    with pytest.raises(TemporaryError):
        await back.replayer.replay([foreign(otlp("first")), foreign(otlp("second"))])
    assert [one.outcome for one in back.noted] == [Outcome.SENT]


async def test_what_the_store_never_takes_is_told() -> None:
    (done,) = await Back(lambda _: PermanentError("never")).replayer.replay([foreign(otlp())])
    assert (done.outcome, done.detail) == (Outcome.FAILED, "never")


async def test_a_masked_letter_goes_back_masked_and_says_so() -> None:
    mask = redactor(RedactionSettings())
    assert mask is not None
    body = otlp("mail ann@example.com")
    letter = a_letter("shop", "receiver: /v1/traces", "r", body, NOW, mask=mask.mask)
    back = Back()
    (done,) = await back.replayer.replay([letter])
    assert (done.outcome, done.detail) == (Outcome.SENT, "1 to tracegrade.traces; what was masked in it stays so")
    assert "ann@example.com" not in back.names[0]
    assert len(back.names[0]) == len("mail ann@example.com")
