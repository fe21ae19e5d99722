"""Content: OTLP of which nobody says how it is encoded, as it lies on a topic that others write.

A receiver is told the encoding and may take an empty request. What lies on a topic was meant to be spans: bytes in which none stand, and
which are more than empty envelopes, are another format, and not silence.
"""

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.unknown_fields import UnknownFieldSet

from collectors.otlp.decoding import Decoded, Item
from collectors.otlp.envelope import Request
from collectors.otlp.signal import Encoding, Signal
from collectors.redaction.redactor import Redactor
from pipeline.errors import PermanentError

_JSON_BEGINS: Final = (b"{", b"[", b'"', b"\xef\xbb\xbf")
"""No message of OTLP begins with one of these bytes: they would be groups, and fields that it has not."""
_NOT_READ: Final = frozenset({3, 1000})
"""Fields of OTLP that are in no schema of ours: the address of a schema, and what was deprecated before its first release."""
_JSON_KEYS: Final = (b'"resourceSpans"', b'"resource_spans"')


def encoding_of(value: bytes) -> Encoding:
    """Return how bytes are encoded, by how they begin."""
    return (
        Encoding.JSON if value.lstrip(b" \t\r\n").startswith(_JSON_BEGINS) and not value.startswith(b"\n") else Encoding.PROTOBUF
    )


def decode(
    value: bytes | None,
    traces: Signal[Item],
    project: str,
    received_ns: int,
    encoding: Encoding | None = None,
    redactor: Redactor | None = None,
) -> Decoded[Item]:
    """Read the spans of a record as ``traces`` says, redacted where a redactor is given; ``encoding`` None tells by the content.

    Raises:
        PermanentError: it has no value, or none that is OTLP with spans.
    """
    if value is None:
        raise PermanentError("the record has no value")
    if not value:
        raise PermanentError("the record's value is empty")
    spoken = encoding or encoding_of(value)
    decoded = traces.decoders[spoken](value, project, received_ns, redactor)
    if not decoded.items and not decoded.rejected and not _is_envelope(value, spoken):
        raise PermanentError(f"the value reads as {spoken}, and is not OTLP: no field of it is one of a request with spans")
    return decoded


def _is_envelope(value: bytes, encoding: Encoding) -> bool:
    """Whether a request without spans has nothing in it that its format does not know."""
    if encoding is Encoding.JSON:
        return any(key in value for key in _JSON_KEYS)
    request = Request.FromString(value)
    return not any(_has_unknown(message) for message in _messages(request))


def _messages(request: Any) -> list[Any]:
    resources = list(request.resource_spans)
    return [request, *resources, *(scope for one in resources for scope in one.scope_spans)]


def _has_unknown(message: Any) -> bool:
    """Whether a field is set that OTLP does not have."""
    unknown: Iterable[Any] = UnknownFieldSet(message)  # type: ignore[assignment] # iterable, which its stub does not say
    return any(field.field_number not in _NOT_READ for field in unknown)
