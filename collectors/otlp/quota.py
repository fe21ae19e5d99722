"""Quotas: what one project may send on average, so that its flood is not everybody's.

A bucket may be overdrawn: a request is admitted while anything is left, and what it took beyond that is paid back before the next one. So
a request that is larger than a whole bucket is accepted too, the average still holds, and a refusal costs nobody any decoding.
"""

from collections.abc import Mapping
from typing import Final

from pipeline.config.receiver import DEFAULT_QUOTA, QuotaSettings
from pipeline.errors import TemporaryError
from pipeline.model.time import SECOND

BURST_S: Final = 10
"""Seconds of a rate that may be sent at once after a pause."""


class QuotaError(TemporaryError):
    """The caller's project has sent more than it may, for now (429)."""


class Bucket:
    """What is left of one rate, at a time that is an argument, in ns."""

    __slots__ = ("_at", "_capacity", "_left", "_rate")

    def __init__(self, rate: float, now: int) -> None:
        """Start full; ``rate`` is in units a second."""
        self._rate: Final = rate
        self._capacity: Final = rate * BURST_S
        self._left = self._capacity
        self._at = now

    def take(self, amount: float, now: int) -> None:
        """Take an amount, whether it is there or not."""
        self._refill(now)
        self._left -= amount

    def wait(self, now: int) -> float:
        """Return in how many seconds something will be left; 0 where something is."""
        self._refill(now)
        return 0.0 if self._left > 0 else -self._left / self._rate + 1 / self._rate

    def _refill(self, now: int) -> None:
        # A clock that was set back gives nothing and takes nothing.
        elapsed = max(0, now - self._at) / SECOND
        self._left = min(self._capacity, self._left + elapsed * self._rate)
        self._at = now


class Quotas:
    """The buckets of every project that has a quota."""

    def __init__(self, settings: Mapping[str, QuotaSettings]) -> None:
        """Take quotas by project; that of ``default`` is for every project, each by itself, that has none of its own."""
        self._settings: Final = settings
        self._buckets: dict[str, dict[str, Bucket]] = {}

    def check(self, project: str, now: int) -> None:
        """Refuse a project that has used up what it may send.

        Raises:
            QuotaError: with the time after which it may send again.
        """
        for unit, bucket in self._of(project, now).items():
            wait = bucket.wait(now)
            if wait > 0:
                raise QuotaError(f"project {project!r} has sent more than its quota of {unit} a second; send again later", wait)

    def take(self, project: str, unit: str, amount: int, now: int) -> None:
        """Take what a request of the project came to, in ``spans`` or ``bytes``."""
        bucket = self._of(project, now).get(unit)
        if bucket is not None:
            bucket.take(amount, now)

    def _of(self, project: str, now: int) -> dict[str, Bucket]:
        if not self._settings:
            return {}
        if project not in self._buckets:
            quota = self._settings.get(project, self._settings.get(DEFAULT_QUOTA))
            rates = {"spans": quota.spans_per_s, "bytes": quota.bytes_per_s} if quota is not None else {}
            self._buckets[project] = {unit: Bucket(rate, now) for unit, rate in rates.items() if rate is not None}
        return self._buckets[project]
