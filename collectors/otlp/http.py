"""OTLP over HTTP: ``POST /v1/traces``, as routes that the product's own web application serves beside its pages."""

from typing import Final

from aiohttp import web

from collectors.otlp.body import read_body
from collectors.otlp.receiver import Encoding, Receiver
from collectors.otlp.status import answer, failure, write
from pipeline.errors import PermanentError, TemporaryError

PATH: Final = "/v1/traces"


def routes(receiver: Receiver) -> list[web.RouteDef]:
    """Return the routes of the receiver. Serve them with :func:`runner`."""

    async def export(request: web.Request) -> web.Response:
        return await _export(receiver, request)

    return [web.post(PATH, export), web.get("/healthz", _health)]


def runner(application: web.Application, grace_s: float = 5.0) -> web.AppRunner:
    """Return a runner that leaves request bodies as they were sent: the receiver decompresses them itself, within its limit.

    Requests in flight are given ``grace_s`` seconds when it is cleaned up.
    """
    return web.AppRunner(application, auto_decompress=False, access_log=None, shutdown_timeout=grace_s)


async def _export(receiver: Receiver, request: web.Request) -> web.Response:
    try:
        encoding = Encoding(request.content_type.lower())
    except ValueError:
        raise web.HTTPUnsupportedMediaType(text=f"Content-Type must be {' or '.join(Encoding)}\n") from None
    try:
        project = receiver.project(request.headers.get("Authorization"))
        body = await read_body(request.content.iter_any(), request.headers.get("Content-Encoding", ""), receiver.max_body)
        reply = await receiver.export(body, encoding, project)
    except (PermanentError, TemporaryError) as error:
        return _refuse(error, encoding)
    return web.Response(body=write(answer(reply), encoding), content_type=encoding)


def _refuse(error: PermanentError | TemporaryError, encoding: Encoding) -> web.Response:
    failed = failure(error)
    response = web.Response(status=failed.http, body=write(failed.status, encoding), content_type=encoding)
    if failed.retry_after is not None:
        response.headers["Retry-After"] = str(failed.retry_after)
    if failed.http == web.HTTPUnauthorized.status_code:
        response.headers["WWW-Authenticate"] = 'Bearer realm="tracegrade"'
    return response


async def _health(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")
