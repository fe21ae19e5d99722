"""Answers: what all routes of the API and the pages have in common. Whose data it is, what a person can mend, which headers go with it."""

import re
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from collectors.otlp.keys import Keys, UnauthenticatedError
from pipeline.apps.conversation_commands import UnknownConversationError
from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.runtime.evaluations import UnknownEvaluationError
from sinks.clickhouse.run_detail import UnknownRunError

Handler = Callable[[web.Request], Awaitable[web.Response]]
Refusal = Callable[[web.Request, int, Exception], web.Response]
"""(request, status, what was raised) → the answer."""
MOST: Final = 10_000
"""The greatest number that a request may ask for."""
UNKNOWN: Final = (UnknownRunError, UnknownConversationError, UnknownEvaluationError)
HEADERS: Final = {
    # Text from spans is only ever text: no script runs, nothing is fetched from elsewhere, no other page may frame this one or open it.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # What runs said belongs to who has the key, not to whoever uses the machine next.
    "Cache-Control": "no-store",
}
_NUMBER: Final = re.compile("[1-9][0-9]{0,8}")


def json_answer(body: Any, status: int = 200) -> web.Response:
    """Return a value as JSON."""
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json", headers=HEADERS)


def project_of(keys: Keys, request: web.Request) -> str:
    """Return the project of the caller's key, also where a browser sends the key as a password.

    Raises:
        UnauthenticatedError: keys are configured, and this is none of them.
    """
    return keys.project(_bearer(request.headers.get("Authorization")))


def number(request: web.Request, name: str, default: int) -> int:
    """Return a number from the query.

    Raises:
        ConfigurationError: it is none, or none from 1 to MOST.
    """
    text = request.query.get(name, str(default))
    if not _NUMBER.fullmatch(text) or int(text) > MOST:
        raise ConfigurationError(f"{name} is {text!r}; write a whole number from 1 to {MOST}")
    return int(text)


def _bearer(authorization: str | None) -> str | None:
    """Read the key that a browser sends as a password; anything else is left as it is."""
    scheme, _, credentials = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return authorization
    try:
        return f"Bearer {b64decode(credentials).decode().partition(':')[2]}"
    except ValueError:
        return None


def as_json(_request: web.Request, status: int, error: Exception) -> web.Response:
    """Return a refusal as JSON."""
    return json_answer({"error": str(error)}, status)


def guarded(handler: Handler, refusal: Refusal = as_json) -> Handler:
    """Answer what a person can mend with the sentence that says how: as JSON, or as ``refusal`` puts it."""

    async def answering(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except UnauthenticatedError as error:
            refused = as_json(request, 401, error)
            refused.headers["WWW-Authenticate"] = 'Basic realm="tracegrade: any name, and an API key as password"'
            return refused
        except ConfigurationError as error:
            return refusal(request, 404 if isinstance(error, UNKNOWN) else 400, error)
        except TemporaryError as error:
            return refusal(request, 503, error)

    return answering
