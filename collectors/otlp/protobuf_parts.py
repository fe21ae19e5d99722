"""Parts of OTLP in protobuf that every signal has: resources, scopes, attributes and values."""

from collections.abc import Iterable
from math import isfinite, isnan
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from collectors.otlp.decoding import BadSpanError, too_many_values
from collectors.otlp.mending import MAX_DEPTH, RESOURCE, SCOPE, TOO_DEEP, Fields, MendError, has_too_many_values, mended
from pipeline.model.span import Attributes, bytes_value

Whole = TypeVar("Whole", bound=Message)


def resource(raw: bytes) -> Attributes:
    """Return the attributes of a resource; raise BadSpanError where it is none."""
    return attributes(parsed(Resource, raw, RESOURCE, "its resource").attributes)


def scope(raw: bytes) -> tuple[str, str]:
    """Return name and version of a scope; raise BadSpanError where it is none."""
    found = parsed(InstrumentationScope, raw, SCOPE, "its scope")
    return found.name, found.version


def parsed(message: type[Whole], raw: bytes, fields: Fields, what: str) -> Whole:
    """Return a part of a request as a message, mended where that helps.

    Raises:
        BadSpanError: it is no such message, or has too many values.
    """
    if has_too_many_values(raw, fields):
        raise too_many_values(what)
    try:
        return message.FromString(raw)
    except DecodeError:
        pass  # text that is not UTF-8, or something nested too deep (reliability D5), or no message
    try:
        return message.FromString(mended(raw, fields))
    except (DecodeError, MendError) as error:
        raise BadSpanError(f"{what} does not decode: {error}") from error


def attributes(pairs: Iterable[KeyValue], depth: int = 0) -> Attributes:
    """Return the attributes; of a key that is there twice the last counts (O17)."""
    found: Attributes = {}
    for pair in pairs:
        one = pair.value
        # Nearly every attribute is text that is not empty; asking the oneof which it is costs as much as all the rest.
        found[pair.key] = one.string_value or value(one, depth)
    return found


def value(some: AnyValue, depth: int = 0) -> Any:  # noqa: PLR0911 - one return for each kind of value
    """Return a value in plain."""
    match some.WhichOneof("value"):
        case "string_value":
            return some.string_value
        case "int_value":
            return some.int_value
        case "bool_value":
            return some.bool_value
        case "double_value":
            return _number(some.double_value)
        case "array_value":
            if depth == MAX_DEPTH:
                return TOO_DEEP
            return [value(item, depth + 1) for item in some.array_value.values]
        case "kvlist_value":
            if depth == MAX_DEPTH:
                return TOO_DEEP
            return attributes(some.kvlist_value.values, depth + 1)
        case "bytes_value":
            return bytes_value(some.bytes_value)
        case _:  # empty, or an index into a table that only profiles carry (O16)
            return None


def _number(value: float) -> float | str:
    """Return the number, or how OTLP/JSON writes one that JSON has none for."""
    if isfinite(value):
        return value
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
