"""Trips in, notifications out: who is due to hear what, with one idempotency key per (trip, transition, destination).

What a notification says depends on its trip alone, so making it again after a crash makes the same bytes.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace
from pydantic import ConfigDict, Field, SecretStr, field_validator

from pipeline.model.settings import Duration, Settings
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.window import Notification, Transition, Trip
from pipeline.stages.gate import HardGate, SeriesGate

FIRST_DELAY: Final = SECOND
LONGEST_DELAY: Final = 5 * MINUTE
LONGEST_WISH: Final = HOUR
"""However long a receiver asks to be left alone, it is tried again after this."""
NEVER: Final = 2**63 - 1
"""When a refused notification is due again; the last nanosecond that the store can hold, in the year 2262."""
_LONGEST_ERROR: Final = 500


class AlertSettings(Settings):
    """A destination of notifications: a webhook that takes JSON by POST and honours ``Idempotency-Key``."""

    model_config = ConfigDict(hide_input_in_errors=True)

    name: str = Field(min_length=1, max_length=80, pattern=r"^[\w.-]+$")
    webhook: SecretStr
    """The URL. Such URLs often hold a token, so it is shown nowhere."""
    timeout: Duration = Field(default=10 * SECOND, gt=0)
    """For the whole request."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Sent with each request, such as an Authorization."""

    @field_validator("webhook")
    @classmethod
    def _is_a_url(cls, webhook: SecretStr) -> SecretStr:
        text = webhook.get_secret_value()
        try:
            url = urlsplit(text)
            usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:
            usable = False
        if not usable or not text.isprintable() or " " in text:
            raise ValueError("webhook is not a URL; write it whole, such as https://alerts.example.com/hooks/tracegrade")
        return webhook

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not value.get_secret_value().isprintable():
                raise ValueError(f"{name!r} is not a header that can be sent; a name has no spaces, and a value is one line")
            if name.lower() in ("content-type", "idempotency-key"):
                raise ValueError(f"{name} is set by tracegrade; leave it out")
        return headers


def destinations(gate: SeriesGate | HardGate, alerts: Iterable[AlertSettings]) -> tuple[str, ...]:
    """Return the names of the alerts that a gate notifies, in the order in which they are configured."""
    return tuple(alert.name for alert in alerts if gate.notify is None or alert.name in gate.notify)


def notifications(trip: Trip, destinations: Iterable[str], links: Mapping[str, str] | None = None) -> tuple[Notification, ...]:
    """Return what is due because of a trip: one for each destination, none for a run that joins an open incident.

    ``links`` (name to URL) are where a reader can look further.
    """
    if trip.transition is Transition.RUN:
        return ()
    drafts = (
        Notification(trip.project, trip.trip_id, trip.transition, destination, "", trip.at_ns, agent=trip.cohort.agent)
        for destination in destinations
    )
    return tuple(replace(draft, body=_body(trip, draft.idempotency_key, dict(links or {}))) for draft in drafts)


def _body(trip: Trip, key: str, links: dict[str, str]) -> str:
    return msgspec.json.encode(
        {
            "idempotency_key": key,
            "project": trip.project,
            "trip_id": trip.trip_id,
            "transition": trip.transition,
            "at": _utc(trip.at_ns),
            "gate": trip.gate,
            "kind": trip.kind,
            "cohort": trip.cohort,
            "contract": trip.contract or None,
            "dimension": trip.dimension or None,
            "value": trip.value,
            "threshold": trip.threshold,
            "window": _utc(trip.window_ns) if trip.window_ns else None,
            "run_id": trip.run_id or None,
            "why": trip.why,
            "links": links,
        },
        order="sorted",
    ).decode()


def _utc(ns: int) -> str:
    return datetime.fromtimestamp(ns // SECOND, UTC).isoformat()


def confirmed(notification: Notification, now: int) -> Notification:
    """Return the notification after its destination took it."""
    return replace(notification, confirmed_ns=now, attempts=notification.attempts + 1, last_error="")


def postponed(notification: Notification, error: str, now: int, retry_after: float | None = None) -> Notification:
    """Return the notification after an attempt that may work later; ``retry_after`` is what the destination asked for, in seconds.

    Unasked, the delay doubles from one second to five minutes, and there is no last attempt.
    """
    delay = min(FIRST_DELAY << min(notification.attempts, 20), LONGEST_DELAY)
    if retry_after is not None:
        delay = min(max(int(retry_after * SECOND), FIRST_DELAY), LONGEST_WISH)
    return replace(_failed(notification, error), due_ns=now + delay)


def refused(notification: Notification, error: str) -> Notification:
    """Return the notification after its destination refused it for good: kept with the reason, unconfirmed, due never again."""
    return replace(_failed(notification, error), due_ns=NEVER)


def _failed(notification: Notification, error: str) -> Notification:
    return replace(notification, attempts=notification.attempts + 1, last_error=error[:_LONGEST_ERROR])
