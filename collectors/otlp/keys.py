"""Who may send spans, and into which project: the key decides, never what a span says of itself."""

from collections.abc import Mapping
from hashlib import blake2b
from ipaddress import ip_address
from typing import Final

from pipeline.config.receiver import ReceiverSettings
from pipeline.errors import ConfigurationError, PermanentError

_ENVIRONMENT: Final = "env:"
_SCHEME: Final = "bearer"


class UnauthenticatedError(PermanentError):
    """The caller presents no key, or one that is not configured."""


class Keys:
    """API keys and their projects. Without any key everybody writes to the one project of the settings."""

    def __init__(self, projects: Mapping[str, str], open_project: str) -> None:
        """Take ``projects`` by key; ``open_project`` counts only where there are no keys."""
        # Looked up by digest, so that how long a wrong key takes tells nothing of a right one.
        self._projects = {_digest(key): project for key, project in projects.items()}
        self._open_project = open_project

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


def keys_from(settings: ReceiverSettings, environment: Mapping[str, str]) -> Keys:
    """Return the configured keys, with those read that the environment holds.

    Raises:
        ConfigurationError: a key is missing or stands for two projects, or strangers could send without one.
    """
    projects: dict[str, str] = {}
    for project, secrets in settings.keys.items():
        for secret in secrets:
            key = _read(project, secret.get_secret_value(), environment)
            if projects.setdefault(key, project) != project:
                raise ConfigurationError(
                    f"receiver.keys: the projects {projects[key]!r} and {project!r} have the same key; give each project a key of its own"
                )
    if not projects and not _is_loopback(settings.host):
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


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _digest(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "surrogateescape")).digest()
