"""Serve: the receiver on its two ports, and whatever else is asked for over HTTP."""

import os
import ssl
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from collectors.otlp import grpc
from collectors.otlp.browsers import cross_origin, only_hosts
from collectors.otlp.http import routes, runner
from collectors.otlp.receiver import Receiver
from collectors.otlp.tls import certificates_from
from pipeline.apps.health import Health
from pipeline.errors import ConfigurationError

GRACE: Final = 5.0
"""Seconds that requests in flight are given when the servers stop."""
_ANSWER: Final = 1.0
"""Of them, seconds for telling those that did not end in time to come back."""


class Served(msgspec.Struct, frozen=True):
    """Where the servers listen."""

    http_url: str
    grpc_address: str
    health_url: str | None = None
    """Where probes without a certificate ask, if anywhere."""


class Listening(msgspec.Struct, frozen=True):
    """How a port is listened on: what passes each request, and the encryption."""

    middlewares: tuple[Middleware, ...] = ()
    context: ssl.SSLContext | None = None


async def serve(
    receiver: Receiver,
    health: Health,
    more: Iterable[web.RouteDef],
    stack: AsyncExitStack,
    passing: tuple[Middleware, ...] = (),
) -> Served:
    """Accept signals over gRPC and HTTP until the stack is closed, which waits for requests in flight.

    ``passing`` is what requests over HTTP pass last, after what is asked of every sender.

    Raises:
        ConfigurationError: a port is taken, or not this user's to take; a certificate is missing.
    """
    settings = receiver.settings
    certificates = certificates_from(settings.tls)
    middlewares = [cross_origin(settings.cors)]
    if receiver.open:
        middlewares.append(only_hosts(settings.host))
    how = Listening((*middlewares, *passing), certificates.context if certificates is not None else None)
    answered = [*routes(receiver), *health.routes(), *more]
    http_url = await listen(answered, settings.host, settings.http_port, "receiver.http_port", stack, how)
    health_url = None
    if settings.health_port is not None:
        health_url = await listen(health.routes(), settings.host, settings.health_port, "receiver.health_port", stack)
    listening = await grpc.serve(receiver, settings.host, settings.grpc_port, certificates)
    stack.push_async_callback(listening.stop, GRACE)
    await listening.report(ready=not health.trouble)
    health.tell(listening.report)
    stack.callback(receiver.stop, GRACE - _ANSWER)  # first of all: both ports stop accepting at the same time
    host = http_url.partition("://")[2].rpartition(":")[0]
    return Served(http_url=http_url, grpc_address=f"{host}:{listening.port}", health_url=health_url)


async def listen(
    routes: Iterable[web.RouteDef],
    host: str,
    port: int,
    setting: str,
    stack: AsyncExitStack,
    how: Listening | None = None,
) -> str:
    """Serve routes over HTTP until the stack is closed. Returns the URL; ``setting`` is named where the port is refused."""
    how = how or Listening()
    application = web.Application(middlewares=how.middlewares)
    application.add_routes(routes)
    site_runner = runner(application, GRACE)
    await site_runner.setup()
    stack.push_async_callback(site_runner.cleanup)
    try:
        await web.TCPSite(site_runner, host, port, ssl_context=how.context).start()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise ConfigurationError(f"{setting}: cannot listen on {host}:{port}: {why}; write another port") from None
    bound, number = site_runner.addresses[0][:2]
    scheme = "http" if how.context is None else "https"
    return f"{scheme}://{f'[{bound}]' if ':' in bound else bound}:{number}"
