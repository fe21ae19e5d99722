"""Spans as OTLP protobuf again: what :mod:`.protobuf` reads back as the same spans. The hot path of a collector that feeds a broker.

Each span is serialised once, and put into its envelope as bytes; so its size is known before it is decided what it travels with.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from collectors.otlp.decoding import BadSpanError
from collectors.otlp.envelope import Request
from collectors.otlp.mending import MAX_DEPTH
from pipeline.errors import PermanentError
from pipeline.model.span import Attributes, Span, bytes_value

UNSAYABLE: Final = (ValueError, TypeError, RecursionError, BadSpanError)
"""What is raised for a value that OTLP cannot say: protobuf says ValueError of a number that is too large and of text that is not Unicode,
TypeError of another kind of value."""
_FRAME: Final = 6
"""Bytes in front of a message within a message, at most: a tag and a length below 2³⁵."""
_SPAN: Final = _FRAME + 8
"""Bytes that a span takes beside its own: its frame, and when it was received."""
_SCOPE: Final = 3 * _FRAME + 1
"""The same of a scope: its frame, that of its spans, and that of when they were received, whose tag is longer."""

Fields: TypeAlias = dict[str, Any]
"""A message by the names of its fields. Protobuf reads such a dict in half the time that it takes to make the message an object."""


class Part(NamedTuple):
    """One span and where it comes from, as bytes; and what it takes to send it on its way."""

    resource: bytes
    scope: bytes
    span: bytes
    project: str
    trace_id: str
    """In lower-case hex."""
    received_ns: int


class TracesData:
    """An OTLP ``TracesData`` in the making: spans under the resource and the scope that they have in common, and when each was received."""

    def __init__(self) -> None:
        self._resources: dict[bytes, dict[bytes, tuple[list[bytes], list[int]]]] = {}
        self.size = 0
        """Bytes of the message, at most."""
        self.spans = 0

    def cost(self, parts: Iterable[Part]) -> int:
        """Return by how many bytes the message grows at most when these are added."""
        cost = 0
        new: dict[bytes, set[bytes]] = {}
        for resource, scope, span, *_ in parts:
            cost += _SPAN + len(span)
            scopes = self._resources.get(resource)
            if scopes is None and resource not in new:
                cost += 2 * _FRAME + len(resource)
            if (scopes is None or scope not in scopes) and scope not in new.setdefault(resource, set()):
                cost += _SCOPE + len(scope)
                new[resource].add(scope)
        return cost

    def add(self, part: Part) -> None:
        """Add a span."""
        resource, scope, span = part.resource, part.scope, part.span
        scopes = self._resources.get(resource)
        if scopes is None:
            scopes = self._resources[resource] = {}
            self.size += 2 * _FRAME + len(resource)
        within = scopes.get(scope)
        if within is None:
            within = scopes[scope] = [], []
            self.size += _SCOPE + len(scope)
        within[0].append(span)
        within[1].append(part.received_ns)
        self.size += _SPAN + len(span)
        self.spans += 1

    def to_bytes(self) -> bytes:
        """Return the message."""
        message: bytes = Request(
            resource_spans=[
                {
                    "resource": resource,
                    "scope_spans": [
                        {"scope": scope, "spans": spans, "received_at": received} for scope, (spans, received) in scopes.items()
                    ],
                }
                for resource, scopes in self._resources.items()
            ]
        ).SerializeToString()
        return message


def encode(spans: Sequence[Span]) -> bytes:
    """Return ``TracesData`` that reads as these spans, apart from their project.

    Raises:
        PermanentError: see :func:`parts`.
    """
    data = TracesData()
    for one in parts(spans):
        data.add(one)
    return data.to_bytes()


def parts(spans: Iterable[Span]) -> list[Part]:
    """Serialise each span; in order.

    Raises:
        PermanentError: one of them is nothing that OTLP can say.
    """
    # Spans of one request share one resource object: it is serialised once. The spans keep it alive, so its id stays its own.
    origins: dict[tuple[int, str, str], tuple[bytes, bytes]] = {}
    found: list[Part] = []
    for span in spans:
        key = id(span.resource), span.scope_name, span.scope_version
        try:
            if key not in origins:
                origins[key] = origin(span.resource, span.scope_name, span.scope_version)
            found.append(part(span, *origins[key]))
        except UNSAYABLE as error:
            raise PermanentError(
                f"span {span.span_id!a} of trace {span.trace_id!a} cannot be written as OTLP: {error}"
            ) from error
    return found


def part(span: Span, resource: bytes, scope: bytes) -> Part:
    """Serialise a span whose resource and scope are bytes already; raise one of :data:`UNSAYABLE` where that is not possible."""
    return Part(resource, scope, _span(span), span.project, span.trace_id, span.received_ns)


def origin(resource: Attributes, scope_name: str, scope_version: str) -> tuple[bytes, bytes]:
    """Serialise a resource and a scope; raise one of :data:`UNSAYABLE` where that is not possible."""
    scope = InstrumentationScope(name=scope_name, version=scope_version)
    return Resource(attributes=_attributes(resource)).SerializeToString(), scope.SerializeToString()


def _span(span: Span) -> bytes:
    message = trace_pb2.Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id),
        name=span.name,
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        kind=span.kind,  # type: ignore[arg-type] # the enum is open: a number of the future stays what it is
        attributes=_attributes(span.attributes),
        trace_state=span.trace_state,
        flags=span.flags,
        dropped_attributes_count=span.dropped,
    )
    # Most spans have none of these.
    if span.status_code or span.status_message:
        message.status.code = span.status_code  # type: ignore[assignment]
        message.status.message = span.status_message
    for event in span.events:
        message.events.add(name=event.name, time_unix_nano=event.time_ns, attributes=_attributes(event.attributes))
    for link in span.links:
        trace_id, span_id = bytes.fromhex(link.trace_id), bytes.fromhex(link.span_id)
        message.links.add(trace_id=trace_id, span_id=span_id, attributes=_attributes(link.attributes))
    return message.SerializeToString()


def _attributes(attributes: Attributes, depth: int = 0) -> Any:
    """Return the ``KeyValue`` fields of attributes; Any, because the types know of messages only."""
    return [
        # Nearly every attribute is text.
        {"key": key, "value": {"string_value": value} if type(value) is str else _value(value, depth)}
        for key, value in attributes.items()
    ]


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise BadSpanError(f"an attribute is nested deeper than {MAX_DEPTH} levels")


def _value(value: Any, depth: int) -> Fields:
    write = _WRITERS.get(type(value))
    if write is None:
        raise BadSpanError(f"an attribute is of type {type(value).__name__}")
    return write(value, depth)


def _list(value: Sequence[Any], depth: int) -> Fields:
    _check_depth(depth + 1)
    return {"array_value": {"values": [_value(item, depth + 1) for item in value]}}


def _dict(value: Attributes, depth: int) -> Fields:
    raw = _bytes_in(value)
    if raw is not None:
        return {"bytes_value": raw}
    _check_depth(depth + 1)
    return {"kvlist_value": {"values": _attributes(value, depth + 1)}}


def _bytes_in(value: Attributes) -> bytes | None:
    """Return the bytes of which this is what :func:`~pipeline.model.span.bytes_value` makes; None where it is of none."""
    text = value.get("bytesValue")
    if len(value) != 1 or not isinstance(text, str):
        return None
    try:
        raw = b64decode(text, validate=True)
    except ValueError:
        return None
    return raw if bytes_value(raw) == value else None


_WRITERS: Final[dict[type, Callable[[Any, int], Fields]]] = {
    str: lambda value, _: {"string_value": value},
    bool: lambda value, _: {"bool_value": value},
    int: lambda value, _: {"int_value": value},
    float: lambda value, _: {"double_value": value},
    type(None): lambda _, __: {},
    list: _list,
    dict: _dict,
}
