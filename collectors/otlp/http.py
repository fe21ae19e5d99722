"""OTLP over HTTP: a route for each signal, which the product's own web application serves beside its pages."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from collectors.otlp.body import read_body
from collectors.otlp.keys import ForbiddenError
from collectors.otlp.receiver import Admitted, Receiver
from collectors.otlp.signal import AnySignal, Encoding
from collectors.otlp.status import failure, write
from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.time import SECOND

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
IDLE_S: Final = 60.0
"""Seconds after which a connection without a request is closed, also one whose request's header does not end (O23)."""
LINGER_S: Final = 2.0
"""Seconds for which the rest of a refused body is read and thrown away, so that its sender reads the refusal and not a broken connection."""


def routes(receiver: Receiver) -> list[web.RouteDef]:
    """Return the routes of the receiver. Serve them with :func:`runner`."""
    return [web.post(signal.path, _exporting(receiver, signal)) for signal in receiver.signals]


def runner(application: web.Application, grace_s: float = 5.0) -> web.AppRunner:
    """Return a runner that leaves request bodies as they were sent: the receiver decompresses them itself, within its limit.

    Requests in flight are given ``grace_s`` seconds when it is cleaned up.
    """
    return web.AppRunner(
        application,
        auto_decompress=False,
        access_log=None,
        shutdown_timeout=grace_s,
        keepalive_timeout=IDLE_S,
        lingering_time=LINGER_S,
    )


def encoding_of(request: web.Request) -> Encoding:
    """Return how a request is written, whatever parameters its media type has (O1).

    Raises:
        HTTPUnsupportedMediaType: in a way that OTLP does not know.
    """
    try:
        return Encoding(request.content_type.lower())
    except ValueError:
        raise web.HTTPUnsupportedMediaType(text=f"Content-Type must be {' or '.join(Encoding)}\n") from None


def _exporting(receiver: Receiver, signal: AnySignal) -> Handler:
    async def export(request: web.Request) -> web.Response:
        encoding = encoding_of(request)
        try:
            async with receiver.request(request.headers.get("Authorization"), request.content_length or 0) as admitted:
                body = await body_of(request, receiver, admitted, receiver.settings.max_body)
                reply = await receiver.export(signal, body, encoding, admitted.project)
        except (PermanentError, TemporaryError) as error:
            return refusal(error, encoding)
        return web.Response(body=write(signal.response(reply), encoding), content_type=encoding)

    return export


async def body_of(request: web.Request, receiver: Receiver, admitted: Admitted, limit: int) -> bytes:
    """Return the body of an admitted request in plain, at most ``limit`` bytes of it.

    Raises:
        PermanentError: it is larger, or does not arrive as it says.
        TemporaryError: it does not arrive in time.
    """
    settings = receiver.settings
    encoding = request.headers.get("Content-Encoding", "")
    chunks = request.content.iter_any()
    try:
        async with asyncio.timeout(settings.body_timeout / SECOND):
            return await read_body(chunks, encoding, limit, request.content_length, admitted.hold.grow)
    except TimeoutError:
        # 503, and not 408: a sender that was slow for a moment may send again (O8).
        raise TemporaryError(
            f"the body did not arrive within {settings.body_timeout // SECOND} s; send smaller batches"
        ) from None
    except web.RequestPayloadError as error:
        raise PermanentError(f"the body is not framed as HTTP/1.1 says: {error}") from error


def refusal(error: PermanentError | TemporaryError, encoding: Encoding) -> web.Response:
    """Return an error as OTLP writes it, in the encoding of the request (O2)."""
    failed = failure(error)
    response = web.Response(status=failed.http, body=write(failed.status, encoding), content_type=encoding)
    if failed.retry_after is not None:
        response.headers["Retry-After"] = str(failed.retry_after)
    if failed.http == web.HTTPUnauthorized.status_code:
        response.headers["WWW-Authenticate"] = 'Bearer realm="tracegrade"'
    return response


def refuse_host(request: web.Request, error: ForbiddenError) -> web.StreamResponse:
    """Refuse a request by its Host header: as OTLP does where it is OTLP, else as text."""
    try:
        return refusal(error, Encoding(request.content_type.lower()))
    except ValueError:
        return web.Response(status=web.HTTPForbidden.status_code, text=f"{error}\n")
