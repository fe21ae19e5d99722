"""Share of bad records: when a bridge no longer believes what it reads (reliability 1.3, DlqLimit).

One bad record is a sender's bug, and goes to the dead letters. When most are bad, it is a deployment's: another format, or a release that
cannot read this one. Then nothing more is buried, until a person has looked. What was seen is remembered beside the committed offset, so
that a supervisor that starts the bridge again and again does not have it bury a few more each time.
"""

import re
from typing import Final

SEEN: Final = 200
"""Records of a partition that are remembered."""
_MARK: Final = re.compile(rf"1:([0-9a-f]{{1,{SEEN // 4}}})")
_ALL: Final = (1 << SEEN) - 1


class BadShare:
    """The last records of one partition, a bit each: 1 where nothing could be read of it."""

    def __init__(self, limit: float, mark: str = "") -> None:
        """Take the greatest share that is allowed, and what was remembered; what nobody understands is nothing."""
        known = _MARK.fullmatch(mark)
        self._limit = limit
        self._bits = int(known[1], 16) if known else 0

    @property
    def mark(self) -> str:
        """What to remember."""
        return f"1:{self._bits:x}"

    @property
    def bad(self) -> int:
        """How many of the last records were bad; those that were not seen yet count as good."""
        return self._bits.bit_count()

    def note(self, *, bad: bool) -> bool:
        """Take note of the next record. Returns whether the bridge may go on; where not, the record is not counted."""
        after = (self._bits << 1 | bad) & _ALL
        if bad and after.bit_count() > self._limit * SEEN:
            return False
        self._bits = after
        return True
