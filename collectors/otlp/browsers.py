"""Browsers: which pages may send from one, and which names this server answers to.

A page of any site may make its visitor's browser send requests to this machine. Where no key is asked for, only the Host header tells
that somebody else's name was made to lead here (DNS rebinding).
"""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from collectors.otlp.http import refuse_host
from collectors.otlp.keys import ForbiddenError, is_loopback
from pipeline.config.receiver import CorsSettings
from pipeline.model.time import SECOND

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
OPENED: Final = ("/v1/", "/api/feedback")
"""Where pages of other sites may send to, if any may."""
_HEADERS: Final = ("Authorization", "Content-Type", "Content-Encoding", "Idempotency-Key", "X-Requested-With")
_PORT: Final = re.compile(r":\d+$")


def cross_origin(settings: CorsSettings) -> Middleware:
    """Return what tells browsers that these pages may send (O21). A preflight is answered before anybody asks for a key."""
    allowed = re.compile("|".join(re.escape(one).replace(r"\*", "[^/]*") for one in settings.allowed_origins) or r"(?!)")
    headers = ", ".join(dict.fromkeys((*_HEADERS, *settings.allowed_headers)))

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin", "")
        if not settings.allowed_origins or not request.path.startswith(OPENED):
            return await handler(request)
        if not allowed.fullmatch(origin):
            response = await handler(request)
            response.headers["Vary"] = "Origin"
            return response
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            response = web.Response(status=204)
            response.headers["Access-Control-Allow-Methods"] = "POST"
            response.headers["Access-Control-Allow-Headers"] = headers
            response.headers["Access-Control-Max-Age"] = str(settings.max_age // SECOND)
        else:
            response = await _answered(request, handler)
            response.headers["Access-Control-Expose-Headers"] = "Retry-After"
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Vary"] = "Origin"
        return response

    return middleware


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Return a refusal of the framework as a response: a page may read why, too."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.Response(
            status=error.status, text=error.text, headers={"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        )


def only_hosts(host: str) -> Middleware:
    """Return what refuses requests to a name that is neither this machine's own nor the configured one."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        named = _PORT.sub("", request.headers.get("Host", "")).strip("[]").lower()
        if named and named != host.lower() and not is_loopback(named):
            told = "this server is open to its own machine only, and the Host header names another one; use http://127.0.0.1"
            return refuse_host(request, ForbiddenError(told))
        return await handler(request)

    return middleware
