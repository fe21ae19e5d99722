"""OTLP as JSON: the bytes of a request in, sealed spans out.

Not protobuf's JSON mapping: OTLP writes ids in hex, which that mapping reads as base64 (reliability D6).
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from collectors.otlp.decoding import (
    BadSpanError,
    Codec,
    Decoded,
    Group,
    Origin,
    accept,
    check_depth,
    decode_groups,
    event_at,
    link_to,
)
from collectors.otlp.wire import AnyValue, KeyValue, Request, Resource, Scope, WireSpan, snake_to_camel
from pipeline.errors import PermanentError
from pipeline.model.span import Attributes, Span, bytes_value

_KINDS: Final = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))
}
_STATUSES: Final = {f"STATUS_CODE_{name}": number for number, name in enumerate(("UNSET", "OK", "ERROR"))}
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
_MAX_INT64: Final = 2**63 - 1
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_SHOWN: Final = 40
_SURROGATES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""An escape of JSON; the group matches where it is one half of a pair whose other half is missing."""

Whole = TypeVar("Whole")


def decode(body: bytes, project: str, received_ns: int) -> Decoded:
    """Read an ``ExportTraceServiceRequest`` (or a ``TracesData``) as OTLP/JSON writes it.

    Unknown fields are ignored (O14). Names in snake case and enums by name are read although OTLP forbids to send them (O13).

    Raises:
        PermanentError: the bytes are no such object.
    """
    try:
        request = _open(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PermanentError(f"the body is not an OTLP trace request in JSON: {error}") from error
    return decode_groups(_groups(request), _CODEC, project, received_ns)


def _open(body: bytes) -> Request:
    try:
        return _request(body)
    except msgspec.DecodeError:
        # Half a surrogate pair is no reason to lose a span (reliability R82).
        mended = _SURROGATES.sub(_mend, body)
        if mended == body:
            raise
        return _request(mended)


def _request(body: bytes) -> Request:
    # A quotation mark that is not escaped ends a key or a text: bodies without such a key skip the costly way.
    return _request_decoder.decode(snake_to_camel(body) if b'_spans"' in body else body)


def _mend(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def _groups(request: Request) -> Iterator[Group[msgspec.Raw]]:
    for resource_spans in request.resource_spans or ():
        for scope_spans in resource_spans.scope_spans or ():
            yield Group(resource_spans.resource, scope_spans.scope, scope_spans.spans or ())


def _part(decoder: msgspec.json.Decoder[Whole], raw: msgspec.Raw, what: str) -> Whole:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadSpanError(f"{what} does not decode: {error}") from error


def _resource(raw: msgspec.Raw) -> Attributes:
    resource = _part(_resource_decoder, raw, "its resource")
    return _attributes(resource.attributes) if resource else {}


def _scope(raw: msgspec.Raw) -> tuple[str, str]:
    scope = _part(_scope_decoder, raw, "its scope")
    return (scope.name or "", scope.version or "") if scope else ("", "")


def _span(raw: msgspec.Raw, origin: Origin) -> Span:
    span = _part(_span_decoder, raw, "a span")
    status = span.status
    return accept(
        origin,
        trace_id=_id(span.trace_id, "traceId"),
        span_id=_id(span.span_id, "spanId"),
        parent_id=_id(span.parent_span_id, "parentSpanId"),
        name=span.name or "",
        start_ns=_integer(span.start_time_unix_nano, "startTimeUnixNano"),
        end_ns=_integer(span.end_time_unix_nano, "endTimeUnixNano"),
        kind=_enum(span.kind, _KINDS, "kind"),
        status_code=_enum(status.code, _STATUSES, "status.code") if status else 0,
        status_message=(status.message or "") if status else "",
        attributes=_attributes(span.attributes),
        events=tuple(
            [
                event_at(event.name or "", _integer(event.time_unix_nano, "events.timeUnixNano"), _attributes(event.attributes))
                for event in span.events or ()
            ]
        ),
        links=tuple(
            [
                link_to(_id(link.trace_id, "links.traceId"), _id(link.span_id, "links.spanId"), _attributes(link.attributes))
                for link in span.links or ()
            ]
        ),
        trace_state=span.trace_state or "",
        flags=_integer(span.flags, "flags"),
        dropped=_integer(span.dropped_attributes_count, "droppedAttributesCount")
        + _integer(span.dropped_events_count, "droppedEventsCount")
        + _integer(span.dropped_links_count, "droppedLinksCount"),
    )


def _id(text: str | None, field: str) -> bytes:
    """Read hex digits of either case. Base64 is refused, not guessed at (reliability R1)."""
    if not text:
        return b""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if 2 * len(raw) != len(text):
        raise BadSpanError(f"{field} {text[:_SHOWN]!r} is not hex: OTLP/JSON writes ids as hex digits, not as base64")
    return raw


def _integer(value: float | str | None, field: str) -> int:
    """Read a 64-bit integer: OTLP/JSON writes them as decimal strings or as numbers (O15)."""
    if value is None:
        return 0
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise BadSpanError(f"{field} {value[:_SHOWN]!r} is not a whole number")
        return int(value)
    if value != int(value):
        raise BadSpanError(f"{field} {value} is not a whole number")
    return int(value)


def _enum(value: float | str | None, names: dict[str, int], field: str) -> int:
    if isinstance(value, str):
        if value not in names:
            raise BadSpanError(f"{field} {value[:_SHOWN]!r} is unknown; send the number")
        return names[value]
    return _integer(value, field)


def _attributes(pairs: Iterable[KeyValue | None] | None, depth: int = 0) -> Attributes:
    """Return the attributes; of a key that is there twice the last counts (O17)."""
    return {pair.key or "": _value(pair.value, depth) for pair in pairs or () if pair is not None}


def _value(value: AnyValue | None, depth: int) -> Any:
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return _int64(value.int_value)
    if value.double_value is not None:
        return _double(value.double_value)
    if value.bytes_value is not None:
        return bytes_value(_bytes(value.bytes_value))
    return _nested(value, depth + 1) if value.array_value or value.kvlist_value else value.bool_value


def _nested(value: AnyValue, depth: int) -> list[Any] | Attributes:
    check_depth(depth)
    if value.array_value:
        return [_value(item, depth) for item in value.array_value.values or ()]
    return _attributes(value.kvlist_value.values if value.kvlist_value else None, depth)


def _int64(value: float | str) -> int:
    number = _integer(value, "intValue")
    if not -_MAX_INT64 - 1 <= number <= _MAX_INT64:
        raise BadSpanError(f"intValue {str(value)[:_SHOWN]} does not fit in 64 bits")
    return number


def _double(value: float | str) -> float | str:
    if not isinstance(value, str) or value in _NOT_FINITE:
        return value
    try:
        return _double_decoder.decode(value)
    except msgspec.DecodeError as error:
        raise BadSpanError(f"doubleValue {value[:_SHOWN]!r} is not a number") from error


def _bytes(text: str) -> bytes:
    """Read base64 in either alphabet, padded or not, as protobuf's JSON mapping allows."""
    text = text.translate(_STANDARD_ALPHABET).rstrip("=")
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except Base64Error as error:
        raise BadSpanError(f"bytesValue is not base64: {error}") from error


_STANDARD_ALPHABET: Final = str.maketrans("-_", "+/")
_request_decoder: Final = msgspec.json.Decoder(Request)
_resource_decoder: Final = msgspec.json.Decoder(Resource | None)
_scope_decoder: Final = msgspec.json.Decoder(Scope | None)
_span_decoder: Final = msgspec.json.Decoder(WireSpan)
_double_decoder: Final = msgspec.json.Decoder(float)
_CODEC = Codec(_resource, _scope, _span)
