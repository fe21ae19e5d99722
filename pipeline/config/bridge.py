"""What a user configures of a bridge: which foreign topics it reads, and when it no longer believes what it reads."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.receiver import MEBIBYTE, Port
from pipeline.model.settings import Project, Settings


class BridgeSettings(Settings):
    """Topics that others write, and how a bridge can be asked whether it is well."""

    topics: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")], Project] = Field(default={})
    """Topics of OTLP as the OpenTelemetry Collector's kafka exporter writes it, each with its project: the topic decides.

    Where none is written: ``otlp_spans``, of the project at the top.
    """
    encoding: Literal["auto", "otlp_proto", "otlp_json"] = "auto"
    """How records are encoded; ``auto`` tells the two apart by their content, record by record."""
    bad_share: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The bridge stops when more than this share of a partition's last 200 records cannot be read; 1 to never stop."""
    in_flight: Annotated[int, Field(ge=MEBIBYTE)] = 32 * MEBIBYTE
    """Bytes of records that are read and not yet acknowledged; reading pauses there."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    http_port: Port | None = None
    """Port of ``/healthz`` and ``/readyz``; none where it is not written, so that several bridges can share a machine."""
