"""Parts of OTLP/JSON that every signal has: the envelope, resources, scopes, attributes, values, ids and numbers."""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from collectors.otlp.decoding import BadSpanError, Group
from collectors.otlp.json_mending import MAX_OBJECTS, is_too_wide, mended
from collectors.otlp.mending import MAX_DEPTH, TOO_DEEP
from collectors.otlp.values import ATTRIBUTE, BYTES, IN_SNAKE_CASE, count
from collectors.otlp.wire import (
    AnyValue,
    Envelope,
    KeyValue,
    Resource,
    Scope,
    in_snake_case,
    outside_decoder,
    request_decoder,
    snake_to_camel,
)
from pipeline.errors import PermanentError
from pipeline.model.span import Attributes, bytes_value

_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
_MAX_INT64: Final = 2**63 - 1
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_SHOWN: Final = 40
_EMPTY: Final = re.compile(rb"\s*\{\s*\}\s*")

Whole = TypeVar("Whole")


def opened(body: bytes, envelope: Envelope, what: str) -> Iterator[Group[msgspec.Raw]]:
    """Return the groups of a request, the parts of which are still JSON; ``what`` says what it is a request of.

    Raises:
        PermanentError: the bytes are no such object.
    """
    try:
        request = _opened(body, envelope)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PermanentError(f"the body is not an OTLP {what} request in JSON: {error}") from error
    return _groups(request)


def _groups(request: Any) -> Iterator[Group[msgspec.Raw]]:
    for resource in request.resources or ():
        for scope in resource.scopes or ():
            yield Group(resource.resource, scope.scope, scope.items or ())


def _opened(body: bytes, envelope: Envelope) -> Any:
    try:
        return _request(body, envelope)
    except (msgspec.DecodeError, RecursionError):
        whole = mended(body)
        if whole == body:
            raise
        return _request(whole, envelope)


def _request(body: bytes, envelope: Envelope) -> Any:
    # A quotation mark that is not escaped ends a key or a text: bodies without such a key skip the costly way.
    written_so = in_snake_case(envelope)[0].rpartition("_")[2]
    if f'_{written_so}"'.encode() in body:
        count(len(body) // IN_SNAKE_CASE)
        body = snake_to_camel(body)
    return request_decoder(envelope).decode(body)


def strange(body: bytes, envelope: Envelope) -> str:
    """Return what to tell the sender of an object that holds something, and nothing of a request; empty where nothing is strange.

    An unknown field is no error (O14), and an empty request is none either (O5); so it is a warning (O6).
    """
    if _EMPTY.fullmatch(body):
        return ""
    try:
        outside = outside_decoder(envelope).decode(body)
    except (msgspec.DecodeError, RecursionError):  # it was mended before it was read
        return ""
    has_it = outside.camel is not msgspec.UNSET or outside.snake is not msgspec.UNSET
    return "" if has_it else f"nothing was stored: the body has no {envelope[0]}"


def wrapping(envelope: Envelope) -> Callable[[Group[msgspec.Raw]], bytes]:
    """Return what makes a group a request again."""
    resources, scopes, items = envelope

    def wrapped(group: Group[msgspec.Raw]) -> bytes:
        inside = [{"scope": group.scope, items: group.items}]
        return msgspec.json.encode({resources: [{"resource": group.resource, scopes: inside}]})

    return wrapped


def part(decoder: msgspec.json.Decoder[Whole], raw: msgspec.Raw, what: str) -> Whole:
    """Return a part of a request as a message, mended where that helps.

    Raises:
        BadSpanError: it is no such message, or has too many values.
    """
    text = memoryview(raw)
    if len(text) > MAX_OBJECTS and is_too_wide(bytes(text)):
        raise BadSpanError(f"{what} has more than {MAX_OBJECTS} values")
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _mended_part(decoder, bytes(text), what)


def _mended_part(decoder: msgspec.json.Decoder[Whole], text: bytes, what: str) -> Whole:
    try:
        return decoder.decode(mended(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadSpanError(f"{what} does not decode: {error}") from error


def resource(raw: msgspec.Raw) -> Attributes:
    """Return the attributes of a resource; raise BadSpanError where it is none."""
    found = part(_resource_decoder, raw, "its resource")
    return attributes(found.attributes) if found else {}


def scope(raw: msgspec.Raw) -> tuple[str, str]:
    """Return name and version of a scope; raise BadSpanError where it is none."""
    found = part(_scope_decoder, raw, "its scope")
    return (found.name or "", found.version or "") if found else ("", "")


def hex_id(text: str | None, field: str) -> bytes:
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


def integer(value: float | str | None, field: str) -> int:
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


def enum(value: float | str | None, names: dict[str, int], field: str) -> int:
    """Read a number that has a name; the name is read too, although OTLP forbids to send it (O13)."""
    if isinstance(value, str):
        if value not in names:
            raise BadSpanError(f"{field} {value[:_SHOWN]!r} is unknown; send the number")
        return names[value]
    return integer(value, field)


def attributes(pairs: Sequence[KeyValue | None] | None, depth: int = 0) -> Attributes:
    """Return the attributes; of a key that is there twice the last counts (O17)."""
    if not pairs:
        return {}
    count(ATTRIBUTE * len(pairs))
    return {pair.key or "": value(pair.value, depth) for pair in pairs if pair is not None}


def value(some: AnyValue | None, depth: int = 0) -> Any:
    """Return a value in plain."""
    if some is None:
        return None
    if some.string_value is not None:
        return some.string_value
    if some.int_value is not None:
        return _int64(some.int_value)
    if some.double_value is not None:
        return _double(some.double_value)
    if some.bytes_value is not None:
        count(len(some.bytes_value) // BYTES)
        return bytes_value(_bytes(some.bytes_value))
    return _nested(some, depth + 1) if some.array_value or some.kvlist_value else some.bool_value


def _nested(some: AnyValue, depth: int) -> list[Any] | Attributes | str:
    if depth > MAX_DEPTH:
        return TOO_DEEP
    if some.array_value:
        count(len(some.array_value.values or ()))
        return [value(item, depth) for item in some.array_value.values or ()]
    return attributes(some.kvlist_value.values if some.kvlist_value else None, depth)


def _int64(value: float | str) -> int:
    number = integer(value, "intValue")
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
_resource_decoder: Final = msgspec.json.Decoder(Resource | None)
_scope_decoder: Final = msgspec.json.Decoder(Scope | None)
_double_decoder: Final = msgspec.json.Decoder(float)
