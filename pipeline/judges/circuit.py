"""Circuit: whether an endpoint may be called now. Pure: a circuit breaker that can also be paused with a reason, time as an argument.

closed: calls go through. open: none do, until a time. half-open: that time has come, and one call shows whether all may follow.
"""

from typing import Final

import msgspec

from pipeline.judges.backoff import LONGEST_ASKED_S, backoff
from pipeline.model.time import MINUTE, SECOND

FAILURES: Final = 5
"""In a row, of whichever calls, that open it."""
OPEN_S: Final = 2.0
MOST_OPEN_S: Final = 60.0
PROBE_EVERY: Final = MINUTE
"""How often a paused endpoint is tried: what a person must mend is mended some time."""


class Circuit(msgspec.Struct, frozen=True):
    """The state of one endpoint, as its last calls left it."""

    failures: int = 0
    opened: int = 0
    """How often it was opened in a row; each time for longer."""
    shut_until: int = 0
    """No call before this time, in ns; 0 where it is closed."""
    probing: bool = False
    """Whether the one call of a half-open circuit is under way."""
    paused: str = ""
    """What a person must mend; empty where time alone may."""

    @property
    def is_open(self) -> bool:
        """Whether calls are held back, or are to be tried one at a time."""
        return self.opened > 0 or bool(self.paused)

    def free_at(self, now: int) -> int:
        """Return when a call may be made: ``now`` where it may be now."""
        if self.probing:
            return max(now + SECOND, self.shut_until)
        return max(now, self.shut_until)

    def begun(self) -> "Circuit":
        """Return the state when a call begins: of an open circuit it is the only one."""
        return msgspec.structs.replace(self, probing=True) if self.is_open else self

    def abandoned(self) -> "Circuit":
        """Return the state when a call was given up before it told anything."""
        return msgspec.structs.replace(self, probing=False)

    def answered(self) -> "Circuit":
        """Return the state after an answer, of whatever kind: the endpoint works."""
        return Circuit(shut_until=self.shut_until if not self.is_open else 0)

    def failed(self, now: int, key: str, retry_after: float | None = None) -> "Circuit":
        """Return the state after a failure that time may mend. What the endpoint asks to wait, all calls wait."""
        failures = self.failures + 1
        asked = 0 if retry_after is None else now + int(min(retry_after, LONGEST_ASKED_S) * SECOND)
        opens = self.probing or (failures >= FAILURES and not self.is_open)
        opened = self.opened + opens
        shut = now + int(backoff(opened, key, None, OPEN_S, MOST_OPEN_S) * SECOND) if opens else self.shut_until
        return Circuit(failures, opened, max(shut, asked), probing=False, paused="")

    def refused(self, now: int, why: str) -> "Circuit":
        """Return the state after a failure that a person must mend: all calls wait for the next try."""
        return Circuit(self.failures + 1, self.opened, now + PROBE_EVERY, probing=False, paused=why)
