"""``tracegrade feedback``: say something of a run, as a client of the API would."""

import json
import urllib.error
import urllib.request
from enum import StrEnum
from http.client import HTTPException
from typing import Any, Final

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


def feedback(endpoint: str, api_key: str, said: dict[str, Any], *, as_json: bool) -> int:
    """Post one feedback and tell what became of it."""
    answer = _post(f"{endpoint.rstrip('/')}/api/feedback", api_key, {name: value for name, value in said.items() if value != ""})
    if as_json:
        print_json(answer)
    else:
        (stored,) = answer["feedback"]
        about = f"run {stored['run_id']} of trace {stored['trace_id']}" if stored["run_id"] else f"trace {stored['trace_id']}"
        print_line(f"stored feedback {stored['value']:g} on {about}")
    return 0


def value_of(text: str) -> str | float:
    """Return a number as one; what else there is to say, the server knows."""
    try:
        return float(text)
    except ValueError:
        return text


def _post(url: str, key: str, said: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, json.dumps(said).encode(), headers)  # noqa: S310 - the address that the user wrote
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sentence = _sentence(error) or f"{url} answered {error.code}"
        raise (TemporaryError if error.code == _SLOWER or error.code >= _FAULT else ConfigurationError)(sentence) from None
    except (OSError, ValueError, HTTPException) as error:
        raise ConfigurationError(f"{url} does not answer ({error}); start tracegrade up, or name another --endpoint") from None


def _sentence(error: urllib.error.HTTPError) -> str:
    try:
        said = json.load(error)
        return str(said["message"])
    except (ValueError, KeyError, TypeError, OSError):
        return ""
