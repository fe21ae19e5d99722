"""The receiver as the product serves it: with what stands before it, on both ports."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import grpc
import grpc.aio
from unit.otlp.transports import NOW, PATIENCE_S, Store

from collectors.otlp.keys import keys_from
from collectors.otlp.receiver import Receiver
from collectors.otlp.traces import TRACES
from pipeline.apps.health import Check, Health
from pipeline.apps.serve import Served, serve
from pipeline.config.receiver import ReceiverSettings


class Product(NamedTuple):
    """The receiver as the product serves it, with all that stands before it."""

    store: Store
    served: Served
    health: Health

    @property
    def url(self) -> str:
        return f"{self.served.http_url}/v1/traces"


@asynccontextmanager
async def product(
    environment: dict[str, str] | None = None, checks: dict[str, Check] | None = None, **settings: Any
) -> AsyncIterator[Product]:
    """Serve a receiver on ports of its own."""
    store = Store()
    configured = ReceiverSettings.model_validate({"http_port": 0, "grpc_port": 0, **settings})
    async with AsyncExitStack() as stack:
        health = await stack.enter_async_context(Health(checks or {}, every_s=0.02))
        keys = keys_from(configured, environment or {})
        receiver = Receiver({TRACES: store}, lambda: NOW, keys, configured, trouble=lambda: health.trouble)
        yield Product(store, await serve(receiver, health, (), stack), health)


async def over_grpc(served: Served, body: bytes, metadata: Any = (), credentials: Any = None) -> str:
    """Send a request over gRPC and return the code."""
    options = [("grpc.ssl_target_name_override", "localhost")]
    address = served.grpc_address
    channel = grpc.aio.secure_channel(address, credentials, options) if credentials else grpc.aio.insecure_channel(address)
    async with channel:
        try:
            await channel.unary_unary(f"/{TRACES.service}/Export", None, None)(body, metadata=metadata, timeout=PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            return error.code().name
    return "OK"
