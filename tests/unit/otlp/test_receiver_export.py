"""The receiver between transport and store."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from unit.otlp.wire_forms import as_json, request, wire_span

from collectors.otlp import protobuf
from collectors.otlp.decoding import Decoded
from collectors.otlp.keys import Keys
from collectors.otlp.logs import LOGS
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import AnySignal, Encoding, Reply
from collectors.otlp.traces import TRACES
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.span import Span


class Events:
    """A store and a counter that write down what happened, in order."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.seen: list[str] = []
        self.spans: list[Span] = []
        self.failure = failure

    async def store(self, spans: Sequence[Span]) -> None:
        self.seen.append(f"store {len(spans)}")
        if self.failure:
            raise self.failure
        self.spans.extend(spans)

    def received(self, signal: AnySignal, read: Decoded[Any]) -> None:
        assert signal is TRACES
        self.seen.append(f"count {len(read.items)} {read.rejected}")

    def receiver(self) -> Receiver:
        return Receiver({TRACES: self}, lambda: 7, Keys({}, "open"), on_received=self.received)


MESSAGE = request(wire_span(name="a"), wire_span(trace_id=b"x"))


@pytest.mark.parametrize(
    ("encoding", "body"), [(Encoding.PROTOBUF, MESSAGE.SerializeToString()), (Encoding.JSON, as_json(MESSAGE))]
)
async def test_spans_are_stored_then_counted_then_answered(encoding: Encoding, body: bytes) -> None:
    events = Events()
    reply = await events.receiver().export(TRACES, body, encoding, "shop")
    assert events.seen == ["store 1", "count 1 1"]
    assert (reply.rejected, reply.message[:27]) == (1, "1 of 2 spans were rejected:")
    assert [(span.project, span.received_ns) for span in events.spans] == [("shop", 7)]


async def test_a_request_without_acceptable_spans_does_not_trouble_the_store() -> None:
    events = Events(TemporaryError("down"))
    receiver = events.receiver()
    assert await receiver.export(TRACES, b"", Encoding.PROTOBUF, "shop") == Reply()
    assert (
        await receiver.export(TRACES, request(wire_span(trace_id=b"x")).SerializeToString(), Encoding.PROTOBUF, "shop")
    ).rejected == 1
    assert events.seen == ["count 0 0", "count 0 1"]


@pytest.mark.parametrize(
    ("signal", "body", "missing"),
    [
        (TRACES, b'{"foo":1}', "resourceSpans"),
        (TRACES, b'{"trace":{"resourceSpans":[]}}', "resourceSpans"),
        (TRACES, b'{"resourceLogs":[]}', "resourceSpans"),
        (LOGS, b'{"resourceSpans":[]}', "resourceLogs"),
        # An empty request succeeds, also with a field that nobody knows (O5, O14).
        (TRACES, b" { } ", ""),
        (TRACES, b'{"resourceSpans":[]}', ""),
        (TRACES, b'{"resourceSpans":null,"foo":1}', ""),
        (TRACES, b'{"resource_spans":[{"scope_spans":[]}]}', ""),
    ],
)
async def test_an_object_with_nothing_of_a_request_in_it_is_answered_with_a_warning(
    signal: AnySignal, body: bytes, missing: str
) -> None:
    """Reliability O6: no rejected span, and a message."""
    reply = await Receiver({}, lambda: 7, Keys({}, "shop")).export(signal, body, Encoding.JSON, "shop")
    assert reply == Reply(0, f"nothing was stored: the body has no {missing}" if missing else "")
    response: Any = signal.response(reply)
    assert response.HasField("partial_success") is bool(missing)
    assert response.partial_success.error_message == reply.message


@pytest.mark.parametrize("failure", [TemporaryError("down"), PermanentError("never")], ids=str)
async def test_what_the_store_says_is_passed_on_and_nothing_is_counted(failure: Exception) -> None:
    events = Events(failure)
    with pytest.raises(type(failure), match=str(failure)):
        await events.receiver().export(TRACES, MESSAGE.SerializeToString(), Encoding.PROTOBUF, "shop")
    assert events.seen == ["store 1"]


async def test_a_large_request_is_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    decode = TRACES.decoders[Encoding.PROTOBUF]

    def watched(*arguments: Any) -> Decoded[Span]:
        threads.append(threading.current_thread())
        return decode(*arguments)

    monkeypatch.setitem(TRACES.decoders, Encoding.PROTOBUF, watched)
    events = Events()
    for padding in (1, 2_000_000):
        await events.receiver().export(
            TRACES, request(wire_span(name="x" * padding)).SerializeToString(), Encoding.PROTOBUF, "shop"
        )
    assert [thread is threading.main_thread() for thread in threads] == [True, False]
    assert [len(span.name) for span in events.spans] == [1, 2_000_000]


async def test_whatever_is_refused_for_good_is_handed_on_with_its_bytes() -> None:
    events = Events()
    told: list[Any] = []
    receiver = Receiver({TRACES: events}, lambda: 7, Keys({}, "open"), on_refused=lambda *what: told.append(what))
    await receiver.export(TRACES, MESSAGE.SerializeToString(), Encoding.PROTOBUF, "shop")
    with pytest.raises(PermanentError):
        await receiver.export(TRACES, b"{", Encoding.JSON, "other")
    (project, signal, encoding, span), (*whose, whole) = told
    assert (project, signal, encoding) == ("shop", TRACES, Encoding.PROTOBUF)
    assert "traceId" in span.reason
    assert protobuf.decode(span.body, "shop", 7).rejected == 1
    assert (whose, whole.body) == (["other", TRACES, Encoding.JSON], b"{")


async def test_what_has_to_be_sent_again_is_not_handed_on_yet() -> None:
    told: list[Any] = []
    receiver = Receiver(
        {TRACES: Events(TemporaryError("down"))}, lambda: 7, Keys({}, "open"), on_refused=lambda *what: told.append(what)
    )
    with pytest.raises(TemporaryError):
        await receiver.export(TRACES, MESSAGE.SerializeToString(), Encoding.PROTOBUF, "shop")
    assert told == []
