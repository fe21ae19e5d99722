"""The worst that a sender can send within the limits of the receiver: as large as is read, and whatever is slow to read.

Each body is made of what is slow in another place: many items, many values, long texts that look like secrets, and those that are.
"""

import random
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from collectors.otlp.signal import Encoding
from pipeline.config.receiver import MEBIBYTE, ReceiverSettings

LIMITS: Final = ReceiverSettings()
LARGEST: Final = LIMITS.max_body - 4096
"""Bytes of content that fit, whatever stands around them."""
PROTOBUF, JSON = Encoding.PROTOBUF, Encoding.JSON
TRACES, LOGS = "/v1/traces", "/v1/logs"
_RANDOM: Final = random.Random(20)


class Worst(NamedTuple):
    """A request; ``body`` makes it."""

    encoding: Encoding
    body: Callable[[], bytes]
    path: str = TRACES


def field(number: int, content: bytes) -> bytes:
    """Return a field of protobuf that has a length."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    written = b""
    while number > 0x7F:
        written += bytes([number & 0x7F | 0x80])
        number >>= 7
    return written + bytes([number])


def span(index: int, *fields: bytes) -> bytes:
    """Return a span in protobuf, as a field of its scope."""
    ids = field(1, (index // 16 + 1).to_bytes(16, "big")) + field(2, (index + 1).to_bytes(8, "big"))
    return field(2, ids + b"".join(fields))


def attribute(key: bytes, value: bytes) -> bytes:
    """Return an attribute of a span in protobuf whose value is text."""
    return field(9, field(1, key) + field(2, field(1, value)))


def in_protobuf(items: Iterable[bytes]) -> bytes:
    """Return the request of some items in one scope."""
    return field(1, field(2, b"".join(items)))


def span_in_json(index: int, attributes: bytes = b"", name: bytes = b"n") -> bytes:
    """Return a span in JSON; ``attributes`` are objects with commas between."""
    return b'{"traceId":"%032x","spanId":"%016x","name":"%b","attributes":[%b]}' % (index // 16 + 1, index + 1, name, attributes)


def attribute_in_json(key: bytes, value: bytes) -> bytes:
    """Return an attribute in JSON whose value is text."""
    return b'{"key":"%b","value":{"stringValue":"%b"}}' % (key, value)


def in_json(items: Iterable[bytes]) -> bytes:
    """Return the request of some spans in one scope."""
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b",".join(items) + b"]}]}]}"


def filled(piece: Callable[[int], bytes], size: int = LARGEST, most: int = LIMITS.max_spans) -> list[bytes]:
    """Return as many pieces as fit, at most ``most``."""
    pieces: list[bytes] = []
    while len(pieces) < most and size > 0:
        pieces.append(piece(len(pieces)))
        size -= len(pieces[-1]) + 1
    return pieces[:-1] if size < 0 else pieces


def _of(alphabet: bytes, size: int) -> bytes:
    return bytes(_RANDOM.choices(alphabet, k=size))


_DIGITS: Final = b"0123456789"
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz"
_CAPITALS: Final = _LETTERS.upper()
_WORDS: Final = [_of(_LETTERS, 3 + at % 6) for at in range(500)]

TEXTS: Final[dict[str, Callable[[int], bytes]]] = {
    "base64": lambda size: b64encode(_RANDOM.randbytes(size * 3 // 4))[:size],
    "base64 of text": lambda size: b64encode(b" ".join(_RANDOM.choices(_WORDS, k=size // 6))[: size * 3 // 4])[:size],
    "base64 in lines": lambda size: (b64encode(_RANDOM.randbytes(57)) + rb"\n") * (size // 78),
    "letters and digits": lambda size: _of(_LETTERS + _CAPITALS + _DIGITS, size),
    "digits": lambda size: _of(_DIGITS, size),
    "digits and spaces": lambda size: _of(_DIGITS + b"  -", size),
    "capitals and digits": lambda size: _of(_CAPITALS + _DIGITS + b" ", size),
    "printable": lambda size: _of(bytes(set(range(32, 127)) - set(b'"\\')), size),
    "words": lambda size: b" ".join(_RANDOM.choices(_WORDS, k=size // 4))[:size],
    "one letter": lambda size: b"x" * size,
    "one digit": lambda size: b"4" * size,
    "backslashes": lambda size: rb"\\" * (size // 2),
    "escapes": lambda size: rb"\u0040" * (size // 6),
    "at signs": lambda size: b"a@" * (size // 2),
    "addresses": lambda size: b"me@example.com " * (size // 15),
    "long addresses": lambda size: (b"a" * 60_000 + b"@") * (size // 60_001),
    "cards": lambda size: b"4111 1111 1111 1111, " * (size // 21),
    "nearly cards": lambda size: b"4111 1111 1111 1112, " * (size // 21),
    "accounts": lambda size: b"GB82 WEST 1234 5698 7654 32, " * (size // 29),
    "nearly accounts": lambda size: b"GB83 WEST 1234 5698 7654 32, " * (size // 29),
    "assignments": lambda size: b"password=hunter2! " * (size // 18),
    "nearly assignments": lambda size: b"password= " * (size // 10),
    "keys of providers": lambda size: (b"sk-" + b"a1" * 12 + b" ") * (size // 28),
    "bearers": lambda size: b"Bearer abcdefghij0123456789 " * (size // 28),
    "headers of private keys": lambda size: b"-----BEGIN RSA PRIVATE KEY-----" * (size // 31),
    "aws": lambda size: b"aws aws_key= " * (size // 13),
    "JSON": lambda size: b"[" + rb"{\"a\":[1,\"b\"]}," * (size // 16) + b"1]",
    "JSON with secrets": lambda size: b"[" + rb"{\"password\":\"x1y2z3\"}," * (size // 25) + b"1]",
    "deep JSON": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "markers": lambda size: b"[redacted:email] a@b.cd " * (size // 24),
}
"""Texts of about a size that are slow to look through, or look like it; valid in JSON too."""

_MANY: Final = LIMITS.max_spans
_TEXT: Final = {name: make(MEBIBYTE) for name, make in TEXTS.items()}


def _texts(name: str, size: int) -> Callable[[int], bytes]:
    """Return a maker of spans, each with such a text of a size, another part of it for each."""
    text = _TEXT[name]
    if size > len(text):
        text *= size // len(text) + 1
    return lambda index: span(index, attribute(b"k", text[(at := index * size % (len(text) - size + 1)) : at + size]))


def _texts_in_json(name: str, size: int) -> Callable[[int], bytes]:
    whole = _TEXT[name][: size // 24 * 24]
    return lambda index: span_in_json(index, attribute_in_json(b"k", whole))


_SMALL_SECRETS: Final = (b"me@example.com", b"4111 1111 1111 1111", b"password=hunter2!", b"sk-" + b"a1" * 12)

WORST: Final[dict[str, Worst]] = (
    {
        "spans": Worst(PROTOBUF, lambda: in_protobuf(span(index) for index in range(_MANY))),
        "spans in JSON": Worst(JSON, lambda: in_json(span_in_json(index) for index in range(_MANY))),
        "spans and one more": Worst(PROTOBUF, lambda: in_protobuf(span(index) for index in range(_MANY + 1))),
        "spans in JSON and one more": Worst(JSON, lambda: in_json(span_in_json(index) for index in range(_MANY + 1))),
        "large spans": Worst(PROTOBUF, lambda: in_protobuf(filled(lambda at: span(at, attribute(b"k", b"x" * 1200))))),
        "spans without ids": Worst(PROTOBUF, lambda: in_protobuf([b"\x12\x00"] * _MANY)),
        "spans without ids in JSON": Worst(JSON, lambda: in_json([b"{}"] * _MANY)),
        "spans and a scope each": Worst(PROTOBUF, lambda: field(1, b"".join(field(2, span(index)) for index in range(_MANY)))),
        "spans and a resource each": Worst(
            PROTOBUF,
            lambda: b"".join(field(1, field(1, field(1, b"\x0a\x01k")) + field(2, span(index))) for index in range(_MANY)),
        ),
        "spans with a secret each": Worst(
            PROTOBUF, lambda: in_protobuf(span(at, attribute(b"k", _SMALL_SECRETS[at % 4])) for at in range(_MANY))
        ),
        "spans with a secret each in JSON": Worst(
            JSON, lambda: in_json(span_in_json(at, attribute_in_json(b"k", _SMALL_SECRETS[at % 4])) for at in range(_MANY))
        ),
        "attributes with a secret each": Worst(
            PROTOBUF,
            lambda: in_protobuf(
                span(at, *[attribute(b"k%d" % n, _SMALL_SECRETS[n % 4]) for n in range(23)]) for at in range(_MANY)
            ),
        ),
        "values of a list with a secret each": Worst(
            PROTOBUF, lambda: in_protobuf([span(0, _list(_SMALL_SECRETS[at % 4] for at in range(340_000)))])
        ),
        "values of lists with a secret each": Worst(
            PROTOBUF, lambda: in_protobuf(span(at, _list([b"me@example.com"] * 70)) for at in range(_MANY))
        ),
        "numbers of a list and a secret": Worst(
            PROTOBUF, lambda: in_protobuf([span(0, _numbers(340_000), attribute(b"to", b"me@example.com"))])
        ),
        "maps with a secret": Worst(
            PROTOBUF,
            lambda: in_protobuf(
                [
                    span(
                        0,
                        field(9, field(1, b"k") + field(2, field(6, field(1, b"\x0a\x01k") * 390_000))),
                        attribute(b"me@b.cd", b"v"),
                    )
                ]
            ),
        ),
        "a resource with a secret": Worst(
            PROTOBUF,
            lambda: field(
                1,
                field(1, field(1, field(1, b"k") + field(2, field(1, b"password=hunter2!"))))
                + field(2, b"".join(span(index) for index in range(_MANY))),
            ),
        ),
        "spans with names of secrets": Worst(
            PROTOBUF, lambda: in_protobuf(span(at, *[attribute(b"password", b"x")] * 4) for at in range(_MANY))
        ),
        "attributes of one span": Worst(PROTOBUF, lambda: in_protobuf([span(0, b"\x4a\x00" * (LARGEST // 2 - 100))])),
        "attributes of each span": Worst(
            PROTOBUF, lambda: in_protobuf(filled(lambda at: span(at, *[attribute(b"k%d" % n, b"v") for n in range(100)])))
        ),
        "attributes of one span in JSON": Worst(
            JSON,
            lambda: in_json([span_in_json(0, b",".join(filled(lambda at: attribute_in_json(b"k%d" % at, b"v"), most=10**6)))]),
        ),
        "attributes of each span in JSON": Worst(
            JSON,
            lambda: in_json(
                filled(lambda at: span_in_json(at, b",".join([attribute_in_json(b"k%d" % n, b"v") for n in range(100)])))
            ),
        ),
        "empty attributes of each span": Worst(
            PROTOBUF, lambda: in_protobuf(filled(lambda at: span(at, b"\x4a\x00" * 1024), most=_MANY))
        ),
        "empty attributes of each span in JSON": Worst(
            JSON, lambda: in_json(filled(lambda at: span_in_json(at, b"{}" + b",{}" * 1023), most=_MANY))
        ),
        "empty events": Worst(PROTOBUF, lambda: in_protobuf(filled(lambda at: span(at, b"\x5a\x00" * 1024), most=_MANY))),
        "empty links": Worst(PROTOBUF, lambda: in_protobuf(filled(lambda at: span(at, b"\x6a\x00" * 1024), most=_MANY))),
        "values of one list": Worst(
            PROTOBUF,
            lambda: in_protobuf([span(0, field(9, field(1, b"k") + field(2, field(5, b"\x0a\x00" * (LARGEST // 2 - 100)))))]),
        ),
        "values of lists": Worst(
            PROTOBUF,
            lambda: in_protobuf(
                filled(lambda at: span(at, field(9, field(1, b"k") + field(2, field(5, b"\x0a\x00" * 120_000)))))
            ),
        ),
        "values of lists in JSON": Worst(
            JSON,
            lambda: in_json(
                filled(
                    lambda at: span_in_json(at, b'{"key":"k","value":{"arrayValue":{"values":[{}' + b",{}" * 100_000 + b"]}}}")
                )
            ),
        ),
        "maps": Worst(
            PROTOBUF,
            lambda: in_protobuf(
                filled(lambda at: span(at, field(9, field(1, b"k") + field(2, field(6, field(1, b"\x0a\x01k") * 25_000)))))
            ),
        ),
        "unknown fields of a span": Worst(PROTOBUF, lambda: in_protobuf([span(0, b"\x78\x01" * (LARGEST // 2 - 100))])),
        "unknown fields of each span": Worst(PROTOBUF, lambda: in_protobuf(filled(lambda at: span(at, b"\x78\x01" * 100_000)))),
        "long keys": Worst(PROTOBUF, lambda: in_protobuf(filled(lambda at: span(at, attribute(b"k" * 60_000, b"v"))))),
        "deep values": Worst(PROTOBUF, lambda: in_protobuf(filled(_deep))),
        "deep values in JSON": Worst(JSON, lambda: in_json(filled(_deep_in_json))),
        "brackets": Worst(JSON, lambda: b"[" * LARGEST),
        "brackets in a span": Worst(JSON, lambda: in_json([b'{"x":' + b"[" * (LARGEST // 2) + b"]" * (LARGEST // 2) + b"}"])),
        "one string": Worst(JSON, lambda: b'"' + b"x" * LARGEST),
        "quotes": Worst(JSON, lambda: b'{"a":"' + rb"\"" * (LARGEST // 2 - 10) + b'"}'),
        "snake case": Worst(
            JSON,
            lambda: in_json(filled(lambda at: span_in_json(at, attribute_in_json(b"k", b"v")))).replace(
                b"resourceSpans", b"resource_spans"
            ),
        ),
        "halves of pairs": Worst(JSON, lambda: in_json([span_in_json(0, name=rb"\ud83d" * (LARGEST // 6))])),
        "half a pair in each": Worst(JSON, lambda: in_json(span_in_json(at, name=rb"\ud83d") for at in range(_MANY))),
        "no UTF-8 in JSON": Worst(JSON, lambda: in_json([span_in_json(0, name=b"\xff" * LARGEST)])),
        "no UTF-8 in each": Worst(PROTOBUF, lambda: in_protobuf(span(at, field(5, b"\xff")) for at in range(_MANY))),
        "no UTF-8 in a text": Worst(PROTOBUF, lambda: in_protobuf([span(0, attribute(b"k", b"\xff" * LARGEST))])),
        "cut short": Worst(PROTOBUF, lambda: in_protobuf(span(at, attribute(b"k", b"x" * 1000)) for at in range(_MANY))[:-7]),
        "cut short in JSON": Worst(JSON, lambda: in_json(span_in_json(at) for at in range(_MANY))[:-7]),
        "random bytes": Worst(PROTOBUF, lambda: _RANDOM.randbytes(LARGEST)),
        "random bytes in a span": Worst(PROTOBUF, lambda: in_protobuf([span(0, attribute(b"k", _RANDOM.randbytes(LARGEST)))])),
        "random bytes as bytes": Worst(
            PROTOBUF, lambda: in_protobuf([span(0, field(9, field(1, b"k") + field(2, field(7, _RANDOM.randbytes(LARGEST)))))])
        ),
        "log records": Worst(PROTOBUF, lambda: in_protobuf(_record() for _ in range(_MANY)), LOGS),
        "log records with secrets": Worst(
            PROTOBUF, lambda: in_protobuf(_record(b"password=hunter2!") for _ in range(_MANY)), LOGS
        ),
    }
    | {
        f"{name}, {told}": Worst(PROTOBUF, lambda name=name, size=size: in_protobuf(filled(_texts(name, size))))  # type: ignore[misc]
        for name in TEXTS
        for told, size in (("16,000 values", 4096), ("one value", 64 * MEBIBYTE - 8192))
    }
    | {
        f"{name} in JSON": Worst(JSON, lambda name=name: in_json(filled(_texts_in_json(name, 4096))))  # type: ignore[misc]
        for name in TEXTS
    }
)


def _list(texts: Iterable[bytes]) -> bytes:
    """Return an attribute that is a list of texts."""
    return field(9, field(1, b"k") + field(2, field(5, b"".join([field(1, field(1, text)) for text in texts]))))


def _numbers(count: int) -> bytes:
    """Return an attribute that is a list of numbers as large as those of cards."""
    return field(9, field(1, b"k") + field(2, field(5, field(1, b"\x18" + varint(4_111_111_111_111_112)) * count)))


def _deep(index: int) -> bytes:
    value = field(1, b"v")
    for _ in range(30):
        value = field(6, field(1, field(1, b"k") + field(2, value)))
    return span(index, *[field(9, field(1, b"k%d" % at) + field(2, value)) for at in range(5)])


def _deep_in_json(index: int) -> bytes:
    opened, closed = b'{"kvlistValue":{"values":[{"key":"k","value":', b"}]}}"
    value = opened * 30 + b"{}" + closed * 30
    return span_in_json(index, b",".join([b'{"key":"k","value":' + value + b"}"] * 5))


_ids = iter(range(1, 10**9))


def _record(text: bytes = b"v") -> bytes:
    """Return a log record that is kept."""
    ids = field(9, next(_ids).to_bytes(16, "big")) + field(10, b"12345678")
    return field(2, ids + field(12, b"gen_ai.user.message") + field(5, field(1, text)))
