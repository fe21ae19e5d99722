"""What a sender reads: errors as OTLP writes them, the same for both transports."""

from math import ceil
from typing import Final

import msgspec
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc import code_pb2  # type: ignore[import-untyped] # ships no types
from google.rpc.error_details_pb2 import BadRequest, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from collectors.otlp.body import TooLargeError
from collectors.otlp.keys import ForbiddenError, UnauthenticatedError
from collectors.otlp.quota import QuotaError
from collectors.otlp.signal import Encoding
from pipeline.errors import PermanentError, TemporaryError

_RETRY_AFTER: Final = 1
"""Seconds, where nobody said."""
_LONGEST: Final = 1000
"""Characters of an error message: answers are limited too (O11)."""


class NotFoundError(PermanentError):
    """What a request is about is not known here."""


_PLAIN: Final[dict[type[PermanentError], tuple[int, int]]] = {
    UnauthenticatedError: (401, code_pb2.UNAUTHENTICATED),
    ForbiddenError: (403, code_pb2.PERMISSION_DENIED),
    NotFoundError: (404, code_pb2.NOT_FOUND),
    TooLargeError: (413, code_pb2.RESOURCE_EXHAUSTED),
}
"""What is told by a number alone."""


class Failure(msgspec.Struct, frozen=True):
    """An error as a sender sees it. ``retry_after`` is in whole seconds, None where sending again would not help."""

    http: int
    status: Status
    retry_after: int | None = None


def failure(error: PermanentError | TemporaryError) -> Failure:
    """Return how an error is answered (O7 to O10, O20)."""
    match error:
        case QuotaError():
            # RESOURCE_EXHAUSTED is sent again only because it says when (O9).
            return _again(429, code_pb2.RESOURCE_EXHAUSTED, error)
        case TemporaryError():
            return _again(503, code_pb2.UNAVAILABLE, error)
        case UnauthenticatedError() | ForbiddenError() | NotFoundError() | TooLargeError():
            http, code = _PLAIN[type(error)]
            return Failure(http, _status(code, error))
        case _:
            violation = BadRequest.FieldViolation(description=str(error)[:_LONGEST])
            return Failure(400, _status(code_pb2.INVALID_ARGUMENT, error, BadRequest(field_violations=[violation])))


def _again(http: int, code: int, error: TemporaryError) -> Failure:
    seconds = max(1, ceil(_RETRY_AFTER if error.retry_after is None else error.retry_after))
    retry = RetryInfo()
    retry.retry_delay.seconds = seconds
    return Failure(http, _status(code, error, retry), seconds)


def _status(code: int, error: Exception, detail: Message | None = None) -> Status:
    status = Status(code=code, message=str(error)[:_LONGEST])
    if detail is not None:
        status.details.add().Pack(detail)
    return status


def write(message: Message, encoding: Encoding) -> bytes:
    """Write a response or a status in the encoding of the request (O2)."""
    if encoding is Encoding.JSON:
        return MessageToJson(message, indent=None).encode()
    return message.SerializeToString()
