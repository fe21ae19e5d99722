"""Shared by the tests of the apps."""

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture
def own_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take back what a command changes because the process is its own: logs and the environment."""
    for name in ("no_proxy", "NO_PROXY", "GRPC_VERBOSITY"):
        monkeypatch.setenv(name, "")
    root = logging.getLogger()
    handlers, level, library = root.handlers[:], root.level, logging.getLogger("opentelemetry").level
    root.handlers = []
    yield
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("opentelemetry").setLevel(library)
    structlog.reset_defaults()
