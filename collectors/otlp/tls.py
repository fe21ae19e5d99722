"""TLS: the certificates of both ports, read once at the start."""

import ssl
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.config.receiver import TlsSettings
from pipeline.errors import ConfigurationError

_BEGIN: Final = b"-----BEGIN "


class Certificates(NamedTuple):
    """What a port presents, and whose clients it takes; each as PEM."""

    chain: bytes
    key: bytes
    client_authorities: bytes | None
    context: ssl.SSLContext
    """The same for HTTP."""


def certificates_from(settings: TlsSettings | None) -> Certificates | None:
    """Return the certificates that the settings name; None where the ports are not encrypted.

    Raises:
        ConfigurationError: a file is missing, cannot be read or holds something else, or key and certificate do not belong together.
    """
    if settings is None:
        return None
    chain = _pem("cert_file", settings.cert_file)
    key = _pem("key_file", settings.key_file)
    authorities = _pem("client_ca_file", settings.client_ca_file) if settings.client_ca_file is not None else None
    return Certificates(chain, key, authorities, _context(settings))


def _context(settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.cert_file, settings.key_file, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise ConfigurationError(
            f"receiver.tls: {settings.key_file} is not the key of {settings.cert_file} ({why}); write a certificate and its"
            " own private key, without a password"
        ) from error
    if settings.client_ca_file is not None:
        try:
            context.load_verify_locations(settings.client_ca_file)
        except (ssl.SSLError, OSError) as error:
            raise ConfigurationError(f"receiver.tls.client_ca_file: {settings.client_ca_file} holds no certificate") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    raise ValueError("it has a password")


def _pem(key: str, path: Path) -> bytes:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"receiver.tls.{key}: {path} cannot be read: {error.strerror}; name a PEM file") from error
    if _BEGIN not in text:
        raise ConfigurationError(f"receiver.tls.{key}: {path} is not a PEM file; name one that begins with -----BEGIN")
    return text
