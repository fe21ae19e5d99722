"""Retention: until when a graded trace may be graded anew.

Expired facts are deleted row by row, at any time after they expire. A trace of which some may be gone is never graded again: a version of
what is left, or of a few spans that came late, could know more facts by their number, and would supersede the one that saw the whole run.
"""

from typing import Final, Protocol

FOREVER: Final = 2**63 - 1


class Graded(Protocol):
    """A trace as far as it was graded: as it is stored, or as its owner holds it."""

    @property
    def graded_facts(self) -> int:
        """How many facts it was graded from; 0 where it never was."""
        ...

    @property
    def first_received_ns(self) -> int:
        """When its first span came, also one that is gone; 0 where none did."""
        ...


def kept_forever(_: str) -> int:
    """Stand for the retention of every project where none is configured."""
    return FOREVER


def is_over(trace: Graded, now: int, retention_ns: int) -> bool:
    """Whether facts that the trace was graded from may have expired by ``now``. What comes then is kept, and makes no run and no version."""
    return trace.graded_facts > 0 and trace.first_received_ns > 0 and now - trace.first_received_ns > retention_ns
