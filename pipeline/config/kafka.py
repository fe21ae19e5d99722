"""Where records travel between processes: a Kafka cluster."""

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from pipeline.model.ids import BUCKETS
from pipeline.model.settings import Duration, Settings
from pipeline.model.time import DAY

LEAST_RETENTION: Final = 7 * DAY
"""What a worker that was away for a week still finds (design section 3)."""


class KafkaSettings(Settings):
    """The brokers, and how the topics are made."""

    brokers: tuple[Annotated[str, Field(pattern=r"^(\[[0-9A-Fa-f:]+\]|[^\s:/]+):\d{1,5}$")], ...] = Field(min_length=1)
    """Brokers to ask first, each as ``host:port``; they name the others."""
    partitions: Annotated[int, Field(ge=1, le=BUCKETS)] = 16
    """Partitions of each topic when it is made: the most workers that can share a stage. Topics that exist keep theirs."""
    replication: Annotated[int, Field(ge=1, le=9)] = 1
    """Copies of each record when a topic is made; 3 where the cluster has three brokers or more."""
    retention: Duration = LEAST_RETENTION
    """How long records are kept; at least seven days."""
    session_timeout: Duration = 10_000_000_000
    """How long a worker may be silent before its partitions go to another one."""
    protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    """How the brokers are spoken to."""
    ca_file: Path | None = None
    """Certificates that the brokers' own are checked against; the system's where none is named."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """How a user proves who they are, with one of the ``sasl`` protocols."""
    username: str | None = Field(default=None, min_length=1)
    """The user, with one of the ``sasl`` protocols."""
    password_env: str | None = Field(default=None, min_length=1)
    """Name of the environment variable that holds the user's password."""

    @field_validator("retention")
    @classmethod
    def _long_enough(cls, retention: int) -> int:
        if retention < LEAST_RETENTION:
            raise ValueError(
                "records are kept for at least 7d: what a worker did not read by then would be lost; write 7d or more"
            )
        return retention

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.protocol.startswith("sasl") and (self.username is None or self.password_env is None):
            raise ValueError(f"{self.protocol} needs a user: write username and password_env too")
        if not self.protocol.startswith("sasl") and (self.username or self.password_env):
            raise ValueError("username and password_env are for sasl_plaintext and sasl_ssl; write one of these as protocol")
        return self
