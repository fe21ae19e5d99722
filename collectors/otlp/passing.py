"""Passing on: a request of spans in, the same spans out as the bytes in which they travel. The hot path of a collector that feeds a broker.

Nearly every span can stay as it was sent: it reads, it is small, and nothing in it looks like a secret. Its bytes go on as they are, and
nobody makes attributes of them before its owner does. Every other span is read, redacted, fitted and written again.
"""

import re
from typing import Any, Final, Generic

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1 import trace_pb2

from collectors.otlp import json, protobuf
from collectors.otlp.decoding import BadSpanError, Codec, Decoded, Group, read_groups
from collectors.otlp.decoding import Part as Raw
from collectors.otlp.encode import UNSAYABLE, Part, origin, part
from collectors.otlp.fitting import MAX_ATTRIBUTES, MAX_EVENTS, MAX_LINKS, MAX_NAME, MAX_SPAN, MEASURED_ABOVE
from collectors.otlp.json_parts import opened as opened_json
from collectors.otlp.protobuf_parts import opened
from collectors.otlp.signal import Encoding, Signal
from collectors.otlp.span_decoding import SpanReader, check_event, check_link, check_span
from collectors.otlp.traces import TRACES
from collectors.otlp.values import ATTRIBUTE, EVENT, count
from collectors.redaction.redactor import Redactor
from collectors.redaction.walk import Counts
from pipeline.model.span import TRUNCATED_FIELDS, Span

_SMALL: Final = MAX_SPAN // MEASURED_ABOVE
"""Bytes of a span that is within the limit of size, whatever it holds."""
_FEW: Final = 2 * min(MAX_ATTRIBUTES, MAX_EVENTS, MAX_LINKS)
"""Bytes in which nobody can write too many of them."""
_LONG_TEXT: Final = re.compile(rb"\n[\x80-\xff](?:[\x08-\x7f]|[\x80-\xff])")
"""How a text or a name begins that has :data:`MAX_NAME` bytes."""


class Rewriter(Generic[Raw]):
    """Makes parts of the spans of one request, each of them read and written again."""

    def __init__(self, codec: Codec[Raw, Span], project: str, received_ns: int, redactor: Redactor | None) -> None:
        """Take what is the same for the whole request."""
        self._spans: Final[SpanReader[Raw]] = SpanReader(codec, project, received_ns, redactor, finish=lambda span: span)
        self._resource = self._scope = b""

    @property
    def counts(self) -> Counts:
        """What was replaced so far, by detector."""
        return self._spans.counts

    @property
    def truncated(self) -> int:
        """How many spans are not whole."""
        return self._spans.truncated

    def open(self, group: Group[Raw]) -> None:
        """Read resource and scope of a group; raise BadSpanError where one of them is none."""
        self._spans.open(group)
        _, _, resource, name, version = self._spans.origin
        self._resource, self._scope = origin(resource, name, version)

    def read(self, raw: Raw) -> Part:
        """Return a span of the group; raise BadSpanError where it cannot be accepted."""
        try:
            return part(self._spans.read(raw), self._resource, self._scope)
        except UNSAYABLE as error:
            raise BadSpanError(str(error)) from error


class Passer(Rewriter[bytes]):
    """The same for protobuf, where most spans stay as they are."""

    def __init__(self, project: str, received_ns: int, redactor: Redactor | None) -> None:
        """Take what is the same for the whole request."""
        super().__init__(protobuf.CODEC, project, received_ns, redactor)
        self._redactor: Final = redactor
        self._project = ""
        self._received_ns = 0
        self._stay = False
        """Whether spans of the group may: not where each has to tell of its resource or scope."""

    def open(self, group: Group[bytes]) -> None:
        """Read resource and scope of a group; raise BadSpanError where one of them is none."""
        super().open(group)
        self._project, self._received_ns, resource, name, version = self._spans.origin
        self._stay = not (self._spans.redacted_origin or TRUNCATED_FIELDS in resource or max(len(name), len(version)) > MAX_NAME)

    def read(self, raw: bytes) -> Part:
        """Return a span of the group; raise BadSpanError where it cannot be accepted."""
        if not self._stay or len(raw) > _SMALL or (self._redactor is not None and self._redactor.suspects_message(raw)):
            return super().read(raw)
        try:
            span = trace_pb2.Span.FromString(raw)
        except DecodeError:
            return super().read(raw)  # which mends it, or says what is wrong
        count(EVENT * (len(span.events) + len(span.links)) + ATTRIBUTE * len(span.attributes))
        if _may_be_too_much(raw) and not _is_within_limits(span):
            return super().read(raw)
        return Part(self._resource, self._scope, raw, self._project, _checked(span), self._received_ns)


def _may_be_too_much(raw: bytes) -> bool:
    """Whether a span is large enough for too many attributes, or has a text as long as no name may be. Most are not, and have none."""
    return len(raw) > _FEW or _LONG_TEXT.search(raw) is not None


def _is_within_limits(span: Any) -> bool:
    """Whether nothing of a span has to be left out, and no name to be cut."""
    return (
        len(span.events) <= MAX_EVENTS
        and len(span.links) <= MAX_LINKS
        and all(
            len(one.attributes) <= MAX_ATTRIBUTES and max([len(pair.key) for pair in one.attributes], default=0) <= MAX_NAME
            for one in (span, *span.events, *span.links)
        )
    )


def _checked(span: Any) -> str:
    """Return the trace id of a span that can be accepted; raise BadSpanError where it cannot."""
    if span.events:  # to ask is quicker than to iterate
        for event in span.events:
            check_event(event.time_unix_nano)
    if span.links:
        for link in span.links:
            check_link(link.trace_id, link.span_id)
    trace_id: bytes = span.trace_id
    start_ns, end_ns = span.start_time_unix_nano, span.end_time_unix_nano
    check_span(trace_id, span.span_id, span.parent_span_id, start_ns, end_ns, span.kind, span.status.code)
    return trace_id.hex()


def _of_protobuf(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> Decoded[Part]:
    groups = opened(body, "trace")
    needed = redactor if redactor is not None and redactor.suspects_message(body) else None
    return read_groups(groups, Passer(project, received_ns, needed), protobuf.CODEC.wrap, "spans")


def _of_json(body: bytes, project: str, received_ns: int, redactor: Redactor | None = None) -> Decoded[Part]:
    groups = opened_json(body, json.ENVELOPE, "trace")
    return read_groups(groups, Rewriter(json.CODEC, project, received_ns, redactor), json.CODEC.wrap, "spans")


PASSED_ON: Final[Signal[Part]] = Signal(
    path=TRACES.path,
    service=TRACES.service,
    envelope=TRACES.envelope,
    response=TRACES.response,
    decoders={Encoding.PROTOBUF: _of_protobuf, Encoding.JSON: _of_json},
)
"""Spans as a signal, for who sends them on."""
