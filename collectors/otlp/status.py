"""What a sender reads: replies and errors as OTLP writes them, the same for both transports."""

from math import ceil
from typing import Final

import msgspec
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc import code_pb2  # type: ignore[import-untyped] # ships no types
from google.rpc.error_details_pb2 import BadRequest, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collectors.otlp.body import TooLargeError
from collectors.otlp.keys import UnauthenticatedError
from collectors.otlp.receiver import Encoding, Reply
from pipeline.errors import PermanentError, TemporaryError

_RETRY_AFTER: Final = 1
"""Seconds, where nobody said."""
_LONGEST: Final = 1000
"""Characters of an error message: answers are limited too (O11)."""


class Failure(msgspec.Struct, frozen=True):
    """An error as a sender sees it. ``retry_after`` is in whole seconds, None where sending again would not help."""

    http: int
    status: Status
    retry_after: int | None = None


def failure(error: PermanentError | TemporaryError) -> Failure:
    """Return how an error is answered (O7 to O10, O20)."""
    match error:
        case TemporaryError():
            seconds = max(1, ceil(_RETRY_AFTER if error.retry_after is None else error.retry_after))
            retry = RetryInfo()
            retry.retry_delay.seconds = seconds
            return Failure(503, _status(code_pb2.UNAVAILABLE, error, retry), seconds)
        case UnauthenticatedError():
            return Failure(401, _status(code_pb2.UNAUTHENTICATED, error))
        case TooLargeError():
            return Failure(413, _status(code_pb2.RESOURCE_EXHAUSTED, error))
        case _:
            violation = BadRequest.FieldViolation(description=str(error)[:_LONGEST])
            return Failure(400, _status(code_pb2.INVALID_ARGUMENT, error, BadRequest(field_violations=[violation])))


def _status(code: int, error: Exception, detail: Message | None = None) -> Status:
    status = Status(code=code, message=str(error)[:_LONGEST])
    if detail is not None:
        status.details.add().Pack(detail)
    return status


def answer(reply: Reply) -> ExportTraceServiceResponse:
    """Return the response to a stored request; ``partial_success`` is unset where every span was accepted (O4, O6)."""
    response = ExportTraceServiceResponse()
    if reply.rejected:
        response.partial_success.rejected_spans = reply.rejected
        response.partial_success.error_message = reply.message
    return response


def write(message: Message, encoding: Encoding) -> bytes:
    """Write a response or a status in the encoding of the request (O2)."""
    if encoding is Encoding.JSON:
        return MessageToJson(message, indent=None).encode()
    return message.SerializeToString()
