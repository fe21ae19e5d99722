"""Serve: the receiver on its two ports, and whatever else is asked for over HTTP."""

import os
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Final

import msgspec
from aiohttp import web

from collectors.otlp import grpc
from collectors.otlp.http import routes, runner
from collectors.otlp.receiver import Receiver
from pipeline.config.receiver import ReceiverSettings
from pipeline.errors import ConfigurationError

GRACE: Final = 5.0
"""Seconds that requests in flight are given when the servers stop."""


class Served(msgspec.Struct, frozen=True):
    """Where the servers listen."""

    http_url: str
    grpc_address: str


async def serve(receiver: Receiver, settings: ReceiverSettings, more: Iterable[web.RouteDef], stack: AsyncExitStack) -> Served:
    """Accept spans over gRPC and HTTP until the stack is closed, which waits for requests in flight.

    Raises:
        ConfigurationError: a port is taken, or not this user's to take.
    """
    http_url = await listen([*routes(receiver), *more], settings.host, settings.http_port, "receiver.http_port", stack)
    listening = await grpc.serve(receiver, settings.host, settings.grpc_port)
    stack.push_async_callback(listening.server.stop, GRACE)
    host = http_url.removeprefix("http://").rpartition(":")[0]
    return Served(http_url=http_url, grpc_address=f"{host}:{listening.port}")


async def listen(routes: Iterable[web.RouteDef], host: str, port: int, setting: str, stack: AsyncExitStack) -> str:
    """Serve routes over HTTP until the stack is closed. Returns the URL; ``setting`` is named where the port is refused."""
    application = web.Application()
    application.add_routes(routes)
    site_runner = runner(application, GRACE)
    await site_runner.setup()
    stack.push_async_callback(site_runner.cleanup)
    try:
        await web.TCPSite(site_runner, host, port).start()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise ConfigurationError(f"{setting}: cannot listen on {host}:{port}: {why}; write another port") from None
    bound, number = site_runner.addresses[0][:2]
    return f"http://{f'[{bound}]' if ':' in bound else bound}:{number}"
