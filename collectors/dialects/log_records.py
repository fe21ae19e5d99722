"""Which log records are kept: those that a dialect reads as events of their span. Whatever else a service logs is not for tracegrade."""

from typing import Final

from collectors.dialects.bodies import holds_messages
from collectors.dialects.genai import MESSAGES
from pipeline.model.log_record import LogRecord, as_event

_CONVENTIONS: Final = "gen_ai."
_EXCEPTION: Final = "exception"
"""Tells why a span failed, where it is an event of its own; a line of a log with a stack trace has no such name."""
_OURS: Final = "tracegrade"
"""Scope of what tracegrade itself emits: its own findings must not come back as those of others."""


def is_kept(record: LogRecord) -> bool:
    """Whether a dialect can use the record: by its name, or by the messages in it."""
    if record.scope_name == _OURS:
        return False
    if record.event_name.startswith(_CONVENTIONS) or record.event_name == _EXCEPTION:
        return True
    return any(key in record.attributes for key in MESSAGES) or holds_messages(as_event(record).attributes)
