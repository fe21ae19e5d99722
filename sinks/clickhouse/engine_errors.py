"""Engine errors: what clickhouse-connect raises, as whose it is: time's, the configuring person's, or a bug of ours."""

import re
from http import HTTPStatus
from typing import Final

from clickhouse_connect.driver.exceptions import Error, InterfaceError, OperationalError

from pipeline.errors import ConfigurationError, TemporaryError

_TEMPORARY: Final = frozenset(
    {
        75,  # CANNOT_WRITE_TO_FILE_DESCRIPTOR
        159,  # TIMEOUT_EXCEEDED
        173,  # CANNOT_ALLOCATE_MEMORY
        201,  # QUOTA_EXCEEDED
        202,  # TOO_MANY_SIMULTANEOUS_QUERIES
        203,  # NO_FREE_CONNECTION
        209,  # SOCKET_TIMEOUT
        210,  # NETWORK_ERROR
        225,  # NO_ZOOKEEPER
        236,  # ABORTED
        241,  # MEMORY_LIMIT_EXCEEDED
        242,  # TABLE_IS_READ_ONLY
        243,  # NOT_ENOUGH_SPACE
        252,  # TOO_MANY_PARTS
        279,  # ALL_CONNECTION_TRIES_FAILED
        285,  # TOO_FEW_LIVE_REPLICAS
        319,  # UNKNOWN_STATUS_OF_INSERT
        394,  # QUERY_WAS_CANCELLED
        425,  # SYSTEM_ERROR
        439,  # CANNOT_SCHEDULE_TASK
        473,  # DEADLOCK_AVOIDED
        745,  # SERVER_OVERLOADED
        999,  # KEEPER_EXCEPTION
    }
)
_UNAUTHORISED: Final = frozenset({164, 192, 193, 194, 497, 516})
"""READONLY, UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, ACCESS_DENIED, AUTHENTICATION_FAILED."""
_STATUS: Final = re.compile(r"HTTP driver received HTTP status (\d{3})")
"""How the client reports an answer without a code of ClickHouse: it came from something in between, or from a server that is ending."""
_STATUS_LATER: Final = frozenset({408, 425, 429})


def ours(error: Error, where: str) -> Exception:
    """A listed code may work later, and so may what never reached the engine; anything else is a bug and stays what it is."""
    if error.code in _UNAUTHORISED:
        return ConfigurationError(
            f"{where} refuses the user; check store.url, store.password_env and the user's rights: {sentence(error)}"
        )
    status = status_of(error)
    unheard = error.code is None and (isinstance(error, OperationalError | InterfaceError) or (status and may_pass(status)))
    if error.code in _TEMPORARY or unheard:
        return TemporaryError(f"{where} cannot answer now: {sentence(error)}")
    return error


def sentence(error: Error) -> str:
    """Return what went wrong on one line: of a connection that failed why it did, not everything that was tried."""
    cause = error.__cause__
    return " ".join(str(getattr(cause, "reason", None) or cause or error).split())


def status_of(error: Error) -> int | None:
    """Return the HTTP status of an answer that carried no code of ClickHouse."""
    said = _STATUS.match(str(error)) if error.code is None else None
    return int(said[1]) if said else None


def may_pass(status: int) -> bool:
    """Whether an answer with this HTTP status says that the same request may work later."""
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _STATUS_LATER
