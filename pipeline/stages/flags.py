"""Flags: what a reader should know of the spans of a run as a whole, beside what each step says of itself."""

from typing import Final

from pipeline.stages.group import Group

MISSING_PARENT: Final = "missing_parent"
"""Some steps hang below a span that never came (reliability R40)."""
ENDS_BEFORE_START: Final = "ends_before_start"
"""A span says that it ended before it started: a clock was set back, or two machines tell the time differently (reliability R55, R56)."""
SHORT_TRACE_ID: Final = "short_trace_id"
"""The upper half of the trace's id is zeros: somebody on the way keeps 64 bits of it, and the rest of the run may be elsewhere (R52)."""
_ZEROS: Final = "0" * 16


def flags_of(group: Group, trace_id: str) -> set[str]:
    """Return the flags of a run's steps together. Nothing is guessed, and no time is changed."""
    found = {MISSING_PARENT} if group.missing_parent else set()
    if any(0 < step.end_ns < step.start_ns for step in group.steps):
        found.add(ENDS_BEFORE_START)
    if trace_id.startswith(_ZEROS):
        found.add(SHORT_TRACE_ID)
    return found
