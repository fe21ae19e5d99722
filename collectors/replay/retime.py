"""When a replay says that its spans happened, and under which ids it sends them.

Replayed runs must never move or double the live ones (design section 4). So whatever changes times also sends spans under new ids, derived by
hash from the old ones and the replay's salt; what they were stays on the spans as attributes.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from collectors.replay.identity import ORIGINAL_SPAN_ID, ORIGINAL_TRACE_ID, derived_span_id, derived_trace_id
from collectors.replay.recording import Recording
from collectors.replay.wire import add_originals, spans_in
from pipeline.model.run import BACKFILL

ENVIRONMENT: Final = "deployment.environment.name"


class Times(StrEnum):
    """What to do with the times of a replay."""

    ORIGINAL = "original"
    """Keep times and ids: what was recorded is sent again."""
    SHIFTED = "shifted"
    """Move all by the same amount, so that the latest end is now."""
    BACKFILL = "backfill"
    """Keep times and send to the environment that gates ignore."""


def retime(
    recordings: Sequence[Recording], times: Times, now_ns: int, *, same_ids: bool = False
) -> Iterator[ExportTraceServiceRequest]:
    """Yield the requests of the recordings as this replay sends them.

    When shifted, recorded spans keep their order and distances over all files. Transcripts have made-up times, so there is no order between
    them and the recorded spans: their own latest end becomes now. A replay shifted to another ``now_ns`` is another replay and gets other
    ids; a backfill repeated gets the same ones. ``same_ids`` keeps the ids as recorded.
    """
    salt = "" if same_ids or times is Times.ORIGINAL else _salt(times, now_ns)
    for recording in recordings:
        shift = _shift(recordings, recording.transcript, now_ns) if times is Times.SHIFTED else 0
        for request in recording.requests():
            _change(request, shift, salt)
            if times is Times.BACKFILL:
                for resource_spans in request.resource_spans:
                    _mark_backfill(resource_spans)
            yield request


def _salt(times: Times, now_ns: int) -> str:
    return f"{times} {now_ns}" if times is Times.SHIFTED else str(times)


def _shift(recordings: Sequence[Recording], transcript: bool, now_ns: int) -> int:
    return now_ns - max(recording.latest_ns for recording in recordings if recording.transcript is transcript)


def _change(request: ExportTraceServiceRequest, shift: int, salt: str) -> None:
    for span in spans_in(request):
        if shift:
            _move(span, shift)
        if salt:
            _derive(span, salt)


def _move(span: Span, shift: int) -> None:
    span.start_time_unix_nano = _moved(span.start_time_unix_nano, shift)
    span.end_time_unix_nano = _moved(span.end_time_unix_nano, shift)
    for event in span.events:
        event.time_unix_nano = _moved(event.time_unix_nano, shift)


def _moved(time_ns: int, shift: int) -> int:
    """A missing time stays missing; a time that would fall before the epoch stays at its start."""
    return max(1, time_ns + shift) if time_ns else 0


def _derive(span: Span, salt: str) -> None:
    add_originals(span, {ORIGINAL_TRACE_ID: span.trace_id.hex(), ORIGINAL_SPAN_ID: span.span_id.hex()})
    span.trace_id = _derived(span.trace_id, salt, derived_trace_id)
    span.span_id = _derived(span.span_id, salt, derived_span_id)
    span.parent_span_id = _derived(span.parent_span_id, salt, derived_span_id)
    for link in span.links:
        link.trace_id = _derived(link.trace_id, salt, derived_trace_id)
        link.span_id = _derived(link.span_id, salt, derived_span_id)


def _derived(known: bytes, salt: str, derive: Callable[[str, str], str]) -> bytes:
    """An id that is missing stays missing."""
    return bytes.fromhex(derive(known.hex(), salt)) if known else b""


def _mark_backfill(resource_spans: ResourceSpans) -> None:
    for attribute in resource_spans.resource.attributes:
        if attribute.key == ENVIRONMENT:
            attribute.value.CopyFrom(AnyValue(string_value=BACKFILL))
            return
    resource_spans.resource.attributes.add(key=ENVIRONMENT, value=AnyValue(string_value=BACKFILL))
