"""OTLP over gRPC, and health over gRPC.

The handlers take raw bytes: with typed ones gRPC would answer UNKNOWN to what does not parse (reliability D10). And they read the one
message of a request themselves, so that a caller who is refused is refused before anything of it is read.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from collectors.otlp.in_flight import InFlight, Turns
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import AnySignal, Encoding
from collectors.otlp.status import failure, write
from collectors.otlp.tls import Certificates
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.model.time import SECOND

_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_ARRIVING: Final = 4
"""Times ``max_in_flight`` that messages may have while they arrive: how large one is, is only known once it is there."""
_HealthServicer: Any = health.aio.HealthServicer  # type: ignore[attr-defined] # the stubs leave it out

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class GrpcServer:
    """A server that is listening."""

    def __init__(self, server: grpc.aio.Server, port: int, health: Any, services: tuple[str, ...]) -> None:
        self.port: Final = port
        self._server = server
        self._health = health
        self._services = services

    async def report(self, ready: bool) -> None:
        """Tell whoever asks or watches over gRPC whether requests are accepted (O22)."""
        status = health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", *self._services):
            await self._health.set(service, status)

    async def stop(self, grace_s: float | None) -> None:
        """Accept nothing more, and give what is being answered so many seconds."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)


async def serve(receiver: Receiver, host: str, port: int, certificates: Certificates | None = None) -> GrpcServer:
    """Listen for OTLP/gRPC; port 0 lets the system choose.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    server = grpc.aio.server(
        options=[
            # Before decompression and after it.
            ("grpc.max_receive_message_length", receiver.settings.max_body),
            # Else a second process would silently share the port and get half of the spans.
            ("grpc.so_reuseport", 0),
        ]
    )
    # gRPC's own limit would answer without saying when to send again, and senders would drop what they had (O9).
    requests = InFlight(receiver.settings.max_concurrent, shared=receiver.shared)
    turns = Turns(_ARRIVING * receiver.settings.max_in_flight // receiver.settings.max_body, shared=receiver.shared)
    server.add_generic_rpc_handlers(tuple(_handler(receiver, signal, requests, turns) for signal in receiver.signals))
    healthy = _HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    bound = _listen(server, host, port, certificates)
    await server.start()
    listening = GrpcServer(server, bound, healthy, tuple(signal.service for signal in receiver.signals))
    await listening.report(ready=True)
    return listening


def _listen(server: grpc.aio.Server, host: str, port: int, certificates: Certificates | None) -> int:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if certificates is None:
            return server.add_insecure_port(address)
        credentials = grpc.ssl_server_credentials(
            [(certificates.key, certificates.chain)], certificates.client_authorities, certificates.client_authorities is not None
        )
        return server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise ConfigurationError(
            f"receiver.grpc_port: cannot listen on {address}; another program may be using the port: write another"
        ) from error


def _handler(receiver: Receiver, signal: AnySignal, requests: InFlight, turns: Turns) -> "grpc.GenericRpcHandler[Any, Any]":
    async def export(_: Any, context: Context) -> bytes:
        try:
            async with receiver.request(_authorization(context)) as admitted:
                with requests.hold(admitted.project) as held:
                    held.grow(1)
                    body = await _message(receiver, context, turns.of(admitted.project))
                    admitted.hold.grow(len(body))
                    reply = await receiver.export(signal, body, Encoding.PROTOBUF, admitted.project)
        except (PermanentError, TemporaryError) as error:
            await _refuse(context, error)
        return write(signal.response(reply), Encoding.PROTOBUF)

    return grpc.method_handlers_generic_handler(signal.service, {"Export": grpc.stream_unary_rpc_method_handler(export)})


async def _message(receiver: Receiver, context: Context, turn: AbstractAsyncContextManager[None]) -> bytes:
    seconds = receiver.settings.body_timeout / SECOND
    try:
        async with asyncio.timeout(seconds), turn:
            message = await context.read()
    except TimeoutError:
        raise TemporaryError(f"the request did not arrive within {seconds:.0f} s; send smaller batches") from None
    if not isinstance(message, bytes):  # too large, and answered by gRPC itself; or there is none
        raise PermanentError("the request holds no message that can be read")
    return message


def _authorization(context: Context) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            return value if isinstance(value, str) else None
    return None


async def _refuse(context: Context, error: PermanentError | TemporaryError) -> NoReturn:
    status = failure(error).status
    await context.abort(_CODES[status.code], status.message, (("grpc-status-details-bin", status.SerializeToString()),))
