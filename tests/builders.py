"""Valid nouns by default; override what matters to the test."""

from typing import Any

import msgspec

from pipeline.model.log_record import LogRecord
from pipeline.model.log_record import seal as seal_log
from pipeline.model.span import Span, seal
from pipeline.model.step import Step, StepKind
from pipeline.model.time import SECOND

T0 = 1_790_000_000 * SECOND
"""A moment on a whole minute + 20 s, in September 2026."""


def a_step(span_id: str, parent_id: str = "", kind: StepKind = StepKind.OTHER, **fields: Any) -> Step:
    """A step that starts at T0, lasts a second and was received a second after its end."""
    start = fields.pop("start_ns", T0)
    end = fields.pop("end_ns", start + SECOND)
    received = fields.pop("received_ns", max(start, end) + SECOND)
    return Step(
        span_id=span_id,
        parent_id=parent_id,
        name=fields.pop("name", span_id),
        start_ns=start,
        end_ns=end,
        received_ns=received,
        kind=kind,
        **fields,
    )


def steps(*some: Step) -> dict[str, Step]:
    """Steps by span id."""
    return {step.span_id: step for step in some}


def a_span(span_id: str = "00000000000000a1", parent_id: str = "", **fields: Any) -> Span:
    """A sealed span of trace ``ab…`` in project ``default`` that starts at T0 and lasts a second."""
    span = Span(
        project="default",
        trace_id="ab" * 16,
        span_id=span_id,
        parent_id=parent_id,
        name="span",
        start_ns=T0,
        end_ns=T0 + SECOND,
        received_ns=T0 + 2 * SECOND,
    )
    return seal(msgspec.structs.replace(span, **fields))


def a_log_record(span_id: str = "00000000000000a1", **fields: Any) -> LogRecord:
    """A sealed log record of a span of trace ``ab…`` in project ``default``, at T0."""
    record = LogRecord(
        project="default",
        trace_id="ab" * 16,
        span_id=span_id,
        event_name="gen_ai.user.message",
        time_ns=T0,
        received_ns=T0 + 2 * SECOND,
    )
    return seal_log(msgspec.structs.replace(record, **fields))
