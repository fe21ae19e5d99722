"""Backlog: how long the oldest record has waited that nobody read, and when that comes near to what the broker keeps.

Being behind is no reason to be stopped: an orchestrator that ended such a process would make it worse. So it is logged, counted and told,
and the process stays ready.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import structlog

from pipeline.model.time import HOUR, SECOND

Place: TypeAlias = Any
"""A partition, or a topic and a partition."""

log = structlog.get_logger(__name__)


def is_alarming(oldest_ns: int, now: int, retention_ns: int) -> bool:
    """Whether a record has waited for half of the time for which it is kept."""
    return 2 * (now - oldest_ns) >= retention_ns


class Backlog:
    """Watches the oldest unread record of each partition, and says so once when it becomes an alarm and once when it is none any more."""

    def __init__(self, reader: str, retention_ns: int) -> None:
        """Take who reads, and how long the broker keeps records, in ns."""
        self._reader: Final = reader
        self._retention_ns: Final = retention_ns
        self._alarming: frozenset[Place] = frozenset()
        self.age_s = 0
        """How long the oldest record has waited, over all partitions, in seconds; 0 where none waits."""

    def look(self, oldest: Mapping[Place, int], now: int) -> None:
        """Take the time of the oldest unread record of each partition in which one waits, in ns."""
        self.age_s = max(0, now - min(oldest.values(), default=now)) // SECOND
        alarming = frozenset(place for place, at in oldest.items() if is_alarming(at, now, self._retention_ns))
        if begun := alarming - self._alarming:
            log.error(
                "backlog: unread records are deleted when they have waited for twice as long",
                reader=self._reader,
                partitions=sorted(map(str, begun)),
                oldest_hours=round((now - min(oldest[place] for place in begun)) / HOUR, 1),
                kept_hours=round(self._retention_ns / HOUR, 1),
            )
        if ended := self._alarming - alarming:
            log.info("backlog: no alarm any more", reader=self._reader, partitions=sorted(map(str, ended)))
        self._alarming = alarming

    @property
    def alarm(self) -> str:
        """What to tell whoever asks after the process; empty where there is no alarm."""
        if not self._alarming:
            return ""
        return f"degraded: unread records wait for {self.age_s // 3600} h, and are deleted after {self._retention_ns // HOUR} h"
