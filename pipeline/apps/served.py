"""Served: how a command finds the ``up`` that has a data folder open, and asks it instead of opening the folder itself.

One folder is opened by one process. ``up`` leaves its address in the folder and holds a lock on the file for as long as it lives: what a
killed one left behind is locked by nobody, whoever listens on its port by then.
"""

import fcntl
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple

from pipeline.config.receiver import HASHED, TlsSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, TemporaryError

FILE: Final = "served.json"
PATIENCE: Final = 30.0
"""Seconds for an answer."""
_DIRECT: Final = urllib.request.ProxyHandler({})
"""Without the proxies of the environment: they do not lead back here."""
KEY: Final = "TRACEGRADE_KEY"
"""Names the environment variable that holds a key, where the configuration has only its digest."""
_FAULT: Final = 500


class Admin(NamedTuple):
    """The administrator's door of a running ``up``: where it is, and what opens it."""

    url: str
    token: str


@contextmanager
def announced(folder: Path, url: str, admin: Admin | None = None) -> Iterator[None]:
    """Leave the address of this process in its folder while the context lasts, readable by its user alone."""
    path = folder / FILE
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"url": url, "pid": os.getpid(), "admin": admin}, file)
        file.flush()
        fresh.replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def address(folder: Path) -> str | None:
    """Return the address of the process that has the folder open; None where there is none."""
    try:
        return str(_told(folder)["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def admin(folder: Path) -> Admin | None:
    """Return the administrator's door of the process that has the folder open; None where there is none."""
    try:
        url, token = _told(folder)["admin"]
        return Admin(str(url), str(token))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _told(folder: Path) -> dict[str, Any]:
    with (folder / FILE).open() as file:
        told: dict[str, Any] = json.load(file) if _is_held(file.fileno()) else {}
        return told


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def ask(url: str, path: str, key: str = "", body: Any = None, tls: TlsSettings | None = None) -> Any:
    """Return the JSON that a running ``up`` answers; ``key`` is the project's API key, where there are keys. A ``body`` is posted as JSON.

    With ``tls`` the answer is believed only from who presents the configured certificate, whatever name is in it.

    Raises:
        ConfigurationError: with the sentence that ``up`` answered, such as that a run is unknown.
        TemporaryError: it does not answer now.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}{path}", data, headers)  # noqa: S310 - the address that up wrote
    try:
        with opener(tls).open(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sentence = _sentence(error) or f"the running up at {url} answered {error.code} to {path}; its log says why"
        raise (TemporaryError if error.code >= _FAULT else ConfigurationError)(sentence) from None
    except (OSError, ValueError, HTTPException) as error:
        raise TemporaryError(f"the running up at {url} does not answer: {error}") from None


def opener(tls: TlsSettings | None) -> urllib.request.OpenerDirector:
    """Return what asks a receiver of this configuration, and believes only its certificate where it has one.

    Raises:
        ConfigurationError: the certificate's files cannot be read.
    """
    if tls is None:
        return urllib.request.build_opener(_DIRECT)
    try:
        context = ssl.create_default_context(cafile=tls.cert_file)
        # To a server that asks for clients' certificates this process shows the same one.
        context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as error:
        raise ConfigurationError(f"receiver.tls: its files cannot be read here: {error}") from error
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return urllib.request.build_opener(_DIRECT, urllib.request.HTTPSHandler(context=context))


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
    written = [secret.get_secret_value() for secret in keys.get(settings.project, ())]
    if any(text.startswith(HASHED) for text in written) and environment.get(KEY, "").strip():
        return environment[KEY].strip()
    for text in written:
        key = environment.get(text.removeprefix("env:"), "").strip() if text.startswith("env:") else text
        if key and not key.startswith(HASHED):
            return key
    raise ConfigurationError(
        f"project {settings.project!r} has no key in receiver.keys that can be read here; set its environment variable, set {KEY} to the"
        " key whose digest is written, or set project to one that has a key"
    )
