"""The allowance: how much work redaction may do for one request, so that a request made of secrets is answered as soon as any other.

Work is counted and not timed: the same request is redacted in the same way on every machine, however busy it is.
"""

import sys
from typing import Final

REQUEST: Final = 250_000_000
"""Units for one request. A unit is a nanosecond or less, on a machine of today."""
OVERDRAFT: Final = 150_000_000
"""Units beyond the end, for what is done in any case: to see which texts are suspicious."""
BYTE: Final = 2
"""Units for each byte that one finder, or the search for what may be there, looks through."""
READ_BYTE: Final = 4
"""Units for each byte of JSON that is read."""
READ_VALUE: Final = 300
"""Units for each value of JSON that is read, and may be written again."""
ESCAPE: Final = 1500
"""Units for each escape that is opened in text."""
FOUND: Final = 6000
"""Units for what is found, whether it is kept or turns out to be something else."""
TEXT: Final = 4000
"""Units for some texts that are looked at together, or for one alone, however short they are."""
TOGETHER: Final = 200
"""Units for each value or name that is looked at together with others."""
SEEN: Final = 3500
"""Units for each of these that turns out to be suspicious."""
SUSPECT: Final = 9000
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

    def overdraw(self, units: int) -> None:
        """Take so many units also where fewer are left; raise SpentError where the overdraft does not suffice."""
        self._left -= units
        if self._left < -OVERDRAFT:
            raise SpentError


UNLIMITED: Final = Allowance(sys.maxsize)
"""For who redacts one thing, and no request."""
