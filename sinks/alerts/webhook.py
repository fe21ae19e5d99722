"""Notifications to a webhook: JSON by POST, with the key that lets the receiver drop what it already has."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp

from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.time import SECOND
from pipeline.model.window import Notification
from pipeline.stages.alert import AlertSettings

_PASSING_TROUBLE = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class Webhook:
    """One destination. It keeps nothing: what is due, and whether it was confirmed, is in the store."""

    def __init__(self, settings: AlertSettings, session: aiohttp.ClientSession) -> None:
        self.name = settings.name
        self._url = settings.webhook.get_secret_value()
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout / SECOND)
        self._headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        self._session = session

    async def send(self, notification: Notification) -> None:
        """Post the notification; returning means that the receiver took it (a 2xx answer).

        Messages of errors name the destination and never its URL, which may hold a token.

        Raises:
            TemporaryError: a timeout, no connection, 408, 425, 429 or 5xx; with the receiver's Retry-After.
            PermanentError: any other answer. Redirects are not followed: a URL was allowed, not what it points to.
        """
        headers = self._headers | {"Content-Type": "application/json", "Idempotency-Key": notification.idempotency_key}
        try:
            async with self._session.post(
                self._url, data=notification.body.encode(), headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                self._judge(response.status, response.headers)
        except aiohttp.InvalidURL:
            raise PermanentError(f"alert {self.name}: the webhook is not a URL") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # What aiohttp says of itself can hold the URL.
            raise TemporaryError(f"alert {self.name}: {type(error).__name__}") from None

    def _judge(self, status: int, headers: Mapping[str, str]) -> None:
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        said = f"alert {self.name}: the receiver answered {status}"
        if status in _PASSING_TROUBLE or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise TemporaryError(said, retry_after(headers))
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            said += "; redirects are not followed, configure the final URL"
        raise PermanentError(said)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the receiver asks to wait; None where it does not say.

    A date is read against the receiver's own ``Date``, so that its clock need not agree with ours.
    """
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal() and text.isascii():
        return float(text)
    try:
        return max((_date(text) - _date(headers.get("Date", ""))).total_seconds(), 0.0)
    except ValueError:
        return None


def _date(text: str) -> datetime:
    date = parsedate_to_datetime(text)
    return date if date.tzinfo else date.replace(tzinfo=UTC)
