"""Rate: so many of something a minute, spaced evenly. Pure: the generic cell rate algorithm (ITU-T I.371), with time as an argument."""

import msgspec

from pipeline.model.time import MINUTE, SECOND


class Rate(msgspec.Struct, frozen=True):
    """A limit, and until when it is used up. A second's worth may come at once; without a limit anything may."""

    per_minute: float | None
    used_ns: int = 0
    """When all that was taken would be through, at the even pace."""

    def take(self, amount: float, now: int) -> tuple["Rate", int]:
        """Return the rate with so much taken, and when that may be used: at ``now`` where there is room."""
        if not self.per_minute:
            return self, now
        start = max(self.used_ns, now)
        return msgspec.structs.replace(self, used_ns=start + self._lasts(amount)), max(now, start - SECOND)

    def corrected(self, by: float) -> "Rate":
        """Return the rate after what was taken turned out to be so much more, or less."""
        return msgspec.structs.replace(self, used_ns=self.used_ns + self._lasts(by))

    def _lasts(self, amount: float) -> int:
        return int(amount * MINUTE / self.per_minute) if self.per_minute else 0
