"""The allowance: how much work redaction may do for one request, so that a request made of secrets is answered as soon as any other.

Work is counted and not timed: the same request is redacted in the same way on every machine, however busy it is.
"""

import sys
from typing import Final

REQUEST: Final = 60_000_000
"""Units for one request. A unit is a hundred-millionth of a second or less, on a machine of today."""
BYTE: Final = 1
"""Units for each byte that one finder looks through."""
READ_BYTE: Final = 1
"""Units for each byte of what may be JSON and is read as that first."""
FOUND: Final = 1500
"""Units for what is found, whether it is kept or turns out to be something else."""
TEXT: Final = 500
"""Units for a text that is looked at alone, or for some together, however short they are."""
TOGETHER: Final = 50
"""Units for each value or name that is looked at together with others."""
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


UNLIMITED: Final = Allowance(sys.maxsize)
"""For who redacts one thing, and no request."""
