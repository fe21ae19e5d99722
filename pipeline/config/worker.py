"""What a user configures of a worker process."""

from pipeline.config.receiver import Port
from pipeline.model.settings import Settings


class WorkerSettings(Settings):
    """How a worker can be asked whether it is well."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    http_port: Port | None = None
    """Port of ``/healthz`` and ``/readyz``; none where it is not written, so that several workers can share a machine."""
