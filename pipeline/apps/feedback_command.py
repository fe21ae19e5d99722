"""``tracegrade feedback``: say something of a run, as a client of the API would."""

import json
import math
import urllib.error
import urllib.request
from enum import StrEnum
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from pipeline.apps.address import Address, address_of
from pipeline.apps.commands import print_json, print_line
from pipeline.errors import ConfigurationError, TemporaryError

PATIENCE: Final = 30.0
"""Seconds for an answer."""
_SLOWER: Final = 429
_FAULT: Final = 500


class About(StrEnum):
    """What an id names."""

    RUN = "run"
    TRACE = "trace"
    CONVERSATION = "conversation"


def feedback(config: Path | None, endpoint: str, api_key: str, said: dict[str, Any], *, as_json: bool) -> int:
    """Post one feedback and tell what became of it."""
    answer = _post(address_of(config, endpoint, api_key), {name: value for name, value in said.items() if value != ""})
    if as_json:
        print_json(answer)
    else:
        (stored,) = answer["feedback"]
        about = f"run {stored['run_id']} of trace {stored['trace_id']}" if stored["run_id"] else f"trace {stored['trace_id']}"
        print_line(f"stored feedback {stored['value']:g} on {about}")
    return 0


def value_of(text: str) -> str | float:
    """Return a number as one; what else there is to say, the server knows.

    Raises:
        ConfigurationError: it is no number that can be compared with 0.
    """
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        raise ConfigurationError(f"--value is {text!r}; write up, down or a finite number")
    return number


def _post(address: Address, said: dict[str, Any]) -> Any:
    url = f"{address.endpoint.rstrip('/')}/api/feedback"
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {address.key}"} if address.key else {})
    from pipeline.apps import served  # noqa: PLC0415 - only who sends waits for it

    try:
        request = urllib.request.Request(url, json.dumps(said).encode(), headers)  # noqa: S310 - the address that the user wrote
        opener = urllib.request.build_opener() if address.tls is None else served.opener(address.tls)
        with opener.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sentence = _sentence(error) or f"{url} answered {error.code}"
        raise (TemporaryError if error.code == _SLOWER or error.code >= _FAULT else ConfigurationError)(sentence) from None
    except (OSError, ValueError, HTTPException) as error:
        raise ConfigurationError(
            f"{url} does not answer ({_reason(error)}); start tracegrade up, or name another --endpoint"
        ) from None


def _reason(error: Exception) -> str:
    """Return what went wrong in the system's words, without urllib's wrapping."""
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return str((inner.strerror if isinstance(inner, OSError) else None) or inner)


def _sentence(error: urllib.error.HTTPError) -> str:
    try:
        said = json.load(error)
        return str(said["message"])
    except (ValueError, KeyError, TypeError, OSError):
        return ""
