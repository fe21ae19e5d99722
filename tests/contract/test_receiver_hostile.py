"""Hostile inputs over real transports: each is answered within a second, without a 5xx, and costs only what it spoils (reliability 2.10)."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from contract.conformance import Told
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from stopwatch import Stopwatch
from unit.otlp.transports import TRANSPORTS, Answer, Service, serving
from unit.otlp.wire_forms import SPAN_ID, TRACE_ID, as_json, request, text, wire_span

MEBIBYTE = 1024 * 1024
PLAIN = ("grpc", "http protobuf", "http json")


@pytest.fixture(params=PLAIN)
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def _sent(service: Service, where: str, body: bytes) -> Answer:
    """Send, and see to it that the answer comes within a second, and that others are not held up for so long."""
    whole = Stopwatch()
    sending = asyncio.create_task(TRANSPORTS[where](service)(body))
    while not sending.done():
        turn = Stopwatch()
        await asyncio.sleep(0.005)
        assert turn.seconds < 1, "everybody was held up"
    assert whole.seconds < 1
    return sending.result()


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    written = b""
    while number > 0x7F:
        written += bytes([number & 0x7F | 0x80])
        number >>= 7
    return written + bytes([number])


def _deep_protobuf(depth: int, kvlist: bool) -> bytes:
    """A span between two others, with a value that is nested so deep; made from the inside out."""
    heads: list[bytes] = []
    size = 0
    for _ in range(depth):
        for number in (2, 1, 6) if kvlist else (1, 5):  # value, values, kvlist_value; or values, array_value
            head = bytes([number << 3 | 2]) + _varint(size)
            heads.append(head)
            size += len(head)
    value = b"".join(reversed(heads))
    deep = wire_span(name="deep").SerializeToString() + _field(9, _field(1, b"k") + _field(2, value))
    spans = [wire_span(name="a").SerializeToString(), deep, wire_span(name="b").SerializeToString()]
    return _field(1, _field(2, b"".join(_field(2, span) for span in spans)))


def _deep_json(depth: int, kvlist: bool) -> bytes:
    opened, closed = ('{"kvlistValue":{"values":[{"key":"k","value":', "}]}}") if kvlist else ('{"arrayValue":{"values":[', "]}}")
    value = opened * depth + "{}" + closed * depth
    span = f'{{"traceId":"{TRACE_ID.hex()}","spanId":"{SPAN_ID.hex()}","name":"%s"%s}}'
    deep = span % ("deep", f',"attributes":[{{"key":"k","value":{value}}}]')
    return f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span % ("a", "")},{deep},{span % ("b", "")}]}}]}}]}}'.encode()


@pytest.mark.parametrize("kvlist", [False, True], ids=["lists", "maps"])
@pytest.mark.parametrize("depth", [30, 32, 33, 60, 100, 2_000, 20_000, 200_000])
async def test_deep_values_cost_their_own_span_at_most(depth: int, kvlist: bool, where: str, told: Told) -> None:
    body = _deep_json(depth, kvlist) if "json" in where else _deep_protobuf(depth, kvlist)
    async with serving({}, max_body=64 * MEBIBYTE) as service:
        answer = await _sent(service, where, body)
        names = [span.name for span in service.store.spans]
    if depth <= 32:
        assert (answer.outcome, names) == ("ok", ["a", "deep", "b"])
    elif answer.outcome == "ok":
        assert answer.response is not None
        assert (names, answer.response.partial_success.rejected_spans) in ((["a", "b"], 1), (["a", "deep", "b"], 0))
    else:
        # So deep that JSON cannot be stepped over: then nobody can tell where the next span begins.
        assert (names, "json" in where) == ([], True)
        assert answer.outcome == "invalid" or (answer.outcome == "too large" and len(body) > MEBIBYTE)
    told("H3", f"values {depth} deep, {'maps' if kvlist else 'lists'}", where, f"{answer.outcome}, {len(names)} of 3 stored")


@pytest.mark.parametrize("place", ["unknown field of a span", "unknown field at the top", "the whole body"])
@pytest.mark.parametrize("depth", [100, 2_000, 200_000])
async def test_deep_json_where_otlp_has_nothing(depth: int, place: str, told: Told) -> None:
    nested = "[" * depth + "]" * depth
    span = {"traceId": TRACE_ID.hex(), "spanId": SPAN_ID.hex(), "name": "a", "x": "NESTED" if place.endswith("span") else 1}
    whole: dict[str, Any] = {
        "resourceSpans": [{"scopeSpans": [{"spans": [span]}]}],
        "x": "NESTED" if place.endswith("top") else 1,
    }
    body = nested if place.startswith("the") else json.dumps(whole).replace('"NESTED"', nested)
    async with serving({}, max_body=64 * MEBIBYTE) as service:
        answer = await _sent(service, "http json", body.encode())
        assert answer.outcome in {"ok", "invalid"}
    told("H3", f"{place}, {depth} deep", "http json", answer.outcome)


def _spoiled(message: ResourceSpans | WireSpan) -> bytes:
    """Write a message in which the text XX is not UTF-8."""
    return message.SerializeToString().replace(b"XX", b"\xff\xfe")


PLACES: dict[str, Callable[[], WireSpan]] = {
    "name": lambda: wire_span(name="XX"),
    "key": lambda: wire_span(name="bad", attributes=[text("XX", "v")]),
    "value": lambda: wire_span(name="bad", attributes=[text("k", "XX")]),
    "nested value": lambda: wire_span(
        name="bad", attributes=[KeyValue(key="k", value=AnyValue(array_value=ArrayValue(values=[AnyValue(string_value="XX")])))]
    ),
    "event": lambda: wire_span(name="bad", events=[WireSpan.Event(name="XX")]),
    "event key": lambda: wire_span(name="bad", events=[WireSpan.Event(attributes=[text("XX", "v")])]),
    "trace state": lambda: wire_span(name="bad", trace_state="XX"),
}


@pytest.mark.parametrize("place", [*PLACES, "resource"])
@pytest.mark.parametrize("where", ["grpc", "http protobuf"])
async def test_text_that_is_not_utf_8_costs_its_own_span_at_most(place: str, where: str, told: Told) -> None:
    good = [wire_span(name="a").SerializeToString(), wire_span(name="b").SerializeToString()]
    if place == "resource":
        bad = ResourceSpans(
            resource=Resource(attributes=[text("k", "XX")]), scope_spans=[ScopeSpans(spans=[wire_span(name="bad")])]
        )
        body = _field(1, _field(2, b"".join(_field(2, one) for one in good)))
        body += _field(1, _spoiled(bad))
    else:
        body = _field(1, _field(2, b"".join(_field(2, one) for one in (good[0], _spoiled(PLACES[place]()), good[1]))))
    async with serving({}) as service:
        answer = await _sent(service, where, body)
        names = [span.name for span in service.store.spans]
    assert answer.outcome == "ok"
    assert [name for name in names if name in "ab"] == ["a", "b"]
    told("H4", f"invalid UTF-8: {place}", where, f"ok, {len(names)} of 3 stored")


@pytest.mark.parametrize("byte", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"], ids=repr)
async def test_json_that_is_not_utf_8_is_answered(byte: bytes, told: Told) -> None:
    body = as_json(request(wire_span(name="a"), wire_span(name="XX"))).replace(b"XX", byte)
    async with serving({}) as service:
        answer = await _sent(service, "http json", body)
        assert answer.outcome in {"ok", "invalid"}
    told("H4", f"invalid UTF-8 in JSON: {byte!r}", "http json", answer.outcome)


TEXTS = {
    "half a pair": "\ud83d",
    "NUL": "a\u0000b",
    "right to left": "\u202eabc",
    "decomposed": "e\u0301",
    "full width": "ｆｉｎｄ",
    "ligature": "ﬁnd",
    "line separators": "a\r\n\u0085\u2028b",
    "emoji": "👩\u200d👩\u200d👧",
}


@pytest.mark.parametrize("name", TEXTS)
async def test_odd_text_is_stored_as_it_was_sent(name: str, where: str, told: Told) -> None:
    text_sent = TEXTS[name]
    span = {
        "traceId": TRACE_ID.hex(),
        "spanId": SPAN_ID.hex(),
        "name": text_sent,
        "attributes": [{"key": text_sent, "value": {}}],
    }
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    stored = "\ufffd" if name == "half a pair" else text_sent
    if "json" not in where:
        if name == "half a pair":
            pytest.skip("protobuf has no such text")
        body = request(wire_span(name=text_sent, attributes=[KeyValue(key=text_sent)])).SerializeToString()
    async with serving({}) as service:
        assert (await _sent(service, where, body)).outcome == "ok"
        assert [(span.name, list(span.attributes)) for span in service.store.spans] == [(stored, [stored])]
    told("H5", f"odd text: {name}", where, "ok, as sent")


WIDE: dict[str, Callable[[], list[WireSpan]]] = {
    "one trace of 16,000 spans": lambda: [wire_span(span_id=(index + 1).to_bytes(8, "big")) for index in range(16_000)],
    "a span of 10 MB": lambda: [wire_span(name="x" * 10_000_000)],
    "a value of 10 MB": lambda: [wire_span(attributes=[text("k", "x" * 10_000_000)])],
    "143 spans of 120 KB": lambda: [wire_span(attributes=[text("prompt", "x" * 120_000)]) for _ in range(143)],
    "1,000 attributes": lambda: [wire_span(attributes=[text(f"k{index}", "v") for index in range(1000)])],
    "1,000 times one key": lambda: [wire_span(attributes=[text("k", f"{index}") for index in range(1000)])],
    "a million attributes": lambda: [
        WireSpan.FromString(wire_span().SerializeToString() + _field(9, b"") * 1_000_000),
    ],
    "a key of 65,000 characters": lambda: [wire_span(attributes=[text("k" * 65_000, "v")])],
    "a map of 100,000 keys": lambda: [
        wire_span(
            attributes=[
                KeyValue(
                    key="m", value=AnyValue(kvlist_value=KeyValueList(values=[text(f"{index}", "") for index in range(100_000)]))
                )
            ]
        )
    ],
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("where", ["grpc", "http protobuf"])
async def test_wide_requests_are_answered_and_never_sent_again(name: str, where: str, told: Told) -> None:
    body = request(*WIDE[name]()).SerializeToString()
    async with serving({}, max_body=64 * MEBIBYTE) as service:
        answer = await _sent(service, where, body)
        assert answer.outcome == "ok"
        assert answer.response is not None
        rejected = answer.response.partial_success.rejected_spans
        assert len(service.store.spans) + rejected == len(WIDE[name]())
    told("O25" if "10 MB" in name else "H9", name, where, f"ok, {len(service.store.spans)} stored, {rejected} rejected")
