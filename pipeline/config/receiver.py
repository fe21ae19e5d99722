"""What a user configures of the OTLP receiver."""

from typing import Annotated, Final

from pydantic import Field, SecretStr

from pipeline.model.settings import Settings

MEBIBYTE: Final = 1024 * 1024

Port = Annotated[int, Field(ge=0, le=65_535)]
"""A TCP port; 0 lets the system choose one."""
Name = Annotated[str, Field(min_length=1)]


class ReceiverSettings(Settings):
    """Where spans are accepted, from whom, and how much at once."""

    host: str = "127.0.0.1"
    """Address to listen on. Any but a loopback address needs ``keys``."""
    grpc_port: Port = 4317
    """Port of OTLP/gRPC."""
    http_port: Port = 4318
    """Port of OTLP/HTTP, of the status page and of the API."""
    project: Name = "default"
    """Project of all spans while no keys are configured."""
    keys: dict[Name, Annotated[list[Annotated[SecretStr, Field(min_length=1)]], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """API keys by project: the key decides which project a span is in. ``env:NAME`` reads the key from the environment."""
    max_body: Annotated[int, Field(ge=1)] = 64 * MEBIBYTE
    """Largest request that is read, in bytes after decompression."""
