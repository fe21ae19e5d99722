"""What both encodings of OTLP share of log records: which are accepted, which are kept, and how they are fitted.

Senders export all that their services log. So what belongs to no span, and what no dialect reads, is accepted and left out, not refused.
"""

from collections.abc import Iterable
from typing import Any, Final, Generic

import msgspec

from collectors.dialects.log_records import is_kept
from collectors.otlp.cutting import Content
from collectors.otlp.decoding import (
    MAX_ENUM,
    MAX_TIME,
    MAX_UINT32,
    SPAN_ID_SIZE,
    TRACE_ID_SIZE,
    BadSpanError,
    Codec,
    Decoded,
    Group,
    Origin,
    Part,
    bad_id,
    read_groups,
    size_of,
)
from collectors.otlp.fitting import MEASURED_ABOVE, Loss, fewer_attributes, within
from collectors.otlp.origins import NOWHERE, Origins
from collectors.redaction.log_records import LogRedaction
from collectors.redaction.redactor import Redactor
from collectors.redaction.walk import Counts
from pipeline.model.log_record import EVENT_NAME, LogRecord, seal
from pipeline.model.span import Attributes

MAX_LOG_RECORD: Final = 1024 * 1024
"""Bytes of a log record without its resource. It travels as JSON, which may be several times as long."""
_NONE: Final = frozenset({b"", bytes(SPAN_ID_SIZE), bytes(TRACE_ID_SIZE)})


class LogReader(Generic[Part]):
    """Makes log records of the parts of one request."""

    def __init__(self, codec: Codec[Part, LogRecord | None], project: str, received_ns: int, redactor: Redactor | None) -> None:
        """Take what is the same for the whole request."""
        self._codec: Final[Codec[Part, LogRecord | None]] = codec
        self._origins: Final[Origins[Part]] = Origins(codec, project, received_ns)
        self._redaction: Final = LogRedaction(redactor)
        self._origin = NOWHERE
        self.truncated = 0

    @property
    def counts(self) -> Counts:
        """What was replaced so far, by detector."""
        return self._redaction.counts

    def open(self, group: Group[Part]) -> None:
        """Read resource and scope of a group; raise BadSpanError where one of them is none."""
        self._origin = self._origins.of(group, self._redaction)

    def read(self, part: Part) -> LogRecord | None:
        """Return a record of the group, None where nobody has a use for it; raise BadSpanError where it cannot be accepted."""
        record = self._codec.item(part, self._origin)
        if record is None:
            return None
        loss = Loss()
        few = msgspec.structs.replace(record, attributes=fewer_attributes(record.attributes, loss))
        return seal(_fitted(self._redaction.record(few), size_of(part), loss))


def decode_groups(
    groups: Iterable[Group[Part]],
    codec: Codec[Part, LogRecord | None],
    project: str,
    received_ns: int,
    redactor: Redactor | None,
) -> Decoded[LogRecord]:
    """Read every log record of a request that can be read; one that is there twice is kept once."""
    decoded = read_groups(groups, LogReader(codec, project, received_ns, redactor), codec.wrap, "log records")
    kept: dict[tuple[str, str], LogRecord] = {}
    for position, record in enumerate(decoded.items):
        kept.setdefault((record.trace_id, record.content_hash), msgspec.structs.replace(record, position=position))
    return msgspec.structs.replace(decoded, items=tuple(kept.values()))


def accept(
    origin: Origin,
    *,
    trace_id: bytes,
    span_id: bytes,
    event_name: str,
    time_ns: int,
    observed_ns: int,
    severity: int,
    body: Any,
    attributes: Attributes,
    dropped: int,
) -> LogRecord | None:
    """Return the log record, not sealed; None where it belongs to no span or no dialect reads it.

    Raises:
        BadSpanError: an id has the wrong length (O12), or a number is outside what can be stored.
    """
    if trace_id in _NONE or span_id in _NONE:
        return None
    _check(trace_id, span_id, (time_ns, observed_ns), severity, dropped)
    named = attributes.get(EVENT_NAME)
    record = LogRecord(
        project=origin.project,
        trace_id=trace_id.hex(),
        span_id=span_id.hex(),
        event_name=event_name or (named if isinstance(named, str) else ""),
        time_ns=time_ns or observed_ns,
        received_ns=origin.received_ns,
        severity=severity,
        body=body,
        attributes=attributes,
        resource=origin.resource,
        scope_name=origin.scope_name,
        scope_version=origin.scope_version,
        dropped=min(dropped, MAX_UINT32),
    )
    return record if is_kept(record) else None


def _check(trace_id: bytes, span_id: bytes, times: tuple[int, ...], severity: int, dropped: int) -> None:
    if len(trace_id) != TRACE_ID_SIZE:
        raise BadSpanError(bad_id("traceId", trace_id, TRACE_ID_SIZE))
    if len(span_id) != SPAN_ID_SIZE:
        raise BadSpanError(bad_id("spanId", span_id, SPAN_ID_SIZE))
    if not all(0 <= time_ns <= MAX_TIME for time_ns in times):
        raise BadSpanError("timeUnixNano and observedTimeUnixNano must be nanoseconds since 1970 and before the year 2262")
    if not (0 <= severity <= MAX_ENUM and dropped >= 0):
        raise BadSpanError("severityNumber and droppedAttributesCount must be numbers that OTLP defines")


def _fitted(record: LogRecord, size: int, loss: Loss) -> LogRecord:
    """Return the record within its limits, with what was lost told in its attributes, as in those of spans."""
    content: Content = {"event_name": record.event_name, "body": {"": record.body}, "attributes": record.attributes}
    kept = within(content, MAX_LOG_RECORD, loss) if size > MAX_LOG_RECORD // MEASURED_ABOVE else content
    if not loss.fields:
        return record
    return msgspec.structs.replace(
        record,
        event_name=kept["event_name"],
        body=kept["body"][""],
        attributes=loss.flagged(kept["attributes"]),
        dropped=min(record.dropped + loss.dropped, MAX_UINT32),
    )
