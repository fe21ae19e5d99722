"""Parts of OTLP in protobuf that every signal has: the envelope, resources, scopes, attributes and values."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import isfinite, isnan
from operator import itemgetter
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from collectors.otlp.decoding import MAX_TIME, MAX_UINT32, BadSpanError, Group
from collectors.otlp.envelope import Request
from collectors.otlp.mending import MAX_DEPTH, RESOURCE, SCOPE, TOO_DEEP, Fields, MendError, mended
from collectors.otlp.trimming import OF_RESOURCE, OF_SCOPE, TooWideError, trimmed
from collectors.otlp.values import ATTRIBUTE, BYTES, count
from pipeline.errors import PermanentError
from pipeline.model.span import Attributes, bytes_value

Whole = TypeVar("Whole", bound=Message)


def opened(body: bytes, what: str, *, own: bool = False) -> Iterator[Group[bytes]]:
    """Return the groups of a request; ``what`` says what it is a request of. With ``own`` it may say when each item was received.

    Raises:
        PermanentError: the bytes are no such message.
    """
    try:
        request = Request.FromString(body)
    except DecodeError as error:
        raise PermanentError(f"the body is not an OTLP {what} request in protobuf: {error}") from error
    return _groups(request, own=own)


def _groups(request: Any, *, own: bool) -> Iterator[Group[bytes]]:
    # The envelope's schema names its fields for spans; those of log records are the same on the wire.
    for resource_spans in request.resource_spans:
        raw = resource_spans.resource
        for scope_spans in resource_spans.scope_spans:
            group = Group(raw, scope_spans.scope, scope_spans.spans)
            yield from _by_receipt(group, scope_spans.received_at) if own else (group,)


def _by_receipt(group: Group[bytes], received: Sequence[int]) -> Iterator[Group[bytes]]:
    """Yield what was received together, in order; all of it where times and items do not belong together."""
    if len(received) != len(group.items) or max(received, default=0) > MAX_TIME:
        yield group
        return
    for time_ns, run in groupby(zip(received, group.items, strict=True), key=itemgetter(0)):
        yield group._replace(items=[item for _, item in run], received_ns=time_ns)


def wrapped(group: Group[bytes]) -> bytes:
    """Return a group as a request again."""
    scope_spans = [{"scope": group.scope, "spans": group.items}]
    raw: bytes = Request(resource_spans=[{"resource": group.resource, "scope_spans": scope_spans}]).SerializeToString()
    return raw


def resource(raw: bytes) -> Attributes:
    """Return the attributes of a resource; raise BadSpanError where it is none."""
    return attributes(parsed(Resource, raw, RESOURCE, OF_RESOURCE, "its resource").attributes)


def scope(raw: bytes) -> tuple[str, str]:
    """Return name and version of a scope; raise BadSpanError where it is none."""
    found = parsed(InstrumentationScope, raw, SCOPE, OF_SCOPE, "its scope")
    return found.name, found.version


def parsed(message: type[Whole], raw: bytes, fields: Fields, most: Mapping[int, int], what: str) -> Whole:
    """Return a part of a request as a message, trimmed and mended where that helps; what is left out counts as dropped.

    Raises:
        BadSpanError: it is no such message, or too wide.
    """
    try:
        raw, left_out = trimmed(raw, most, fields)
        found = _parsed(message, raw, fields)
    except TooWideError as error:
        raise BadSpanError(f"{what} has {error}") from error
    except (DecodeError, MendError) as error:
        raise BadSpanError(f"{what} does not decode: {error}") from error
    if left_out:
        some: Any = found
        some.dropped_attributes_count = min(some.dropped_attributes_count + left_out.total(), MAX_UINT32)
    return found


def _parsed(message: type[Whole], raw: bytes, fields: Fields) -> Whole:
    try:
        return message.FromString(raw)
    except DecodeError:  # text that is not UTF-8, or something nested too deep (reliability D5), or no message
        return message.FromString(mended(raw, fields))


def attributes(pairs: Sequence[KeyValue], depth: int = 0) -> Attributes:
    """Return the attributes; of a key that is there twice the last counts (O17)."""
    count(ATTRIBUTE * len(pairs))
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
            count(len(some.array_value.values))
            # Long lists are of numbers, an embedding's, or of texts; as above, to ask which kind each is takes three times as long.
            return [
                number
                if (number := item.double_value) and isfinite(number)
                else item.string_value or item.int_value or value(item, depth + 1)
                for item in some.array_value.values
            ]
        case "kvlist_value":
            if depth == MAX_DEPTH:
                return TOO_DEEP
            return attributes(some.kvlist_value.values, depth + 1)
        case "bytes_value":
            count(len(some.bytes_value) // BYTES)
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
