"""What a user configures of the OTLP receiver."""

import re
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from pipeline.model.settings import Duration, Project, Settings
from pipeline.model.time import MINUTE, SECOND

MEBIBYTE: Final = 1024 * 1024
DEFAULT_QUOTA: Final = "default"
"""The quota of every project that has none of its own."""
HASHED: Final = "sha256:"
"""What stands before the digest of a key, where the key itself is not to be in the file."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_ORIGIN: Final = re.compile(r"https?://[^/\s]+")

Port = Annotated[int, Field(ge=0, le=65_535)]
"""A TCP port; 0 lets the system choose one."""
Name = Annotated[str, Field(min_length=1)]
Rate = Annotated[int, Field(ge=1)]


def _digest_or_key(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if text.startswith(HASHED) and not _DIGEST.fullmatch(text.removeprefix(HASHED)):
        raise ValueError("a hashed key is sha256: and 64 lower-case hex digits; `tracegrade key` makes one")
    return secret


def _origin(text: str) -> str:
    if text != "*" and not _ORIGIN.fullmatch(text):
        raise ValueError(f"{text!r} is not an origin; write https://app.example.com, or https://*.example.com, without a path")
    return text


Secret = Annotated[SecretStr, Field(min_length=1), AfterValidator(_digest_or_key)]


class QuotaSettings(Settings):
    """What one project may send on average; ten seconds of it at once."""

    spans_per_s: Rate | None = None
    """Spans a second; no limit where it is not written."""
    bytes_per_s: Rate | None = None
    """Bytes a second, after decompression; no limit where it is not written."""


class TlsSettings(Settings):
    """Encryption of both ports, TLS 1.2 or newer."""

    cert_file: Path
    """The server's certificate, and those between it and its authority, as PEM."""
    key_file: Path
    """The certificate's private key, as PEM."""
    client_ca_file: Path | None = None
    """Authorities whose clients get in, as PEM: with it a client without a certificate of theirs is refused."""


class CorsSettings(Settings):
    """Which pages in browsers may send spans and feedback."""

    allowed_origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = ()
    """Origins of the pages; ``*`` in one stands for any text without a slash. Without any no page may."""
    allowed_headers: tuple[Name, ...] = ()
    """Headers that they may send besides those of OTLP."""
    max_age: Duration = 5 * SECOND
    """How long a browser remembers the answer."""


class ReceiverSettings(Settings):
    """Where spans are accepted, from whom, and how much at once."""

    host: str = "127.0.0.1"
    """Address to listen on. Any but a loopback address needs ``keys``."""
    grpc_port: Port = 4317
    """Port of OTLP/gRPC."""
    http_port: Port = 4318
    """Port of OTLP/HTTP, of the status page and of the API."""
    health_port: Port | None = None
    """Port of ``/healthz`` and ``/readyz`` alone, never encrypted and open to everybody: for probes that have no certificate. None where it
    is not written; ``http_port`` answers them too."""
    project: Project = "default"
    """Project of all spans while no keys are configured."""
    keys: dict[Project, Annotated[list[Secret], Field(min_length=1)]] = Field(default_factory=dict)
    """API keys by project: the key decides which project a span is in. ``env:NAME`` reads the key from the environment;
    ``sha256:…`` is the digest of one."""
    tls: TlsSettings | None = None
    """How both ports are encrypted; without it they are not."""
    max_body: Annotated[int, Field(ge=1, le=2**31 - 1)] = 64 * MEBIBYTE
    """Largest request that is read, in bytes after decompression; less than 2 GiB, which gRPC ends at."""
    max_spans: Annotated[int, Field(ge=1)] = 16_384
    """Most spans of one request; also resources, and scopes. Twice what the OpenTelemetry Collector batches."""
    max_values: Annotated[int, Field(ge=1)] = 1_200_000
    """Most values of one request, those of lists among them; an attribute counts as three, an event or a link as five."""
    max_in_flight: Annotated[int, Field(ge=1)] = 256 * MEBIBYTE
    """Most bytes of requests that are read or stored at the same time; a request that finds no room is told to come back."""
    max_concurrent: Annotated[int, Field(ge=1)] = 256
    """Most requests over gRPC that are read or stored at the same time."""
    body_timeout: Duration = MINUTE // 2
    """How long a request may take to arrive."""
    quotas: dict[Project, QuotaSettings] = Field(default_factory=dict)
    """What each project may send; that of ``default`` is for every project, each by itself, that has none of its own."""
    cors: CorsSettings = CorsSettings()
    """Which pages in browsers may send."""

    @model_validator(mode="after")
    def _room_for_one(self) -> Self:
        if self.max_in_flight < self.max_body:
            raise ValueError(f"max_in_flight is less than max_body; write at least {self.max_body}")
        return self
