"""A handful of the worst requests, read and redacted as `up` and as `collector` do: within a second of work each.

All there are, over real connections and by the clock: ``integration/test_worst_requests.py``. `-s` prints the table.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import pytest
from stopwatch import Stopwatch
from worst_requests import JSON, LARGEST, LIMITS, PROTOBUF, attribute, attribute_in_json, field, span, span_in_json

from collectors.otlp.body import TooLargeError
from collectors.otlp.keys import Keys
from collectors.otlp.passing import PASSED_ON
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import AnySignal
from collectors.otlp.traces import TRACES
from collectors.redaction.configured import made_of
from pipeline.config.redaction import RedactionSettings

WITHIN_S: Final = 1.0
MANY: Final = LIMITS.max_spans
WAYS: Final[dict[str, AnySignal]] = {"up": TRACES, "collector": PASSED_ON}
_random = Random(7)
_BASE64: Final = [b64encode(_random.randbytes(3072)) for _ in range(256)]
_DOUBLE: Final = field(1, b"\x21" + b"\x12\x34\x56\x78\x9a\xbc\xde\x3f")


def _spans(pieces: Sequence[bytes], most: int = MANY, size: int = LARGEST) -> bytes:
    """Return the request of these spans, over and over."""
    length = sum(map(len, pieces))
    return field(1, field(2, b"".join(pieces) * (min(most // len(pieces), size // length))))


def _spans_in_json(piece: bytes, most: int = MANY) -> bytes:
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + (piece + b",") * (most - 1) + piece + b"]}]}]}"


PIECES: Final[dict[str, Callable[[], bytes]]] = {
    "spans": lambda: _spans([span(0)]),
    "large spans": lambda: _spans([span(0, attribute(b"k", b"x" * 4000))]),
    "attributes": lambda: _spans([span(0, *[attribute(b"k%d" % at, b"v") for at in range(100)])], LIMITS.max_values // 300),
    "too many attributes": lambda: _spans([span(0, b"\x4a\x00" * 1024)]),
    "numbers of lists": lambda: _spans(
        [span(0, field(9, field(1, b"k") + field(2, field(5, _DOUBLE * 1536))))], LIMITS.max_values // 1539
    ),
    "a secret in each, half as many as are read": lambda: _spans(
        [span(0, attribute(b"k", b"mail me@example.com"))], most=MANY // 2
    ),
    "texts that look like secrets, a quarter of what is read": lambda: _spans(
        [span(0, attribute(b"k", one)) for one in _BASE64], size=LARGEST // 4
    ),
    "no UTF-8": lambda: _spans([span(0, field(5, b"\xff"))]),
}


@pytest.fixture(scope="module")
def receiver() -> Receiver:
    class Nowhere:
        async def store(self, items: Sequence[Any]) -> None:
            """Keep nothing."""

    nowhere = Nowhere()
    return Receiver({TRACES: nowhere, PASSED_ON: nowhere}, lambda: 1, Keys({}, "worst"), redactor=made_of(RedactionSettings()))


async def _read(receiver: Receiver, signal: AnySignal, body: bytes, encoding: Any, name: str) -> None:
    watch = Stopwatch()
    try:
        rejected = (await receiver.export(signal, body, encoding, "worst")).rejected
        outcome = f"{rejected} rejected"
    except TooLargeError:
        outcome = "too large"
    seconds = watch.seconds
    print(f"  {name:56} {len(body) / 2**20:5.1f} MiB  {seconds:5.2f} s  {outcome}")  # noqa: T201 - the table
    assert seconds < WITHIN_S


@pytest.mark.parametrize("where", WAYS)
@pytest.mark.parametrize("name", PIECES)
async def test_the_worst_takes_less_than_a_second_of_work(name: str, where: str, receiver: Receiver) -> None:
    await _read(receiver, WAYS[where], PIECES[name](), PROTOBUF, f"{name}, {where}")


async def test_and_so_in_json(receiver: Receiver) -> None:
    await _read(receiver, TRACES, _spans_in_json(span_in_json(0, attribute_in_json(b"k", b"v"))), JSON, "spans in JSON, up")
