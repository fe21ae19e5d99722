"""OTLP over gRPC. The handler takes raw bytes: with a typed one gRPC would answer UNKNOWN to what does not parse (reliability D10)."""

from typing import Any, Final, NamedTuple, NoReturn

import grpc
import grpc.aio

from collectors.otlp.receiver import Encoding, Receiver
from collectors.otlp.status import answer, failure, write
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError

SERVICE: Final = "opentelemetry.proto.collector.trace.v1.TraceService"
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


class GrpcServer(NamedTuple):
    """A server that is listening. Stop it with ``await server.stop(grace)``."""

    server: grpc.aio.Server
    port: int


async def serve(receiver: Receiver, host: str, port: int) -> GrpcServer:
    """Listen for OTLP/gRPC; port 0 lets the system choose.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", receiver.max_body),
            # Else a second process would silently share the port and get half of the spans.
            ("grpc.so_reuseport", 0),
        ]
    )
    server.add_generic_rpc_handlers((_handler(receiver),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError as error:
        raise ConfigurationError(
            f"receiver.grpc_port: cannot listen on {address}; another program may be using the port: write another"
        ) from error
    await server.start()
    return GrpcServer(server, bound)


def _handler(receiver: Receiver) -> "grpc.GenericRpcHandler[Any, Any]":
    async def export(body: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        try:
            project = receiver.project(_authorization(context))
            reply = await receiver.export(body, Encoding.PROTOBUF, project)
        except (PermanentError, TemporaryError) as error:
            await _refuse(context, error)
        return write(answer(reply), Encoding.PROTOBUF)

    return grpc.method_handlers_generic_handler(SERVICE, {"Export": grpc.unary_unary_rpc_method_handler(export)})


def _authorization(context: grpc.aio.ServicerContext[Any, Any]) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            return value if isinstance(value, str) else None
    return None


async def _refuse(context: grpc.aio.ServicerContext[Any, Any], error: PermanentError | TemporaryError) -> NoReturn:
    status = failure(error).status
    await context.abort(_CODES[status.code], status.message, (("grpc-status-details-bin", status.SerializeToString()),))
