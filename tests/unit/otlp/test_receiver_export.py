"""The receiver between transport and store."""

import threading
from collections.abc import Sequence

import pytest
from unit.otlp.wire_forms import as_json, request, wire_span

from collectors.otlp import receiver as receiver_module
from collectors.otlp.decoding import Decoded
from collectors.otlp.keys import Keys
from collectors.otlp.receiver import Encoding, Receiver, Reply
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

    def received(self, accepted: int, rejected: int) -> None:
        self.seen.append(f"count {accepted} {rejected}")

    def receiver(self) -> Receiver:
        return Receiver(self, lambda: 7, Keys({}, "open"), on_received=self.received)


MESSAGE = request(wire_span(name="a"), wire_span(trace_id=b"x"))


@pytest.mark.parametrize(
    ("encoding", "body"), [(Encoding.PROTOBUF, MESSAGE.SerializeToString()), (Encoding.JSON, as_json(MESSAGE))]
)
async def test_spans_are_stored_then_counted_then_answered(encoding: Encoding, body: bytes) -> None:
    events = Events()
    reply = await events.receiver().export(body, encoding, "shop")
    assert events.seen == ["store 1", "count 1 1"]
    assert (reply.rejected, reply.message[:27]) == (1, "1 of 2 spans were rejected:")
    assert [(span.project, span.received_ns) for span in events.spans] == [("shop", 7)]


async def test_a_request_without_acceptable_spans_does_not_trouble_the_store() -> None:
    events = Events(TemporaryError("down"))
    receiver = events.receiver()
    assert await receiver.export(b"", Encoding.PROTOBUF, "shop") == Reply()
    assert (await receiver.export(request(wire_span(trace_id=b"x")).SerializeToString(), Encoding.PROTOBUF, "shop")).rejected == 1
    assert events.seen == ["count 0 0", "count 0 1"]


@pytest.mark.parametrize("failure", [TemporaryError("down"), PermanentError("never")], ids=str)
async def test_what_the_store_says_is_passed_on_and_nothing_is_counted(failure: Exception) -> None:
    events = Events(failure)
    with pytest.raises(type(failure), match=str(failure)):
        await events.receiver().export(MESSAGE.SerializeToString(), Encoding.PROTOBUF, "shop")
    assert events.seen == ["store 1"]


async def test_a_large_request_is_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    decode = receiver_module._DECODERS[Encoding.PROTOBUF]

    def watched(body: bytes, project: str, received_ns: int) -> Decoded:
        threads.append(threading.current_thread())
        return decode(body, project, received_ns)

    monkeypatch.setitem(receiver_module._DECODERS, Encoding.PROTOBUF, watched)
    events = Events()
    for padding in (1, 2_000_000):
        await events.receiver().export(request(wire_span(name="x" * padding)).SerializeToString(), Encoding.PROTOBUF, "shop")
    assert [thread is threading.main_thread() for thread in threads] == [True, False]
    assert [len(span.name) for span in events.spans] == [1, 2_000_000]
