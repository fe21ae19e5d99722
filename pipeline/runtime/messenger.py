"""Messenger: trips in, notifications out. What is due is stored before it is sent, and confirmed after (promise 3)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import structlog

from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.time import DAY
from pipeline.model.window import Notification, Trip
from pipeline.runtime.gates import Owns, everything
from pipeline.runtime.telemetry import Metric, Telemetry
from pipeline.stages.alert import confirmed, notifications, postponed, refused

FORGOTTEN: Final = 7 * DAY
"""Trips older than this are not announced after a start: a destination that is new must not hear of all history."""

log = structlog.get_logger(__name__)


class NotificationStore(Protocol):
    """What the messenger needs of the store."""

    async def unconfirmed_notifications(self) -> list[Notification]:
        """Return what nobody is known to have heard."""
        ...

    async def unnotified_trips(self, since_ns: int) -> list[Trip]:
        """Return firings and clearings since a time, on the gates' clock, that have no notification stored at all."""
        ...

    async def write_notifications(self, notifications: Sequence[Notification]) -> None:
        """Write notifications as new versions."""
        ...


class Destination(Protocol):
    """Somewhere to send notifications."""

    async def send(self, notification: Notification) -> None:
        """Deliver; returning means that it was taken.

        Raises:
            TemporaryError: it may be taken later.
            PermanentError: it will never be.
        """
        ...


class Messenger:
    """Holds what is due until it is confirmed."""

    def __init__(
        self,
        store: NotificationStore,
        destinations: Mapping[str, Destination],
        routes: Mapping[str, Sequence[str]],
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._destinations = destinations
        self._routes = routes
        self._telemetry = telemetry
        self._due: dict[str, Notification] = {}

    async def recover(self, now: int, owns: Owns = everything) -> None:
        """Take up what was due and never confirmed, and what a trip asks for and a crash kept from being noted (design section 5).

        In this order: what a former owner still has on its way, and what arrives between the two, is in one of them or in both.
        """
        unnotified = await self._store.unnotified_trips(now - FORGOTTEN)
        unconfirmed = await self._store.unconfirmed_notifications()
        self._due = {one.idempotency_key: one for one in unconfirmed if owns(one.project, one.agent)}
        await self.announce(trip for trip in unnotified if owns(trip.project, trip.cohort.agent))

    async def announce(self, trips: Iterable[Trip]) -> None:
        """Note what these trips ask to be sent."""
        asked = [one for trip in trips for one in notifications(trip, self._routes.get(trip.gate, ()))]
        due = {one.idempotency_key: one for one in asked if one.idempotency_key not in self._due}
        if due:
            await self._store.write_notifications(list(due.values()))
            self._due.update(due)

    @property
    def next_wake(self) -> int | None:
        """When the next notification is due, on the clock that attempts go by."""
        return min(map(_due_at, self._due.values()), default=None)

    async def send_due(self, now: int) -> int:
        """Try everything that is due. Returns how many were confirmed."""
        done = 0
        for key, one in list(self._due.items()):
            if _due_at(one) > now:
                continue
            # What was taken and could not be stored as confirmed is not sent again while this process remembers it.
            tried = self._due[key] = one if one.confirmed_ns else await self._try(one, now)
            await self._store.write_notifications([tried])
            if tried.confirmed_ns:
                del self._due[key]
                done += 1
        return done

    async def _try(self, one: Notification, now: int) -> Notification:
        destination = self._destinations.get(one.destination)
        if destination is None:
            return refused(one, f"no alert is called {one.destination} any more")
        try:
            await destination.send(one)
        except TemporaryError as error:
            log.warning("notification postponed", destination=one.destination, trip_id=one.trip_id, error=str(error))
            self._telemetry.add(Metric.NOTIFICATIONS, result="postponed")
            return postponed(one, str(error), now, error.retry_after)
        except PermanentError as error:
            log.error("notification refused", destination=one.destination, trip_id=one.trip_id, error=str(error))
            self._telemetry.add(Metric.NOTIFICATIONS, result="refused")
            return refused(one, str(error))
        self._telemetry.add(Metric.NOTIFICATIONS, result="confirmed")
        return confirmed(one, now)


def _due_at(notification: Notification) -> int:
    """What was never tried is due at once: its trip may be dated by another machine's clock, which may be ahead."""
    return notification.due_ns if notification.attempts else 0
