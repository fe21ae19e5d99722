"""The allowance: how much work redaction may do for one request, so that a request made of secrets is answered as soon as any other.

Work is counted and not timed: the same request is redacted in the same way on every machine, however busy it is.
"""

import sys
from typing import Final

REQUEST: Final = 24_000_000
"""Units for one request. A unit is a hundred-millionth of a second or less, on a machine of today."""
BYTE: Final = 1
"""Units for each byte that one finder looks through."""
READ_BYTE: Final = 2
"""Units for each byte of what may be JSON and is read as that first."""
FOUND: Final = 1000
"""Units for what is found, whether it is kept or turns out to be something else."""
TEXT: Final = 250
"""Units for a text that is looked at alone, however short."""
TOGETHER: Final = 50
"""Units for a value or a name that is looked at together with others."""
SUSPECT: Final = 3500
"""Units for a text in which something may be."""


class SpentError(Exception):
    """The request has had its allowance."""


class Allowance:
    """What is left for one request."""

    __slots__ = ("_left",)

    def __init__(self, units: int = REQUEST) -> None:
        self._left = units

    def take(self, units: int) -> None:
        """Take so many units; raise SpentError where fewer are left, which leaves them to what costs less."""
        if units > self._left:
            raise SpentError
        self._left -= units

    def charge(self, units: int) -> None:
        """Take so many units for what is done in any case."""
        self._left -= units

    @property
    def spent(self) -> bool:
        """Whether nothing is left with which a suspicious text could be looked at."""
        return self._left < SUSPECT


UNLIMITED: Final = Allowance(sys.maxsize)
"""For who redacts one thing, and no request."""
