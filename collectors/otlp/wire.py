"""What an OTLP/JSON request looks like on the wire, as types that msgspec reads.

Every field may be missing or null, which is its default; fields that are not here are skipped unread. A 64-bit integer is a string or a
number, an enum a number or (forbidden, but seen) its name. Resource, scope and span stay raw until their turn.
"""

from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

NULL: Final = msgspec.Raw(b"null")


class Wire(msgspec.Struct, rename="camel", gc=False):
    """A message of OTLP/JSON."""


class KeyValue(Wire):
    """An attribute."""

    key: str | None = None
    value: "AnyValue | None" = None


class ArrayValue(Wire):
    """A list."""

    values: "list[AnyValue | None] | None" = None


class KeyValueList(Wire):
    """A map."""

    values: list[KeyValue | None] | None = None


class AnyValue(Wire):
    """A value: one of these, or none for the empty value."""

    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | float | str | None = None
    double_value: float | str | None = None
    array_value: ArrayValue | None = None
    kvlist_value: KeyValueList | None = None
    bytes_value: str | None = None


class WireEvent(Wire):
    """A span event."""

    time_unix_nano: int | float | str | None = None
    name: str | None = None
    attributes: list[KeyValue | None] | None = None


class WireLink(Wire):
    """A link to another span."""

    trace_id: str | None = None
    span_id: str | None = None
    attributes: list[KeyValue | None] | None = None


class WireStatus(Wire):
    """How a span ended."""

    message: str | None = None
    code: int | float | str | None = None


class WireSpan(Wire):
    """A span."""

    trace_id: str | None = None
    span_id: str | None = None
    trace_state: str | None = None
    parent_span_id: str | None = None
    flags: int | float | str | None = None
    name: str | None = None
    kind: int | float | str | None = None
    start_time_unix_nano: int | float | str | None = None
    end_time_unix_nano: int | float | str | None = None
    attributes: list[KeyValue | None] | None = None
    dropped_attributes_count: int | float | str | None = None
    events: list[WireEvent] | None = None
    dropped_events_count: int | float | str | None = None
    links: list[WireLink] | None = None
    dropped_links_count: int | float | str | None = None
    status: WireStatus | None = None


class WireLogRecord(Wire):
    """A log record."""

    trace_id: str | None = None
    span_id: str | None = None
    event_name: str | None = None
    time_unix_nano: int | float | str | None = None
    observed_time_unix_nano: int | float | str | None = None
    severity_number: int | float | str | None = None
    body: AnyValue | None = None
    attributes: list[KeyValue | None] | None = None
    dropped_attributes_count: int | float | str | None = None


class Resource(Wire):
    """What the spans, or log records, of a resource are about."""

    attributes: list[KeyValue | None] | None = None


class Scope(Wire):
    """The instrumentation that made spans."""

    name: str | None = None
    version: str | None = None


Envelope: TypeAlias = tuple[str, str, str]
"""The keys that lead to the items of a signal, such as resourceSpans, scopeSpans, spans."""


@cache
def request_decoder(envelope: Envelope) -> msgspec.json.Decoder[Any]:
    """Return what reads a request with these keys as ``resources`` with a ``resource`` and ``scopes``, those with a ``scope`` and ``items``.

    The request and the data of a signal (``ExportTraceServiceRequest`` and ``TracesData``) are the same in JSON too.
    """
    resources, scopes, items = envelope
    of_scope = msgspec.defstruct(
        "Scope", [("scope", msgspec.Raw, NULL), ("items", list[msgspec.Raw] | None, None)], rename={"items": items}, gc=False
    )
    of_resource = msgspec.defstruct(
        "Resource",
        [("resource", msgspec.Raw, NULL), ("scopes", list[of_scope] | None, None)],  # type: ignore[valid-type]
        rename={"scopes": scopes},
        gc=False,
    )
    request = msgspec.defstruct("Request", [("resources", list[of_resource] | None, None)], rename={"resources": resources})  # type: ignore[valid-type]
    return msgspec.json.Decoder(request)


@cache
def outside_decoder(envelope: Envelope) -> msgspec.json.Decoder[Any]:
    """Return what reads of an object only whether it has the first of these keys, however it is written; ``UNSET`` where it has not."""
    camel, snake = envelope[0], in_snake_case(envelope)[0]
    fields = [(name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in ("camel", "snake")]
    return msgspec.json.Decoder(msgspec.defstruct("Outside", fields, rename={"camel": camel, "snake": snake}))


def in_snake_case(envelope: Envelope) -> Envelope:
    """Return the keys as some senders write them, which OTLP forbids; read all the same (O13)."""
    resources, scopes, items = (
        "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key) for key in envelope
    )
    return resources, scopes, items


def snake_to_camel(body: bytes) -> bytes:
    """Write every key of a request in camel case. Safe: what users name is never a key in OTLP/JSON, always a value."""
    return msgspec.json.encode(_camel(msgspec.json.decode(body)))


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {_camel_key(key): _camel(item) for key, item in value.items()}
    return [_camel(item) for item in value] if isinstance(value, list) else value


def _camel_key(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word.capitalize() for word in tail)
