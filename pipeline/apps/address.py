"""Address: where a command sends to that was told no endpoint. It is what the configuration's receiver listens on."""
# ruff: noqa: PLC0415 - a command imports what it needs

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from pipeline.config.receiver import TlsSettings
    from pipeline.config.tracegrade import TracegradeSettings

_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - what is listened on, and how it is reached


class Address(NamedTuple):
    """Where to send, and the key to send with. ``tls`` is set where the answer is believed by the configured certificate."""

    endpoint: str
    key: str = ""
    tls: "TlsSettings | None" = None


def address_of(config: Path | None, endpoint: str, key: str, *, grpc: bool = False) -> Address:
    """Return a named endpoint as it is; else the receiver's own, of gRPC or of HTTP, with a key of the project.

    Keys of the configuration go to its own receiver only.

    Raises:
        ConfigurationError: the configuration is wrong, has no port to send to, or no key that can be read here.
    """
    if endpoint:
        return Address(endpoint, key)
    from pipeline.apps import served
    from pipeline.config.load import load

    settings = load(config)
    receiver = settings.receiver
    return Address(_own(settings, grpc=grpc), key or served.key_of(settings, os.environ), receiver.tls)


def _own(settings: "TracegradeSettings", *, grpc: bool) -> str:
    from pipeline.apps import served

    receiver = settings.receiver
    if not grpc and settings.store.url is None and (open_at := served.address(settings.store.path)) is not None:
        return open_at
    name, port = ("grpc_port", receiver.grpc_port) if grpc else ("http_port", receiver.http_port)
    if not port:
        raise ConfigurationError(f"receiver.{name} is 0, so the system chooses the port; name it with --endpoint")
    host = _EVERYWHERE.get(receiver.host, receiver.host)
    return f"http{'s' if receiver.tls is not None else ''}://{f'[{host}]' if ':' in host else host}:{port}"
