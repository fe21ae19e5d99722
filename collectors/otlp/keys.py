"""Who may send, and into which project: the key decides, never what a span says of itself."""

import secrets
from collections.abc import Mapping
from hashlib import sha256
from ipaddress import ip_address
from typing import Final

from pipeline.config.receiver import HASHED, ReceiverSettings
from pipeline.errors import ConfigurationError, PermanentError

_ENVIRONMENT: Final = "env:"
_SCHEME: Final = "bearer"
_NEW: Final = "tg_"
"""What new keys begin with, so that one in a log or a repository is recognised."""


class UnauthenticatedError(PermanentError):
    """The caller presents no key, or one that is not configured."""


class ForbiddenError(PermanentError):
    """The caller may not do this, whoever it is."""


class Keys:
    """API keys and their projects. Without any key everybody writes to the one project of the settings."""

    def __init__(self, projects: Mapping[str, str], open_project: str) -> None:
        """Take ``projects`` by key or by its digest as ``sha256:…``; ``open_project`` counts only where there are no keys."""
        # Looked up by digest, so that how long a wrong key takes tells nothing of a right one.
        self._projects = {_digest_of(written): project for written, project in projects.items()}
        self._open_project = open_project

    @property
    def open(self) -> bool:
        """Whether everybody gets in."""
        return not self._projects

    @property
    def shared(self) -> bool:
        """Whether several projects send."""
        return len(set(self._projects.values())) > 1

    def project(self, authorization: str | None) -> str:
        """Return the project of a caller, by the value of its ``Authorization`` header or metadata.

        Raises:
            UnauthenticatedError: keys are configured, and this is none of them.
        """
        if not self._projects:
            return self._open_project
        scheme, _, key = (authorization or "").strip().partition(" ")
        if scheme.lower() != _SCHEME:
            raise UnauthenticatedError(
                "send an API key: 'Authorization: Bearer KEY' (over gRPC the metadata key 'authorization')"
            )
        project = self._projects.get(_digest(key.strip()))
        if project is None:
            raise UnauthenticatedError("this API key is not known here")
        return project


def new_key() -> tuple[str, str]:
    """Return a key that nobody has yet, and what to write for it into the configuration."""
    key = _NEW + secrets.token_urlsafe(32)
    return key, f"{HASHED}{_digest(key)}"


def keys_from(settings: ReceiverSettings, environment: Mapping[str, str]) -> Keys:
    """Return the configured keys, with those read that the environment holds.

    Raises:
        ConfigurationError: a key is missing or stands for two projects, or strangers could send without one.
    """
    projects: dict[str, str] = {}
    for project, written in settings.keys.items():
        for secret in written:
            digest = _digest_of(_read(project, secret.get_secret_value(), environment))
            if projects.setdefault(HASHED + digest, project) != project:
                raise ConfigurationError(
                    f"receiver.keys: the projects {projects[HASHED + digest]!r} and {project!r} have the same key;"
                    " give each project a key of its own"
                )
    if not projects and not is_loopback(settings.host):
        raise ConfigurationError(
            f"receiver.host: {settings.host} can be reached from other machines, and no key is configured. "
            f"Write receiver.keys: {{{settings.project}: [env:TRACEGRADE_KEY]}} and set TRACEGRADE_KEY, or receiver.host: 127.0.0.1"
        )
    return Keys(projects, settings.project)


def _read(project: str, text: str, environment: Mapping[str, str]) -> str:
    if not text.startswith(_ENVIRONMENT):
        return text
    name = text.removeprefix(_ENVIRONMENT)
    key = environment.get(name, "").strip()
    if not key:
        raise ConfigurationError(
            f"receiver.keys.{project}: the environment variable {name!r} is not set; set it to the project's API key"
        )
    return key


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, reached by nobody else."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _digest_of(written: str) -> str:
    return written.removeprefix(HASHED) if written.startswith(HASHED) else _digest(written)


def _digest(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
