"""Served: how a command finds the ``up`` that has a data folder open, and asks it instead of opening the folder itself.

One folder is opened by one process. ``up`` leaves its address in the folder and holds a lock on the file for as long as it lives: what a
killed one left behind is locked by nobody, whoever listens on its port by then.
"""

import fcntl
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, TemporaryError

FILE: Final = "served.json"
PATIENCE: Final = 30.0
"""Seconds for an answer."""
_DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Without the proxies of the environment: they do not lead back here."""
_FAULT: Final = 500


@contextmanager
def announced(folder: Path, url: str) -> Iterator[None]:
    """Leave the address of this process in its folder while the context lasts."""
    path = folder / FILE
    fresh = path.with_suffix(".new")
    with fresh.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"url": url, "pid": os.getpid()}, file)
        file.flush()
        fresh.replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def address(folder: Path) -> str | None:
    """Return the address of the process that has the folder open; None where there is none."""
    try:
        with (folder / FILE).open() as file:
            return str(json.load(file)["url"]) if _is_held(file.fileno()) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def ask(url: str, path: str, key: str = "") -> Any:
    """Return the JSON that a running ``up`` answers; ``key`` is the project's API key, where there are keys.

    Raises:
        ConfigurationError: with the sentence that ``up`` answered, such as that a run is unknown.
        TemporaryError: it does not answer now.
    """
    request = urllib.request.Request(f"{url}{path}", headers={"Authorization": f"Bearer {key}"} if key else {})  # noqa: S310 - the address that up wrote
    try:
        with _DIRECT.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sentence = _sentence(error) or f"the running up at {url} answered {error.code} to {path}; its log says why"
        raise (TemporaryError if error.code >= _FAULT else ConfigurationError)(sentence) from None
    except (OSError, ValueError, HTTPException) as error:
        raise TemporaryError(f"the running up at {url} does not answer: {error}") from None


def _sentence(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return ""


def key_of(settings: TracegradeSettings, environment: Mapping[str, str]) -> str:
    """Return a key of the project for asking a running ``up``; empty where it asks for none.

    Raises:
        ConfigurationError: keys are configured, and none is the project's.
    """
    keys = settings.receiver.keys
    if not keys:
        return ""
    for secret in keys.get(settings.project, ()):
        text = secret.get_secret_value()
        key = environment.get(text.removeprefix("env:"), "").strip() if text.startswith("env:") else text
        if key:
            return key
    raise ConfigurationError(
        f"project {settings.project!r} has no key in receiver.keys that can be read here; set its environment variable or project to one that has"
    )
