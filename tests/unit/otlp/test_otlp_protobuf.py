"""What only protobuf can get wrong."""

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from unit.otlp.wire_forms import request, text, wire_span

from collectors.otlp import protobuf
from collectors.otlp.mending import MAX_DEPTH, TOO_DEEP
from pipeline.errors import PermanentError

PLACEHOLDER = "five!"


def _with_bytes(where: str, raw: bytes) -> bytes:
    """Two good spans around one; ``raw`` takes the place of a text of the same length there."""
    assert len(raw) == len(PLACEHOLDER)
    odd = wire_span(name="odd", attributes=[text("a", PLACEHOLDER)] if where == "attribute" else [])
    message = request(
        wire_span(name="before"), odd, wire_span(name="after"), service=PLACEHOLDER if where == "resource" else "shop"
    )
    if where == "scope":
        message.resource_spans[0].scope_spans[0].scope.name = PLACEHOLDER
    return message.SerializeToString().replace(PLACEHOLDER.encode(), raw)


@pytest.mark.parametrize("where", ["attribute", "resource", "scope"])
def test_text_that_is_not_utf8_is_kept_with_replacement_characters(where: str) -> None:
    decoded = protobuf.decode(_with_bytes(where, b"fiv\xff\xfe"), "p", 1)
    assert ([span.name for span in decoded.spans], decoded.rejected) == (["before", "odd", "after"], 0)
    odd = decoded.spans[1]
    found = {"attribute": odd.attributes.get("a"), "resource": odd.resource["service.name"], "scope": odd.scope_name}
    assert found[where] == "fiv\ufffd\ufffd"


@pytest.mark.parametrize("body", [b"\xff", b"garbage", b'{"resourceSpans": []}'], ids=repr)
def test_bytes_that_are_no_request_are_refused_whole(body: bytes) -> None:
    with pytest.raises(PermanentError, match="not an OTLP trace request in protobuf"):
        protobuf.decode(body, "p", 1)


def test_a_request_that_is_cut_short_is_refused_whole() -> None:
    with pytest.raises(PermanentError, match="not an OTLP trace request in protobuf"):
        protobuf.decode(request(wire_span()).SerializeToString()[:-1], "p", 1)


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field: what protobuf's own classes refuse to build so deep."""
    size, length = len(content), b""
    while size > 127:
        length, size = length + bytes([size % 128 + 128]), size // 128
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def _request_with_nested_maps(levels: int, *, in_event: bool) -> bytes:
    value = _field(1, b"deep")
    for _ in range(levels):
        value = _field(6, _field(1, _field(1, b"k") + _field(2, value)))
    attribute = _field(1, b"deep") + _field(2, value)
    deep = wire_span(name="deep").SerializeToString() + (_field(11, _field(3, attribute)) if in_event else _field(9, attribute))
    other = wire_span(name="other").SerializeToString()
    return _field(1, _field(2, _field(2, deep) + _field(2, other)))


@pytest.mark.parametrize("in_event", [False, True], ids=["attribute", "event"])
@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1, 100, 2000])
def test_a_map_may_nest_to_the_limit_and_what_is_deeper_is_replaced(levels: int, in_event: bool) -> None:
    decoded = protobuf.decode(_request_with_nested_maps(levels, in_event=in_event), "p", 1)
    assert ([span.name for span in decoded.spans], decoded.rejected) == (["deep", "other"], 0)
    deep = decoded.spans[0]
    value = (deep.events[0] if in_event else deep).attributes["deep"]
    for _ in range(MAX_DEPTH):
        value = value["k"]
    assert value == ("deep" if levels == MAX_DEPTH else TOO_DEEP)


def test_no_bytes_are_an_empty_request() -> None:
    assert protobuf.decode(b"", "p", 1).spans == ()


def test_traces_data_reads_the_same() -> None:
    message = request(wire_span())
    data = TracesData(resource_spans=message.resource_spans)
    assert protobuf.decode(data.SerializeToString(), "p", 1) == protobuf.decode(message.SerializeToString(), "p", 1)
